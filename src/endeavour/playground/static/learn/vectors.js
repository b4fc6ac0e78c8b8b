/* Vectors with their names: many as strips, one below the other, or one as a profile, with signs between them.
 *
 * Knows a sheet of draw.js and numbers; not what they mean.
 */

import { decimal } from "../format.js";
import { rect, shortened, text, textWidth } from "../drawing.js";
import { heat, legend, profile, reach, room } from "./draw.js";

/**
 * Named vectors, one below the other, each as a strip.
 *
 * @param {object} page a sheet
 * @param {object} options
 * @param {number} options.y top
 * @param {number} [options.x] left
 * @param {number} [options.width] with labels
 * @param {string} options.title
 * @param {string[]} options.labels of the rows
 * @param {number[][]} options.values
 * @param {number} [options.most] what the strongest shade stands for
 * @param {number} options.lit the row that is followed
 * @param {(row: number) => void} options.choose
 * @param {number} [options.left] room for the labels
 * @returns {number} the bottom
 */
export function strips(
  page,
  { y, x = 0, width = page.width, title, labels, values, most = reach(values), lit, choose, left },
) {
  const gutter = left ?? room(labels, width < 420 ? 72 : 110);
  const height = values.length > 32 ? 12 : 17;
  const cell = [(width - gutter) / values[0].length, height];
  const top = y + 22;
  const end = top + values.length * height;
  page.add(
    end + 4,
    text(x + gutter, y + 8, shortened(title, width - gutter - (width > 360 ? 190 : 0), 11), {
      kind: "heading",
    }),
    width > 360 && legend(x + width - 128, y + 3, most),
    labels.map((label, row) =>
      text(x + gutter - 8, top + (row + 0.5) * height, shortened(label, gutter - 12, 12), {
        anchor: "end",
        kind: row === lit ? "label small lit" : "label small",
      }),
    ),
    heat(values, { x: x + gutter, y: top, cell, most }),
    rect(x + gutter - 1, top + lit * height - 1, width - gutter + 2, height + 1, {
      class: "band",
      fill: "none",
      rx: 2,
    }),
  );
  page.area({
    x: x + gutter,
    y: top,
    cell,
    rows: values.length,
    columns: values[0].length,
    text: (row, column) => `${labels[row]}, number ${column + 1}: ${decimal(values[row][column], 4)}`,
    choose,
  });
  page.area({ x, y: top, cell: [gutter, height], rows: values.length, columns: 1, choose });
  return end;
}

/**
 * A named vector as a profile, with a note on its right or, where there is no room, above it.
 *
 * @returns {number} the bottom
 */
export function vector(page, { y, x = 0, width = page.width, label, note = "", values, most, height = 52 }) {
  const narrow = width < 460;
  const gutter = narrow ? 0 : 132;
  const top = narrow ? y + 18 : y;
  page.add(
    top + height + 4,
    narrow
      ? [
          text(x, y + 8, label, { kind: "label strong" }),
          text(x + width, y + 8, note, { anchor: "end", kind: "heading" }),
        ]
      : [
          text(x + gutter - 12, top + height / 2 - (note ? 9 : 0), label, {
            anchor: "end",
            kind: "label strong",
          }),
          text(x + gutter - 12, top + height / 2 + 9, note, { anchor: "end", kind: "heading" }),
        ],
    profile(values, { x: x + gutter, y: top, width: width - gutter, height, most }),
  );
  const cell = [(width - gutter) / values.length, height];
  page.area({
    x: x + gutter,
    y: top,
    cell,
    rows: 1,
    columns: values.length,
    text: (_, column) => `${label}, number ${column + 1}: ${decimal(values[column], 4)}`,
  });
  return top + height;
}

/** A sign between two vectors: +, =, × … */
export const sign = (page, y, symbol, note = "") => {
  const narrow = page.width < 460;
  const x = narrow ? 2 : 132 + (page.width - 132) / 2;
  const wide = textWidth(symbol, 15);
  page.add(
    y + 20,
    text(x, y + 10, symbol, { anchor: narrow ? "start" : "middle", kind: "sign" }),
    note && text(x + (narrow ? wide : wide / 2) + 12, y + 10, note, { kind: "heading" }),
  );
  return y + 22;
};
