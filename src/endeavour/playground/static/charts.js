/* What several views draw: a matrix of weights, lines between two columns of words, bars.
 *
 * Knows numbers and labels; not where they come from. Highlighting touches a handful of elements, however large the
 * graphic is.
 */

import { el, onFill, rect, round, sequential, shortened, stroke, svg, text, textWidth } from "./drawing.js";

const FAINTEST = 0.004; // fills that nobody can see are not drawn: most of a large matrix

/**
 * A matrix: a row for each query, a column for each key, a square for each weight.
 *
 * @param {object} options
 * @param {string[]} options.rows labels on the left
 * @param {string[]} options.columns labels above, turned
 * @param {number[][]} options.values [row][column]; null marks a masked square
 * @param {number} options.width what it may take, in CSS pixels
 * @param {[number, number]} options.sides the least and the most that a square's side may be
 * @param {(value: number) => object} [options.colour] attributes of a fill; `sequential` unless told
 * @param {(value: number, cell: number) => string} [options.format] what is written into a square of that side, if it
 *   is large enough; "" for nothing
 * @param {number} [options.labels] room for labels, in CSS pixels
 * @param {(row: number | null, column: number | null) => void} [options.onHover]
 * @param {(row: number, column: number) => void} [options.onChoose]
 * @returns {{node: SVGElement, cell: number, highlight: (row: number | null, column: number | null) => void}}
 *   `cell`: a square's side
 */
export function matrix({
  rows,
  columns,
  values,
  width,
  sides: [least, most],
  colour = sequential,
  format,
  labels = 110,
  ...on
}) {
  const widest = (texts) => Math.min(labels, Math.max(...texts.map((one) => textWidth(one)), 10));
  const left = widest(rows) + 12;
  const top = widest(columns) + 12;
  const cell = Math.max(least, Math.min(most, Math.floor((width - left - 4) / columns.length)));
  const [right, bottom] = [left + columns.length * cell, top + rows.length * cell];
  const x = (column) => left + column * cell;
  const y = (row) => top + row * cell;

  const squares = [];
  const masked = []; // one path for all of them: half of a large matrix may be masked
  values.forEach((weights, row) =>
    weights.forEach((value, column) => {
      if (value === null) masked.push(`M${x(column) + 4} ${y(row) + cell - 4}l${cell - 8} ${8 - cell}`);
      else squares.push(square(value, x(column), y(row), cell, colour, format));
    }),
  );
  const rowLabels = rows.map((name, row) =>
    text(left - 8, y(row) + cell / 2, shortened(name, labels), { anchor: "end" }),
  );
  const columnLabels = columns.map((name, column) => {
    const [cx, cy] = [x(column) + cell / 2, top - 8];
    return text(cx, cy, shortened(name, labels), { transform: `rotate(-90 ${cx} ${cy})` });
  });
  const band = { class: "band", fill: "none", rx: 3, visibility: "hidden" };
  const rowBand = el("rect", { ...band, x: left, width: columns.length * cell, height: cell });
  const columnBand = el("rect", { ...band, y: top, width: cell, height: rows.length * cell });
  const frame = rect(left, top, right - left, bottom - top, { class: "frame", fill: "none" });
  const node = svg(
    Math.ceil(right) + 2,
    Math.ceil(bottom) + 2,
    el("path", { class: "masked", d: masked.join("") }),
    squares,
    frame,
    rowLabels,
    columnLabels,
    rowBand,
    columnBand,
  );

  const lit = { row: null, column: null };
  function highlight(row, column) {
    rowLabels[lit.row]?.classList.remove("lit");
    columnLabels[lit.column]?.classList.remove("lit");
    [lit.row, lit.column] = [row, column];
    rowLabels[row]?.classList.add("lit");
    columnLabels[column]?.classList.add("lit");
    place(rowBand, row, "y", y);
    place(columnBand, column, "x", x);
  }
  listen(node, on, ({ offsetX, offsetY }) => [
    index((offsetY - top) / cell, rows.length),
    index((offsetX - left) / cell, columns.length),
  ]);
  return { node, cell, highlight };
}

function square(value, x, y, cell, colour, format) {
  const fill = colour(value);
  if (fill["fill-opacity"] < FAINTEST) return null;
  const written = format && cell >= 22 ? format(value, cell) : "";
  const style = { anchor: "middle", kind: `value ${onFill(fill)}` };
  return [rect(x, y, cell, cell, fill), written && text(x + cell / 2, y + cell / 2, written, style)];
}

function place(band, position, attribute, at) {
  band.setAttribute("visibility", position === null || position === undefined ? "hidden" : "visible");
  if (position !== null && position !== undefined) band.setAttribute(attribute, at(position));
}

const index = (value, length) => (value >= 0 && value < length ? Math.floor(value) : null);

function listen(node, { onHover, onChoose }, locate) {
  if (onHover) {
    node.addEventListener("pointermove", (event) => onHover(...locate(event)));
    node.addEventListener("pointerleave", () => onHover(null, null));
  }
  if (onChoose) {
    node.addEventListener("click", (event) => {
      const [row, column] = locate(event);
      if (row !== null || column !== null) onChoose(row, column);
    });
  }
}

/**
 * Lines between two columns of words, as wide as the weight is large.
 *
 * @param {object} options
 * @param {string[]} options.left the words that attend
 * @param {string[]} options.right the words attended to
 * @param {number[][]} options.values [left][right]
 * @param {[string, string]} options.titles above the columns
 * @param {number} options.width
 * @param {number} options.row height of a word in CSS pixels
 * @param {(left: number | null, right: number | null) => void} [options.onHover]
 * @param {(left: number | null, right: number | null) => void} [options.onChoose]
 * @returns {{node: SVGElement, highlight: (left: number | null, right: number | null) => void}}
 */
export function links({ left, right, values, titles, width, row, ...on }) {
  const longest = Math.min(130, 0.3 * width);
  const labels = Math.min(longest, Math.max(...[...left, ...right].map((one) => textWidth(one)))) + 12;
  const top = 30;
  const height = top + Math.max(left.length, right.length) * row;
  const middle = (position, count) => top + (height - top - count * row) / 2 + (position + 0.5) * row;
  const [from, to] = [labels, width - labels];
  const bend = (to - from) * 0.45;
  const lines = left.map((_, i) =>
    el(
      "g",
      {},
      right.map((_, j) => {
        const weight = values[i][j] ?? 0;
        if (weight < 0.02) return null;
        const [y1, y2] = [middle(i, left.length), middle(j, right.length)];
        const d = `M${from} ${y1}C${from + bend} ${y1} ${to - bend} ${y2} ${to} ${y2}`;
        return stroke(d, "link", {
          "stroke-width": 0.5 + 6 * weight,
          "stroke-opacity": round(0.12 + 0.8 * weight),
          "data-to": j,
        });
      }),
    ),
  );
  const words = (texts, x, anchor) =>
    texts.map((one, i) => text(x, middle(i, texts.length), shortened(one, longest), { anchor }));
  const [leftWords, rightWords] = [words(left, from - 8, "end"), words(right, to + 8, "start")];
  const heads = [
    text(from - 8, 14, titles[0], { anchor: "end", kind: "heading", dy: 0 }),
    text(to + 8, 14, titles[1], { kind: "heading", dy: 0 }),
  ];
  const node = svg(width, Math.ceil(height) + 4, lines, leftWords, rightWords, heads);

  // A word on the left lights its own lines; one on the right, without it, all lines that lead there.
  function highlight(i, j) {
    node.classList.toggle("some-lit", i !== null || j !== null);
    lines.forEach((group, at) => group.classList.toggle("lit", at === i));
    for (const line of node.querySelectorAll("path.lit")) line.classList.remove("lit");
    if (i === null && j !== null) {
      for (const line of node.querySelectorAll(`path[data-to="${j}"]`)) line.classList.add("lit");
    }
    leftWords.forEach((word, at) => word.classList.toggle("lit", at === i));
    rightWords.forEach((word, at) => word.classList.toggle("lit", at === j));
  }
  listen(node, on, ({ offsetX, offsetY }) => {
    const side = (count) => index((offsetY - middle(0, count) + row / 2) / row, count);
    if (offsetX < from + bend / 2) return [side(left.length), null];
    return offsetX > to - bend / 2 ? [null, side(right.length)] : [null, null];
  });
  return { node, highlight };
}

/**
 * Bars from left to right, each with its label beneath and its number above.
 *
 * @param {{labels: string[], values: number[], most: number, width: number, format: (value: number) => string}} options
 *   `most`: the value of a bar of full height
 * @returns {SVGElement}
 */
export function bars({ labels, values, most, width, format }) {
  const [height, base] = [108, 84];
  const step = Math.max(26, Math.min(64, width / labels.length));
  const style = { anchor: "middle", kind: "heading", dy: 0 };
  const drawn = labels.map((name, i) => {
    const size = Math.max(1, 62 * Math.min(1, values[i] / most));
    const middle = (i + 0.5) * step;
    return [
      rect(middle - step * 0.3, base - size, step * 0.6, size, { class: "bar-shape", rx: 3 }),
      text(middle, base - size - 5, format(values[i]), style),
      text(middle, height - 8, shortened(name, step - 4, 11), style),
    ];
  });
  return svg(Math.ceil(step * labels.length), height, drawn);
}
