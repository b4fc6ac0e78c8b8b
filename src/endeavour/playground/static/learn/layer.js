/* Learn, around attention: the residual stream, layer norm, Add & Norm, the feed-forward block, the stack of layers.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { decimal, label, percent } from "../format.js";
import { el, onFill, sequential, shortened, tableOf } from "../svg.js";
import { arrow, brief, reach, sheet, sign, strips, text, vector } from "./draw.js";

const length = (values) => Math.hypot(...values);

/** The stream as lanes that each sublayer reads from and adds to, and the vectors that enter this layer. */
export function stream(view) {
  const page = sheet(view.width);
  const { attention, kind, model } = view.data;
  const names = kind === "encoder" ? ["self-attention", "feed-forward"] : ["self-attention", "cross-attention", "feed-forward"];
  const here = kind === "cross" ? 1 : 0;
  const y = 96;
  const left = 20;
  const step = (view.width - left - 30) / names.length;
  page.add(y + 30, arrow(left, y, view.width - 4, y, { kind: "lane" }));
  names.forEach((name, i) => {
    const from = left + i * step + step * 0.12;
    const [to, middle] = [from + step * 0.76, from + step * 0.38];
    const wide = Math.min(step * 0.62, 136);
    const lit = i === here ? " lit" : "";
    page.add(y,
      el("path", { d: `M${from} ${y}V44a8 8 0 0 1 8 -8H${middle - wide / 2 - 6}`, class: "arrow", fill: "none" }),
      el("path", { d: `M${middle + wide / 2} 36H${to - 8}a8 8 0 0 1 8 8V${y - 12}`, class: "arrow", fill: "none" }),
      arrow(middle - wide / 2 - 8, 36, middle - wide / 2, 36), arrow(to, y - 20, to, y - 9),
      el("rect", { x: middle - wide / 2, y: 18, width: wide, height: 36, rx: 8, class: `box${lit}` }),
      text(middle, 36, shortened(name, wide - 8, 12), { anchor: "middle", kind: lit ? "label small strong lit" : "label small strong" }),
      el("circle", { cx: to, cy: y, r: 9, class: "plus" }), text(to, y, "+", { anchor: "middle", kind: "sign" }),
      model.norm === "pre" ? text(from + 7, 62, "norm", { kind: "heading" }) : text(to, y + 17, "norm", { anchor: "middle", kind: "heading" }));
  });
  strips(page, { y: y + 26, title: `what enters ${names[here]} of layer ${view.data.layer + 1}`, labels: view.labels.queries, values: attention.stream, lit: view.q, choose: view.follow });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(attention.stream.map((values, q) => [view.labels.queries[q], ...[length(values), values[0], values[1], values[2], values[3]].map((value) => decimal(value, 3))]), ["piece", "length of the vector shown", "number 1", "number 2", "number 3", "number 4"]),
    json: { pieces: view.labels.queries, stream: attention.stream },
  };
}

/** One vector before and after its norm. */
export function norm(view) {
  const page = sheet(view.width);
  const { attention } = view.data;
  const { first, mean, deviation } = attention.norm;
  const sum = attention.stream[view.q].map((value, c) => value + attention.result[view.q][c]);
  const [before, after] = first ? [attention.stream[view.q], attention.entering[view.q]] : [sum, attention.after[view.q]];
  const [mu, sigma] = [mean[view.q], deviation[view.q]];
  const plain = before.map((value) => (value - mu) / sigma);
  const most = reach(before, after, plain);
  const options = { height: 60, most };
  let y = vector(page, { ...options, y: 4, label: view.labels.queries[view.q], note: first ? "in the stream" : "the sum", values: before });
  y = sign(page, y, "↓", `− ${brief(mu)} (mean), ÷ ${brief(sigma)} (deviation)`);
  y = vector(page, { ...options, y, label: "mean 0", note: "deviation 1", values: plain });
  y = sign(page, y, "↓", "each number × its own gain + its own bias, both learnt");
  vector(page, { ...options, y, label: "normalised", note: first ? "what attention reads" : "what goes on", values: after });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(before.map((value, c) => [c + 1, decimal(value, 4), decimal(plain[c], 4), decimal(after[c], 4)]), ["number", "before", "mean 0, deviation 1", "after"], `“${view.labels.queries[view.q]}”: mean ${brief(mu)}, deviation ${brief(sigma)}`),
    json: { mean: mu, deviation: sigma, before, after },
  };
}

/** The result of attention is added to the stream. */
export function add(view) {
  const { attention } = view.data;
  return sum(view, {
    parts: [attention.stream[view.q], attention.result[view.q]],
    total: attention.stream[view.q].map((value, c) => value + attention.result[view.q][c]),
    notes: ["in the stream", "from attention", "sum"],
  });
}

function sum(view, { parts, total, notes }) {
  const page = sheet(view.width);
  const most = reach(...parts, total);
  const options = { height: 54, most };
  const name = view.labels.queries[view.q];
  let y = vector(page, { ...options, y: 4, label: notes[0], note: `length ${brief(length(parts[0]))}`, values: parts[0] });
  y = sign(page, y, "+");
  y = vector(page, { ...options, y, label: notes[1], note: `length ${brief(length(parts[1]))}`, values: parts[1] });
  y = sign(page, y, "=");
  vector(page, { ...options, y, label: notes[2], note: `length ${brief(length(total))}`, values: total });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(total.map((value, c) => [c + 1, decimal(parts[0][c], 4), decimal(parts[1][c], 4), decimal(value, 4)]), ["number", ...notes], `“${name}”`),
    json: { stream: parts[0], added: parts[1], sum: total },
  };
}

const CURVES = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  swiglu: (x) => x / (1 + Math.exp(-x)),
};
const NAMES = { relu: "ReLU", gelu: "GELU", swiglu: "SiLU, of the gate" };

/** Wider, through the activation, and back. */
export function feedForward(view) {
  const page = sheet(view.width);
  const { feed_forward: block, model } = view.data;
  const q = view.q;
  const inner = block.inner[0][q];
  const active = block.active[q];
  const options = { height: 46 };
  const [left, size] = [view.width < 460 ? 0 : 132, 150];
  let y = vector(page, { ...options, y: 4, label: view.labels.queries[q], note: `${model.width} numbers`, values: block.entering[q], most: reach(block.entering[q]) });
  y = sign(page, y, "× W₁", `${model.feed_forward} numbers`);
  y = vector(page, { ...options, y, label: block.inner.length > 1 ? "gate" : "inner", note: "before", values: inner, most: reach(inner) });
  y = curve(page, { x: left + Math.max(0, (view.width - left - size) / 2), y: y + 8, size, values: inner, name: model.activation }) + 8;
  if (block.inner.length > 1) {
    y = vector(page, { ...options, y, label: "value", note: "times the gate", values: block.inner[1][q], most: reach(block.inner[1][q]) });
    y = sign(page, y, "=");
  }
  y = vector(page, { ...options, y, label: "inner", note: "after", values: active, most: reach(inner) });
  y = sign(page, y, "× W₂", `${model.width} numbers again`);
  vector(page, { ...options, y, label: "what is added", note: "to the stream", values: block.result[q], most: reach(block.result[q]) });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(inner.map((value, c) => [c + 1, ...block.inner.map((half) => decimal(half[q][c], 4)), decimal(active[c], 4)]), ["inner number", ...(block.inner.length > 1 ? ["gate", "value"] : ["before"]), "after"], `“${view.labels.queries[q]}”`),
    json: { entering: block.entering[q], inner: block.inner.map((half) => half[q]), active, result: block.result[q] },
  };
}

function curve(page, { x, y, size, values, name }) {
  const most = Math.max(reach(values), 1);
  const at = (value) => x + ((value + most) / (2 * most)) * size;
  const up = (value) => y + size * 0.86 - (Math.min(value, most) / most) * size * 0.78;
  const inside = values.filter((value) => Math.abs(value) <= most);
  const d = [...Array(61).keys()].map((s) => {
    const value = -most + (2 * most * s) / 60;
    return `${s ? "L" : "M"}${at(value).toFixed(1)} ${up(CURVES[name](value)).toFixed(1)}`;
  }).join("");
  page.add(y + size + 6,
    el("rect", { x: x - 8, y, width: size + 16, height: size, rx: 6, class: "ground" }),
    el("line", { x1: at(-most), x2: at(most), y1: up(0), y2: up(0), class: "axis" }),
    el("line", { x1: at(0), x2: at(0), y1: up(most), y2: up(0) + 8, class: "axis" }),
    el("path", { d, class: "curve", fill: "none" }),
    inside.map((value) => el("circle", { cx: at(value).toFixed(1), cy: up(CURVES[name](value)).toFixed(1), r: 2, class: "dot soft" })),
    text(x, y + 14, NAMES[name], { kind: "label small strong" }));
  return y + size + 6;
}

/** Lengths of the vectors layer by layer, and what would be predicted if the decoder ended there. */
export function stack(view) {
  const page = sheet(view.width);
  const { stack: all, predictions } = view.data;
  let y = 0;
  for (const [side, name] of [["encoder", "encoder"], ["decoder", "decoder"]]) {
    y = grown(page, { y, title: `length of each vector in the ${name}, after 0, 1, … layers`, layers: all[side], labels: view.labels[side === "encoder" ? "source" : "target"], lit: side === "encoder" ? view.source : view.target }) + 18;
  }
  page.add(y + 20, text(0, y + 8, shortened(`after “${view.labels.target[view.target]}” would follow, if the decoder ended there`, view.width), { kind: "label strong" }));
  const guesses = view.width < 460 ? 2 : 3;
  const wide = Math.min(200, (view.width - 84) / guesses);
  all.top.forEach((positions, depth) => {
    const top = y + 24 + depth * 30;
    page.add(top + 28, text(0, top + 12, depth ? `layer ${depth}` : "embedding", { kind: "label small" }));
    positions[view.target].slice(0, guesses).forEach(({ piece, probability }, i) => {
      const shown = shortened(label(piece), wide - 58, 12);
      page.add(top + 28,
        el("rect", { x: 84 + i * wide, y: top, width: wide - 6, height: 24, rx: 6, ...sequential(0.85 * probability), class: "lens" }),
        text(92 + i * wide, top + 12, `${shown} ${percent(probability)}`, { kind: `small ${onFill(0.85 * probability)}` }));
    });
  });
  const next = predictions[view.target].expected.piece;
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(all.top.map((positions, depth) => [depth, ...positions[view.target].map(({ piece, probability }) => `${label(piece)} ${percent(probability)}`), decimal(all.decoder[depth][view.target], 2)]), ["layers", "first", "second", "third", "length of the vector"], `the translation goes on with “${label(next)}”`),
    json: all,
  };
}

function grown(page, { y, title, layers, labels, lit }) {
  const left = page.width < 460 ? 72 : 110;
  const height = 92;
  const most = Math.max(...layers.flat());
  const x = (depth) => left + 8 + (depth / (layers.length - 1)) * (page.width - left - 60);
  const at = (value) => y + 22 + (1 - value / most) * (height - 10);
  const line = (position) => layers.map((norms, depth) => `${depth ? "L" : "M"}${x(depth).toFixed(1)} ${at(norms[position]).toFixed(1)}`).join("");
  const end = layers.at(-1)[lit];
  page.add(y + height + 36,
    text(left, y + 8, shortened(title, page.width - left, 11), { kind: "heading" }),
    el("line", { x1: left, x2: page.width - 40, y1: at(0), y2: at(0), class: "axis" }),
    labels.map((_, position) => el("path", { d: line(position), class: "thread", fill: "none" })),
    el("path", { d: line(lit), class: "curve", fill: "none" }),
    layers.map((norms, depth) => el("circle", { cx: x(depth), cy: at(norms[lit]), r: 3.5, class: "dot lit" })),
    layers.map((_, depth) => text(x(depth), at(0) + 14, String(depth), { anchor: "middle", kind: "heading" })),
    text(left - 10, at(layers[0][lit]), shortened(labels[lit], left - 14, 12), { anchor: "end", kind: "label small lit" }),
    text(x(layers.length - 1) + 10, at(end), brief(end), { kind: "label small lit" }));
  return y + height + 30;
}
