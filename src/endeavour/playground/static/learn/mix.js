/* Learn, from a head's scores to what attention adds: softmax, the weighted sum, the heads side by side.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { decimal, percent } from "../format.js";
import { el, sequential, shortened, tableOf } from "../svg.js";
import { brief, heat, reach, room, sheet, sign, text, vector } from "./draw.js";

const MOST_ROWS = 14; // keys that are drawn one below the other; the others have too little weight to matter

/** The keys that the chosen query sees, with score and weight, the heaviest first. */
function ranked(view) {
  const { scores, visible, weights, query } = view.data.attention;
  const root = query[0].length ** 0.5;
  return view.labels.keys
    .map((name, k) => ({ name, k, score: scores[view.q][k] / root, weight: weights[view.head][view.q][k], seen: visible[view.q][k] }))
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
  const d = [...Array(81).keys()].map((s) => {
    const score = low * (1 - s / 80);
    return `${s ? "L" : "M"}${x(score).toFixed(1)} ${y(Math.exp(score)).toFixed(1)}`;
  }).join("");
  page.add(height + 30,
    el("line", { x1: x(low), x2: x(0), y1: y(0), y2: y(0), class: "axis" }),
    el("path", { d, class: "curve", fill: "none" }),
    keys.map(({ score, k }) => el("line", { x1: x(score - top), x2: x(score - top), y1: y(0), y2: y(Math.exp(score - top)), class: k === view.k ? "stem lit" : "stem" })),
    keys.map(({ score, k }) => el("circle", { cx: x(score - top), cy: y(Math.exp(score - top)), r: k === view.k ? 6 : 4.5, class: k === view.k ? "dot lit" : "dot" })),
    text(x(0), y(1) - 12, `${keys[0].name} ${brief(top)}`, { anchor: "end", kind: "label" }),
    text(x(low), y(0) + 16, "lower score", { kind: "heading" }), text(x(0), y(0) + 16, "highest score", { anchor: "end", kind: "heading" }),
    text(x(low), 12, "e to the power of the score", { kind: "heading" }));
  bars(page, { x: narrow ? 0 : wide + 24, y: narrow ? height + 44 : 4, width: narrow ? view.width : view.width - wide - 24, keys: keys.slice(0, MOST_ROWS), lit: view.k, choose: view.chooseKey });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(keys.map(({ name, score, weight }) => [name, decimal(score, 3), decimal(Math.exp(score - top), 4), percent(weight)]), ["key", "score", "e^(score − highest)", "weight"], `query “${view.labels.queries[view.q]}”`),
    json: keys,
  };
}

function bars(page, { x, y, width, keys, lit, choose }) {
  const left = room(keys.map(({ name }) => name), 90);
  const each = 20;
  const full = width - left - 56;
  page.add(y + 16, text(x + left, y + 8, "weights: their sum is 100 %", { kind: "heading" }));
  keys.forEach(({ name, k, weight }, i) => {
    const top = y + 20 + i * each;
    page.add(top + each,
      text(x + left - 8, top + 8, shortened(name, left - 10, 12), { anchor: "end", kind: k === lit ? "label small lit" : "label small" }),
      el("rect", { x: x + left, y: top, width: Math.max(weight * full, 1), height: 15, rx: 3, class: k === lit ? "share lit" : "share" }),
      text(x + left + weight * full + 6, top + 8, percent(weight), { kind: "label small" }));
    page.area({ x, y: top, cell: [width, each], rows: 1, columns: 1, choose: () => choose(k) });
  });
}

/** Each value with its weight, and their sum: what the head answers. */
export function mix(view) {
  const page = sheet(view.width);
  const { value, mixed } = view.data.attention;
  const keys = ranked(view).slice(0, MOST_ROWS);
  const most = reach(keys.map(({ k }) => value[k]));
  const left = room(keys.map(({ name }) => name), 90) + 100;
  const [cell, height] = [[(view.width - left) / value[0].length, 18], 18];
  page.add(20, text(left, 8, shortened("values, as strong as their weight", view.width - left, 11), { kind: "heading" }));
  keys.forEach(({ name, k, weight }, i) => {
    const top = 20 + i * height;
    page.add(top + height,
      text(left - 108, top + 8, shortened(name, left - 112, 12), { anchor: "end", kind: k === view.k ? "label small lit" : "label small" }),
      el("rect", { x: left - 100, y: top + 2, width: Math.max(34 * weight, 1), height: 13, rx: 2, class: "share lit" }),
      text(left - 60, top + 8, percent(weight), { kind: "label small" }),
      el("g", { opacity: 0.15 + 0.85 * weight }, heat([value[k]], { x: left, y: top, cell, most })));
  });
  page.area({ x: left, y: 20, cell, rows: keys.length, columns: value[0].length, choose: (row) => view.chooseKey(keys[row].k),
    text: (row, column) => `${percent(keys[row].weight)} × ${decimal(value[keys[row].k][column], 4)}, number ${column + 1} of “${keys[row].name}”` });
  const y = 28 + keys.length * height;
  page.add(y + 22, el("line", { x1: left - 100, x2: view.width, y1: y - 4, y2: y - 4, class: "axis" }),
    text(left - 12, y + 9, "sum", { anchor: "end", kind: "label strong" }), heat([mixed[view.q]], { x: left, y, cell, most }));
  page.area({ x: left, y, cell, rows: 1, columns: mixed[0].length, text: (_, column) => `sum, number ${column + 1}: ${decimal(mixed[view.q][column], 4)}` });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(mixed[view.q].map((total, c) => [c + 1, ...keys.map(({ k }) => decimal(value[k][c], 3)), decimal(total, 4)]), ["number", ...keys.map(({ name, weight }) => `${name} (${percent(weight)})`), "weighted sum"]),
    json: { weights: keys, mixed: mixed[view.q] },
  };
}

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
    page.add(y + height,
      text(x - 2, y + 10, `head ${h + 1}`, { kind: lit ? "label strong lit" : "label strong" }),
      text(x - 2, y + 27, tendency(own, view.data.kind), { kind: "heading" }),
      el("rect", { x: x - 2, y: y + 37, width: cell * keys + 4, height: cell * rows + 4, rx: 3, class: lit ? "chosen" : "box" }),
      small(own, { x, y: y + 39, cell }),
      el("rect", { x, y: y + 39 + view.q * cell, width: cell * keys, height: cell, class: "row" }));
    page.area({ x, y: y + 39, cell: [cell, cell], rows, columns: keys, choose: () => view.chooseHead(h),
      text: (q, k) => `head ${h + 1}: ${view.labels.queries[q]} → ${view.labels.keys[k]} ${percent(values[q][k])}` });
  });
  let y = Math.ceil(weights.length / columns) * height + 14;
  const [own, added] = [joined[view.q], result[view.q]];
  y = vector(page, { y: y + 4, label: "side by side", note: view.labels.queries[view.q], values: own, height: 44, most: reach(own) });
  y = segments(page, view, y, own.length);
  y = sign(page, y, "× W", "the output map mixes them");
  vector(page, { y, label: "what is added", note: view.labels.queries[view.q], values: added, height: 44, most: reach(added) });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(own.map((value, c) => [c + 1, Math.floor(c / mixed[0].length) + 1, decimal(value, 4), decimal(added[c], 4)]), ["number", "from head", "side by side", "after the output map"]),
    json: { weights, joined: own, result: added },
  };
}

const CLEAR = 0.5; // share of all weight from which on a tendency is worth a name

/** Where a head of self-attention mostly looks in this sentence, or to how many places a head spreads. */
function tendency(values, kind) {
  const mean = (weight) => values.reduce((sum, row, q) => sum + (weight(row, q) ?? 0), 0) / values.length;
  const shares = kind === "cross" ? {} : {
    "at itself": mean((row, q) => row[q]),
    "one back": mean((row, q) => row[q - 1]),
    "one ahead": mean((row, q) => row[q + 1]),
    "at the first": mean((row, q) => (q > 1 ? row[0] : 0)),
    "at the last": mean((row, q) => (q < row.length - 2 ? row.at(-1) : 0)),
  };
  const [name, share] = Object.entries(shares).sort(([, a], [, b]) => b - a)[0] ?? ["", 0];
  if (share >= CLEAR) return `looks ${name}: ${percent(share)}`;
  const bits = mean((row) => -row.reduce((sum, weight) => sum + (weight > 0 ? weight * Math.log2(weight) : 0), 0));
  return `about ${decimal(2 ** bits, 1)} places each`;
}

/** A matrix of weights as four shades of one colour: a path for each. */
function small(values, { x, y, cell }) {
  const levels = 8;
  const paths = new Map();
  values.forEach((row, q) => row.forEach((value, k) => {
    const level = Math.round(value * levels);
    if (level) paths.set(level, `${paths.get(level) ?? ""}M${(x + k * cell).toFixed(1)} ${(y + q * cell).toFixed(1)}h${cell.toFixed(1)}v${cell.toFixed(1)}h${(-cell).toFixed(1)}z`);
  }));
  return [...paths].map(([level, d]) => el("path", { d, ...sequential(level / levels) }));
}

/** Marks below a vector which part of it came from which head. */
function segments(page, view, y, components) {
  const left = page.width < 460 ? 0 : 132;
  const width = view.data.attention.mixed[0].length;
  const scale = (page.width - left) / components;
  for (let h = 0; h * width < components; h++) {
    const [from, to] = [left + h * width * scale, left + Math.min((h + 1) * width, components) * scale];
    const lit = h === view.head;
    page.add(y + 20, el("line", { x1: from + 2, x2: to - 2, y1: y + 4, y2: y + 4, class: lit ? "bracket lit" : "bracket" }),
      text((from + to) / 2, y + 14, `head ${h + 1}`, { anchor: "middle", kind: lit ? "label small lit" : "heading" }));
  }
  return y + 20;
}
