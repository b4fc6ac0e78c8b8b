/* Learn, inside one attention head: queries, keys and values, their products, √d, the mask.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { decimal } from "../format.js";
import { diverging, el, matrix, shortened, svg, tableOf } from "../svg.js";
import { brief, fixed, reach, room, sheet, sign, strips, text, vector } from "./draw.js";

/** Queries, keys and values of all positions. */
export function project(view) {
  const page = sheet(view.width);
  const { attention, model, kind } = view.data;
  const keys = view.labels.keys.slice(0, view.real);
  const blocks = [
    ["queries", "what a piece looks for", view.labels.queries, attention.query, view.q, view.follow],
    ["keys", "what it is found by", keys, attention.key.slice(0, view.real), view.k, view.chooseKey],
    ["values", "what it hands over", keys, attention.value.slice(0, view.real), view.k, view.chooseKey],
  ];
  const side = view.width >= 680;
  const gap = 20;
  const each = side ? (view.width - 2 * gap) / 3 : view.width;
  const from = kind === "cross" ? ["from the decoder", "from the encoder", "from the encoder"] : ["", "", ""];
  let y = 0;
  blocks.forEach(([name, meaning, labels, values, lit, choose], i) => {
    const x = side ? i * (each + gap) : 0;
    const top = side ? 0 : y;
    const left = room(view.labels.all, side ? 64 : 90);
    page.add(top + 34,
      text(x + left, top + 8, name, { kind: "label strong" }),
      text(x + left, top + 25, [meaning, from[i]].filter(Boolean).join(", "), { kind: "heading" }));
    y = strips(page, { x, y: top + 34, width: each, left, title: `${model.width} → ${values[0].length} numbers`, labels, values, lit, choose }) + 16;
  });
  const width = attention.query[0].length;
  const [q, k] = [attention.query[view.q], attention.key[view.k]];
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf([...Array(width).keys()].map((c) => [c + 1, ...[q[c], k[c], attention.value[view.k][c]].map((value) => decimal(value, 4))]),
      ["number", `query of “${view.labels.queries[view.q]}”`, `key of “${keys[view.k]}”`, `value of “${keys[view.k]}”`]),
    json: { query: attention.query, key: attention.key, value: attention.value },
  };
}

/** Side of a matrix's squares that fits the width, at most 34 and at least 9. */
const fitting = (view, columns) => Math.max(9, Math.min(34, Math.floor((view.width - 122) / columns)));

/** A matrix of queries by keys that follows the choice, with its table. */
function grid(view, { values, colour, digits = 1, columns }) {
  const rows = view.labels.queries;
  const cell = fitting(view, columns.length);
  const { node, highlight } = matrix({
    rows, columns, values, cell, colour, labels: view.width < 420 ? 76 : 110,
    format: (value) => (cell >= 28 ? fixed(value, digits) : ""),
    onHover: (row, column) => {
      if (row === null || column === null) return view.tooltip.hide();
      const value = values[row][column];
      return view.tooltip.show(node, `${rows[row]} → ${columns[column]}: ${value === null ? "−∞" : decimal(value, 4)}`);
    },
    onChoose: (row, column) => view.chooseCell(row, column),
  });
  highlight(view.q, view.k);
  return node;
}

const gridTable = (view, values, columns, write = (value) => decimal(value, 4)) => () =>
  tableOf(values.map((row, q) => [view.labels.queries[q], ...row.map((value) => (value === null ? "−∞" : write(value)))]), ["query", ...columns]);

/** A matrix and further drawings, beside it where there is room for 300 px, else beneath it. */
function beside(view, first, draw) {
  const [width, height] = ["width", "height"].map((name) => Number(first.getAttribute(name)));
  const gap = 28;
  const side = view.width - width - gap >= 300;
  const second = draw(sheet(side ? view.width - width - gap : view.width), side ? height : null);
  second.setAttribute("x", side ? width + gap : 0);
  second.setAttribute("y", side ? 0 : height + 20);
  const below = Number(second.getAttribute("height"));
  const [wide, tall] = [Math.max(width, view.width), side ? Math.max(height, below) : height + 20 + below];
  return svg(wide, tall, first, second);
}

/** The products of each query with each key, and one of them number by number. */
export function scores(view) {
  const { scores: all, query, key } = view.data.attention;
  const values = all.map((row) => row.slice(0, view.real));
  const most = Math.max(...values.flat().map(Math.abs), 1e-6);
  const columns = view.labels.keys.slice(0, view.real);
  const first = grid(view, { values, colour: (value) => diverging(value / most), columns });
  const [q, k] = [query[view.q], key[view.k]];
  const products = q.map((value, c) => value * k[c]);
  const total = brief(values[view.q][view.k]);
  const second = (page, room) => {
    const most = reach(q, k);
    let y = room ? Math.max(0, (room - 280) / 2) : 4;
    y = vector(page, { y, label: view.labels.queries[view.q], note: "query", values: q, most, height: 48 });
    y = sign(page, y, "×");
    y = vector(page, { y, label: columns[view.k], note: "key", values: k, most, height: 48 });
    y = sign(page, y, "=");
    vector(page, { y, label: "products", note: `sum ${total}`, values: products, most: reach(products), height: 56 });
    return page.finish(view.tooltip);
  };
  return {
    graphic: beside(view, first, second),
    table: gridTable(view, values, columns),
    json: { queries: view.labels.queries, keys: columns, scores: values },
  };
}

/** What division by √d does to the scores of one query, and to the weights that would follow. */
export function scale(view) {
  const page = sheet(view.width);
  const d = view.data.attention.query[0].length;
  const raw = view.data.attention.scores[view.q].filter((_, k) => view.data.attention.visible[view.q][k]);
  const names = view.labels.keys.filter((_, k) => view.data.attention.visible[view.q][k]);
  const scaled = raw.map((value) => value / d ** 0.5);
  const [low, high] = [Math.min(0, ...raw), Math.max(0, ...raw)];
  const left = view.width < 460 ? 0 : 132;
  const x = (value) => left + 12 + ((value - low) / (high - low || 1)) * (view.width - left - 24);
  const lines = [[raw, "Q · K"], [scaled, `÷ √${d} = ÷ ${brief(d ** 0.5)}`]];
  lines.forEach(([values, name], i) => {
    const y = 44 + i * 96;
    page.add(y + 40,
      text(left ? left - 12 : 0, left ? y : y - 24, name, { anchor: left ? "end" : "start", kind: "label strong" }),
      el("line", { x1: x(low), x2: x(high), y1: y, y2: y, class: "axis" }),
      el("line", { x1: x(0), x2: x(0), y1: y - 8, y2: y + 8, class: "axis" }), text(x(0), y + 18, "0", { anchor: "middle", kind: "heading" }),
      values.map((value, k) => el("circle", { cx: x(value), cy: y, r: k === view.best ? 7 : 5, class: k === view.best ? "dot lit" : "dot soft" })),
      text(x(values[view.best]), y - 16, `${names[view.best]} ${brief(values[view.best])}`, { anchor: x(values[view.best]) > view.width - 80 ? "end" : "middle", kind: "label lit" }));
  });
  page.add(140, raw.map((value, k) => el("line", { x1: x(value), y1: 52, x2: x(scaled[k]), y2: 132, class: "fall" })));
  compare(page, { y: 196, names, raw, scaled, best: view.best });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(names.map((name, k) => [name, decimal(raw[k], 3), decimal(scaled[k], 3), decimal(shares(raw)[k], 3), decimal(shares(scaled)[k], 3)]), ["key", "Q · K", `÷ √${d}`, "weight without ÷", "weight with ÷"], `query “${view.labels.queries[view.q]}”`),
    json: { keys: names, raw, scaled },
  };
}

/** The softmax of some scores. */
export function shares(values) {
  const most = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

function compare(page, { y, names, raw, scaled, best }) {
  const left = page.width < 460 ? 0 : 132;
  const width = page.width - left;
  [["weights without it", shares(raw)], ["weights with it", shares(scaled)]].forEach(([name, weights], i) => {
    const top = y + i * 52 + (left ? 0 : 14);
    let x = left;
    page.add(top + 32, left ? text(left - 12, top + 13, name, { anchor: "end" }) : text(0, top - 9, name));
    weights.forEach((weight, k) => {
      const own = weight * width;
      page.add(top + 32, el("rect", { x, y: top, width: Math.max(own - 1, 0.3), height: 26, rx: 3, class: k === best ? "share lit" : "share" }),
        own > 62 && text(x + 8, top + 13, `${names[k]} ${Math.round(100 * weight)} %`, { kind: k === best ? "label on-share lit" : "label on-share" }));
      x += own;
    });
  });
}

/** The scores with what is hidden: padding or the future. */
export function mask(view) {
  const { scores: all, visible } = view.data.attention;
  const d = view.data.attention.query[0].length ** 0.5;
  const values = all.map((row, q) => row.map((value, k) => (visible[q][k] ? value / d : null)));
  const most = Math.max(...values.flat().filter((value) => value !== null).map(Math.abs), 1e-6);
  const columns = view.labels.keys;
  const first = grid(view, { values, colour: (value) => diverging(value / most), columns });
  const reason = view.data.kind === "decoder" ? "comes later in the translation" : "padding";
  const second = (page, room) => {
    const y = room ? room / 2 - 24 : 0;
    page.add(y + 48,
      el("rect", { x: 1, y: y + 1, width: 18, height: 18, class: "frame", fill: "none" }), el("path", { class: "masked", d: `M4 ${y + 16}L16 ${y + 4}` }),
      text(28, y + 10, shortened(`−∞, no weight: ${reason}`, page.width - 30, 12), { kind: "label small" }),
      el("rect", { x: 1, y: y + 27, width: 18, height: 18, ...diverging(0.6) }),
      text(28, y + 36, "may be seen: its score counts", { kind: "label small" }));
    return page.finish(view.tooltip);
  };
  return {
    graphic: beside(view, first, second),
    table: gridTable(view, values, columns),
    json: { queries: view.labels.queries, keys: columns, visible },
  };
}
