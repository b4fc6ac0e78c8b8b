/* Learn, inside one attention head: queries, keys and values, their products, the mask.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { brief, decimal, fixed } from "../format.js";
import { matrix } from "../charts.js";
import { diverging, el, rect, shortened, svg, tableOf, text } from "../drawing.js";
import { reach, room, sheet } from "./draw.js";
import { sign, strips, vector } from "./vectors.js";
import { tooltip } from "../tooltip.js";

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
    page.add(
      top + 34,
      text(x + left, top + 8, name, { kind: "label strong" }),
      text(x + left, top + 25, [meaning, from[i]].filter(Boolean).join(", "), { kind: "heading" }),
    );
    y =
      strips(page, {
        x,
        y: top + 34,
        width: each,
        left,
        title: `${model.width} → ${values[0].length} numbers`,
        labels,
        values,
        lit,
        choose,
      }) + 16;
  });
  const width = attention.query[0].length;
  const [q, k] = [attention.query[view.q], attention.key[view.k]];
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        [...Array(width).keys()].map((c) => [
          c + 1,
          ...[q[c], k[c], attention.value[view.k][c]].map((value) => decimal(value, 4)),
        ]),
        [
          "number",
          `query of “${view.labels.queries[view.q]}”`,
          `key of “${keys[view.k]}”`,
          `value of “${keys[view.k]}”`,
        ],
      ),
    json: { query: attention.query, key: attention.key, value: attention.value },
  };
}

const FAINT = 0.005; // the least fill of a square, so that its number is written too

/** A matrix of queries by keys that follows the choice. */
function grid(view, { values, columns }) {
  const most = Math.max(...values.flat().map((value) => Math.abs(value ?? 0)), 1e-6);
  const colour = (value) => {
    const fill = diverging(value / most);
    return { ...fill, "fill-opacity": Math.max(FAINT, fill["fill-opacity"]) };
  };
  const rows = view.labels.queries;
  const { node, highlight } = matrix({
    rows,
    columns,
    values,
    width: view.width,
    sides: [9, 34],
    colour,
    labels: view.width < 420 ? 76 : 110,
    format: (value, cell) => (cell >= 28 ? fixed(value, 1) : ""),
    onHover: (row, column) => {
      const value = values[row]?.[column];
      if (value === undefined) tooltip.hide();
      else
        tooltip.show(
          node,
          `${rows[row]} → ${columns[column]}: ${value === null ? "−∞" : decimal(value, 4)}`,
        );
    },
    onChoose: (row, column) => view.chooseCell(row, column),
  });
  highlight(view.q, view.k);
  return node;
}

const gridTable =
  (view, values, columns, write = (value) => decimal(value, 4)) =>
  () =>
    tableOf(
      values.map((row, q) => [
        view.labels.queries[q],
        ...row.map((value) => (value === null ? "−∞" : write(value))),
      ]),
      ["query", ...columns],
    );

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
  const columns = view.labels.keys.slice(0, view.real);
  const first = grid(view, { values, columns });
  const [q, k] = [query[view.q], key[view.k]];
  const products = q.map((value, c) => value * k[c]);
  const total = brief(values[view.q][view.k]);
  const second = (page, height) => {
    const most = reach(q, k);
    let y = height ? Math.max(0, (height - 280) / 2) : 4;
    y = vector(page, { y, label: view.labels.queries[view.q], note: "query", values: q, most, height: 48 });
    y = sign(page, y, "×");
    y = vector(page, { y, label: columns[view.k], note: "key", values: k, most, height: 48 });
    y = sign(page, y, "=");
    vector(page, {
      y,
      label: "products",
      note: `sum ${total}`,
      values: products,
      most: reach(products),
      height: 56,
    });
    return page.finish();
  };
  return {
    graphic: beside(view, first, second),
    table: gridTable(view, values, columns),
    json: { queries: view.labels.queries, keys: columns, scores: values },
  };
}

/** The scores with what is hidden: padding or the future. */
export function mask(view) {
  const { scores: all, visible } = view.data.attention;
  const d = view.data.attention.query[0].length ** 0.5;
  const values = all.map((row, q) => row.map((value, k) => (visible[q][k] ? value / d : null)));
  const columns = view.labels.keys;
  const first = grid(view, { values, columns });
  const reason = view.data.kind === "decoder" ? "comes later in the translation" : "padding";
  const second = (page, height) => {
    const y = height ? height / 2 - 24 : 0;
    page.add(
      y + 48,
      rect(1, y + 1, 18, 18, { class: "frame", fill: "none" }),
      el("path", { class: "masked", d: `M4 ${y + 16}L16 ${y + 4}` }),
      text(28, y + 10, shortened(`−∞, no weight: ${reason}`, page.width - 30, 12), { kind: "label small" }),
      rect(1, y + 27, 18, 18, diverging(0.6)),
      text(28, y + 36, "may be seen: its score counts", { kind: "label small" }),
    );
    return page.finish();
  };
  return {
    graphic: beside(view, first, second),
    table: gridTable(view, values, columns),
    json: { queries: view.labels.queries, keys: columns, visible },
  };
}
