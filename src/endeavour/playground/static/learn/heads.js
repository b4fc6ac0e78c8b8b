/* Learn, the heads of a layer side by side, and what the output map makes of their answers.
 *
 * Takes the view (see learn.js) and returns a figure's content.
 */

import { decimal, percent } from "../format.js";
import { el, rect, sequential, tableOf, text } from "../drawing.js";
import { entropy } from "../look/maps.js";
import { reach, sheet } from "./draw.js";
import { sign, vector } from "./vectors.js";

/** The weights of all heads of this layer, their answers side by side, and what the output map makes of them. */
export function heads(view) {
  const page = sheet(view.width);
  const { weights, joined, result, mixed } = view.data.attention;
  const columns = Math.min(weights.length, Math.max(2, Math.floor(view.width / 150)));
  const gap = 16;
  const size = (view.width - gap * (columns - 1)) / columns - 4;
  const [rows, keys] = [weights[0].length, view.real];
  const cell = Math.min(size / keys, 190 / rows);
  const height = cell * rows + 54;
  weights.forEach((values, h) => {
    const [x, y] = [(h % columns) * (size + gap) + 3, Math.floor(h / columns) * height];
    const lit = h === view.head;
    const own = values.map((row) => row.slice(0, keys));
    page.add(
      y + height,
      text(x - 2, y + 10, `head ${h + 1}`, { kind: lit ? "label strong lit" : "label strong" }),
      text(x - 2, y + 27, tendency(own, view.data.kind), { kind: "heading" }),
      rect(x - 2, y + 37, cell * keys + 4, cell * rows + 4, { rx: 3, class: lit ? "chosen" : "box" }),
      small(own, { x, y: y + 39, cell }),
      rect(x, y + 39 + view.q * cell, cell * keys, cell, { class: "row" }),
    );
    page.area({
      x,
      y: y + 39,
      cell: [cell, cell],
      rows,
      columns: keys,
      choose: () => view.chooseHead(h),
      text: (q, k) =>
        `head ${h + 1}: ${view.labels.queries[q]} → ${view.labels.keys[k]} ${percent(values[q][k])}`,
    });
  });
  let y = Math.ceil(weights.length / columns) * height + 14;
  const [own, added] = [joined[view.q], result[view.q]];
  y = vector(page, {
    y: y + 4,
    label: "side by side",
    note: view.labels.queries[view.q],
    values: own,
    height: 44,
    most: reach(own),
  });
  y = origins(page, view, y, own.length);
  y = sign(page, y, "× W", "the output map mixes them");
  vector(page, {
    y,
    label: "what is added",
    note: view.labels.queries[view.q],
    values: added,
    height: 44,
    most: reach(added),
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        own.map((value, c) => [
          c + 1,
          Math.floor(c / mixed[0].length) + 1,
          decimal(value, 4),
          decimal(added[c], 4),
        ]),
        ["number", "from head", "side by side", "after the output map"],
      ),
    json: { weights, joined: own, result: added },
  };
}

const CLEAR = 0.5; // share of all weight from which on a tendency is worth a name

/** Where a head of self-attention mostly looks in this sentence, or to how many places a head spreads. */
function tendency(values, kind) {
  const mean = (weight) => values.reduce((sum, row, q) => sum + (weight(row, q) ?? 0), 0) / values.length;
  const shares =
    kind === "cross"
      ? {}
      : {
          "at itself": mean((row, q) => row[q]),
          "one back": mean((row, q) => row[q - 1]),
          "one ahead": mean((row, q) => row[q + 1]),
          "at the first": mean((row, q) => (q > 1 ? row[0] : 0)),
          "at the last": mean((row, q) => (q < row.length - 2 ? row.at(-1) : 0)),
        };
  const [name, share] = Object.entries(shares).sort(([, a], [, b]) => b - a)[0] ?? ["", 0];
  if (share >= CLEAR) return `looks ${name}: ${percent(share)}`;
  return `about ${decimal(2 ** entropy(values), 1)} places each`;
}

/** A matrix of weights as eight shades of one colour: a path for each. */
function small(values, { x, y, cell }) {
  const levels = 8;
  const paths = new Map();
  values.forEach((row, q) =>
    row.forEach((value, k) => {
      const level = Math.round(value * levels);
      if (level)
        paths.set(
          level,
          `${paths.get(level) ?? ""}M${(x + k * cell).toFixed(1)} ${(y + q * cell).toFixed(1)}h${cell.toFixed(1)}v${cell.toFixed(1)}h${(-cell).toFixed(1)}z`,
        );
    }),
  );
  return [...paths].map(([level, d]) => el("path", { d, ...sequential(level / levels) }));
}

/** Marks below a vector which part of it came from which head. */
function origins(page, view, y, components) {
  const left = page.width < 460 ? 0 : 132;
  const width = view.data.attention.mixed[0].length;
  const scale = (page.width - left) / components;
  for (let h = 0; h * width < components; h++) {
    const [from, to] = [left + h * width * scale, left + Math.min((h + 1) * width, components) * scale];
    const lit = h === view.head;
    page.add(
      y + 20,
      el("line", { x1: from + 2, x2: to - 2, y1: y + 4, y2: y + 4, class: lit ? "bracket lit" : "bracket" }),
      text((from + to) / 2, y + 14, `head ${h + 1}`, {
        anchor: "middle",
        kind: lit ? "label small lit" : "heading",
      }),
    );
  }
  return y + 20;
}
