/* Learn, from a head's scores to its answer: the softmax and the weighted sum of the values.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { brief, decimal, percent } from "../format.js";
import { circle, el, polyline, rect, shortened, stroke, tableOf, text } from "../drawing.js";
import { heat, reach, room, sheet } from "./draw.js";

const MOST_ROWS = 14; // keys that are drawn one below the other; the others have too little weight to matter

/** The keys that the chosen query sees, with score and weight, the heaviest first. */
function ranked(view) {
  const { scores, visible, weights, query } = view.data.attention;
  const root = query[0].length ** 0.5;
  return view.labels.keys
    .map((name, k) => ({
      name,
      k,
      score: scores[view.q][k] / root,
      weight: weights[view.head][view.q][k],
      seen: visible[view.q][k],
    }))
    .filter((key) => key.seen)
    .sort((a, b) => b.weight - a.weight);
}

/** Scores on the curve of e^x, and the weights that come of them. */
export function softmax(view) {
  const page = sheet(view.width);
  const keys = ranked(view);
  const top = keys[0].score;
  const low = Math.min(-4, ...keys.map(({ score }) => score - top));
  const height = 190;
  const narrow = view.width < 560;
  const wide = narrow ? view.width : view.width * 0.46;
  const x = (score) => 14 + ((score - low) / -low) * (wide - 60);
  const y = (power) => 24 + (1 - power) * (height - 40);
  const along = [...Array(81).keys()].map((s) => low * (1 - s / 80));
  const d = polyline(along.map((score) => [x(score), y(Math.exp(score))]));
  page.add(
    height + 30,
    el("line", { x1: x(low), x2: x(0), y1: y(0), y2: y(0), class: "axis" }),
    stroke(d, "curve"),
    keys.map(({ score, k }) =>
      el("line", {
        x1: x(score - top),
        x2: x(score - top),
        y1: y(0),
        y2: y(Math.exp(score - top)),
        class: k === view.k ? "stem lit" : "stem",
      }),
    ),
    keys.map(({ score, k }) =>
      circle(x(score - top), y(Math.exp(score - top)), k === view.k ? 6 : 4.5, {
        class: k === view.k ? "dot lit" : "dot",
      }),
    ),
    text(x(0), y(1) - 12, `${keys[0].name} ${brief(top)}`, { anchor: "end", kind: "label" }),
    text(x(low), y(0) + 16, "lower score", { kind: "heading" }),
    text(x(0), y(0) + 16, "highest score", { anchor: "end", kind: "heading" }),
    text(x(low), 12, "e to the power of the score", { kind: "heading" }),
  );
  bars(page, {
    x: narrow ? 0 : wide + 24,
    y: narrow ? height + 44 : 4,
    width: narrow ? view.width : view.width - wide - 24,
    keys: keys.slice(0, MOST_ROWS),
    lit: view.k,
    choose: view.chooseKey,
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        keys.map(({ name, score, weight }) => [
          name,
          decimal(score, 3),
          decimal(Math.exp(score - top), 4),
          percent(weight),
        ]),
        ["key", "score", "e^(score − highest)", "weight"],
        `query “${view.labels.queries[view.q]}”`,
      ),
    json: keys,
  };
}

function bars(page, { x, y, width, keys, lit, choose }) {
  const left = room(
    keys.map(({ name }) => name),
    90,
  );
  const each = 20;
  const full = width - left - 56;
  page.add(y + 16, text(x + left, y + 8, "weights: their sum is 100 %", { kind: "heading" }));
  keys.forEach(({ name, k, weight }, i) => {
    const top = y + 20 + i * each;
    page.add(
      top + each,
      text(x + left - 8, top + 8, shortened(name, left - 10, 12), {
        anchor: "end",
        kind: k === lit ? "label small lit" : "label small",
      }),
      rect(x + left, top, Math.max(weight * full, 1), 15, {
        rx: 3,
        class: k === lit ? "share lit" : "share",
      }),
      text(x + left + weight * full + 6, top + 8, percent(weight), { kind: "label small" }),
    );
    page.area({ x, y: top, cell: [width, each], rows: 1, columns: 1, choose: () => choose(k) });
  });
}

/** Each value with its weight, and their sum: what the head answers. */
export function mix(view) {
  const page = sheet(view.width);
  const { value, mixed } = view.data.attention;
  const keys = ranked(view).slice(0, MOST_ROWS);
  const most = reach(keys.map(({ k }) => value[k]));
  const left =
    room(
      keys.map(({ name }) => name),
      90,
    ) + 100;
  const [cell, height] = [[(view.width - left) / value[0].length, 18], 18];
  page.add(
    20,
    text(left, 8, shortened("values, as strong as their weight", view.width - left, 11), { kind: "heading" }),
  );
  keys.forEach(({ name, k, weight }, i) => {
    const top = 20 + i * height;
    page.add(
      top + height,
      text(left - 108, top + 8, shortened(name, left - 112, 12), {
        anchor: "end",
        kind: k === view.k ? "label small lit" : "label small",
      }),
      rect(left - 100, top + 2, Math.max(34 * weight, 1), 13, { rx: 2, class: "share lit" }),
      text(left - 60, top + 8, percent(weight), { kind: "label small" }),
      el("g", { opacity: 0.15 + 0.85 * weight }, heat([value[k]], { x: left, y: top, cell, most })),
    );
  });
  page.area({
    x: left,
    y: 20,
    cell,
    rows: keys.length,
    columns: value[0].length,
    choose: (row) => view.chooseKey(keys[row].k),
    text: (row, column) =>
      `${percent(keys[row].weight)} × ${decimal(value[keys[row].k][column], 4)}, number ${column + 1} of “${keys[row].name}”`,
  });
  const y = 28 + keys.length * height;
  page.add(
    y + 22,
    el("line", { x1: left - 100, x2: view.width, y1: y - 4, y2: y - 4, class: "axis" }),
    text(left - 12, y + 9, "sum", { anchor: "end", kind: "label strong" }),
    heat([mixed[view.q]], { x: left, y, cell, most }),
  );
  page.area({
    x: left,
    y,
    cell,
    rows: 1,
    columns: mixed[0].length,
    text: (_, column) => `sum, number ${column + 1}: ${decimal(mixed[view.q][column], 4)}`,
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        mixed[view.q].map((total, c) => [
          c + 1,
          ...keys.map(({ k }) => decimal(value[k][c], 3)),
          decimal(total, 4),
        ]),
        ["number", ...keys.map(({ name, weight }) => `${name} (${percent(weight)})`), "weighted sum"],
      ),
    json: { weights: keys, mixed: mixed[view.q] },
  };
}
