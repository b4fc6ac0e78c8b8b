/* Learn, the feed-forward block: wider, through the activation, and back.
 *
 * Takes the view (see learn.js) and returns a figure's content.
 */

import { decimal } from "../format.js";
import { circle, el, polyline, rect, stroke, tableOf, text } from "../drawing.js";
import { reach, sheet } from "./draw.js";
import { sign, vector } from "./vectors.js";

const CURVES = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
  swiglu: (x) => x / (1 + Math.exp(-x)),
};
const NAMES = { relu: "ReLU", gelu: "GELU", silu: "SiLU", swiglu: "SiLU, of the gate" };

/** Wider, through the activation, and back. */
export function feedForward(view) {
  const page = sheet(view.width);
  const { feed_forward: block, model } = view.data;
  const q = view.q;
  const inner = block.inner[0][q];
  const active = block.active[q];
  const options = { height: 46 };
  const [left, size] = [view.width < 460 ? 0 : 132, 150];
  let y = vector(page, {
    ...options,
    y: 4,
    label: view.labels.queries[q],
    note: `${model.width} numbers`,
    values: block.entering[q],
    most: reach(block.entering[q]),
  });
  y = sign(page, y, "× W₁", `${model.feed_forward} numbers`);
  y = vector(page, {
    ...options,
    y,
    label: block.inner.length > 1 ? "gate" : "inner",
    note: "before",
    values: inner,
    most: reach(inner),
  });
  y =
    curve(page, {
      x: left + Math.max(0, (view.width - left - size) / 2),
      y: y + 8,
      size,
      values: inner,
      name: model.activation,
    }) + 8;
  if (block.inner.length > 1) {
    y = vector(page, {
      ...options,
      y,
      label: "value",
      note: "times the gate",
      values: block.inner[1][q],
      most: reach(block.inner[1][q]),
    });
    y = sign(page, y, "=");
  }
  y = vector(page, { ...options, y, label: "inner", note: "after", values: active, most: reach(inner) });
  y = sign(page, y, "× W₂", `${model.width} numbers again`);
  vector(page, {
    ...options,
    y,
    label: "what is added",
    note: "to the stream",
    values: block.result[q],
    most: reach(block.result[q]),
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        inner.map((value, c) => [
          c + 1,
          ...block.inner.map((half) => decimal(half[q][c], 4)),
          decimal(active[c], 4),
        ]),
        ["inner number", ...(block.inner.length > 1 ? ["gate", "value"] : ["before"]), "after"],
        `“${view.labels.queries[q]}”`,
      ),
    json: {
      entering: block.entering[q],
      inner: block.inner.map((half) => half[q]),
      active,
      result: block.result[q],
    },
  };
}

function curve(page, { x, y, size, values, name }) {
  const most = Math.max(reach(values), 1);
  const at = (value) => x + ((value + most) / (2 * most)) * size;
  const up = (value) => y + size * 0.86 - (Math.min(value, most) / most) * size * 0.78;
  const inside = values.filter((value) => Math.abs(value) <= most);
  const along = [...Array(61).keys()].map((s) => -most + (2 * most * s) / 60);
  const d = polyline(along.map((value) => [at(value), up(CURVES[name](value))]));
  page.add(
    y + size + 6,
    rect(x - 8, y, size + 16, size, { rx: 6, class: "ground" }),
    el("line", { x1: at(-most), x2: at(most), y1: up(0), y2: up(0), class: "axis" }),
    el("line", { x1: at(0), x2: at(0), y1: up(most), y2: up(0) + 8, class: "axis" }),
    stroke(d, "curve"),
    inside.map((value) =>
      circle(at(value).toFixed(1), up(CURVES[name](value)).toFixed(1), 2, { class: "dot soft" }),
    ),
    text(x, y + 14, NAMES[name], { kind: "label small strong" }),
  );
  return y + size + 6;
}
