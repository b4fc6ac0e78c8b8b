/* Learn, around attention: the residual stream, layer norm, Add & Norm.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { brief, decimal } from "../format.js";
import { circle, rect, shortened, stroke, tableOf, text } from "../drawing.js";
import { arrow, reach, sheet } from "./draw.js";
import { sign, strips, vector } from "./vectors.js";

const length = (values) => Math.hypot(...values);

/** The stream as lanes that each sublayer reads from and adds to, and the vectors that enter this layer. */
export function stream(view) {
  const page = sheet(view.width);
  const { attention, kind, model } = view.data;
  const names =
    kind === "encoder"
      ? ["self-attention", "feed-forward"]
      : ["self-attention", "cross-attention", "feed-forward"];
  const here = kind === "cross" ? 1 : 0;
  const y = 96;
  const left = 10;
  const step = (view.width - left - 20) / names.length;
  page.add(y + 30, arrow(left, y, view.width - 4, y, { kind: "lane" }));
  names.forEach((name, i) => {
    const from = left + i * step + step * 0.12;
    const [to, middle] = [from + step * 0.76, from + step * 0.38];
    const wide = Math.min(step * 0.62, 136);
    const lit = i === here ? " lit" : "";
    page.add(
      y,
      stroke(`M${from} ${y}V44a8 8 0 0 1 8 -8H${middle - wide / 2 - 6}`, "arrow"),
      stroke(`M${middle + wide / 2} 36H${to - 8}a8 8 0 0 1 8 8V${y - 12}`, "arrow"),
      arrow(middle - wide / 2 - 8, 36, middle - wide / 2, 36),
      arrow(to, y - 20, to, y - 9),
      rect(middle - wide / 2, 18, wide, 36, { rx: 8, class: `box${lit}` }),
      ...nameLines(name, wide - 8).map((line, row, lines) =>
        text(middle, 36 + 14 * (row - (lines.length - 1) / 2), line, {
          anchor: "middle",
          kind: lines.length > 1 ? "label small" : `label small strong${lit}`,
        }),
      ),
      circle(to, y, 9, { class: "plus" }),
      text(to, y, "+", { anchor: "middle", kind: "sign" }),
      model.norm === "pre"
        ? text(from + 7, 62, "norm", { kind: "heading" })
        : text(to, y + 17, "norm", { anchor: "middle", kind: "heading" }),
    );
  });
  strips(page, {
    y: y + 26,
    title: `what enters ${names[here]} of layer ${view.data.layer + 1}`,
    labels: view.labels.queries,
    values: attention.stream,
    lit: view.q,
    choose: view.follow,
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        attention.stream.map((values, q) => [
          view.labels.queries[q],
          ...[length(values), values[0], values[1], values[2], values[3]].map((value) => decimal(value, 3)),
        ]),
        ["piece", "length of the vector shown", "number 1", "number 2", "number 3", "number 4"],
      ),
    json: { pieces: view.labels.queries, stream: attention.stream },
  };
}

/** A sublayer's name on one line, or broken at its hyphen where it is wider than `width`. */
function nameLines(name, width) {
  return shortened(name, width, 12) === name ? [name] : name.split(/(?<=-)/);
}

/** One vector before and after its norm. */
export function norm(view) {
  const page = sheet(view.width);
  const { attention } = view.data;
  const { first, mean, deviation } = attention.norm;
  const total = attention.stream[view.q].map((value, c) => value + attention.result[view.q][c]);
  const [before, after] = first
    ? [attention.stream[view.q], attention.entering[view.q]]
    : [total, attention.after[view.q]];
  const [mu, sigma] = [mean[view.q], deviation[view.q]];
  const plain = before.map((value) => (value - mu) / sigma);
  const most = reach(before, after, plain);
  const options = { height: 60, most };
  let y = vector(page, {
    ...options,
    y: 4,
    label: view.labels.queries[view.q],
    note: first ? "in the stream" : "the sum",
    values: before,
  });
  y = sign(page, y, "↓", `− ${brief(mu)} (mean), ÷ ${brief(sigma)} (deviation)`);
  y = vector(page, { ...options, y, label: "mean 0", note: "deviation 1", values: plain });
  y = sign(page, y, "↓", "each number × its own gain + its own bias, both learnt");
  vector(page, {
    ...options,
    y,
    label: "normalised",
    note: first ? "what attention reads" : "what goes on",
    values: after,
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        before.map((value, c) => [c + 1, decimal(value, 4), decimal(plain[c], 4), decimal(after[c], 4)]),
        ["number", "before", "mean 0, deviation 1", "after"],
        `“${view.labels.queries[view.q]}”: mean ${brief(mu)}, deviation ${brief(sigma)}`,
      ),
    json: { mean: mu, deviation: sigma, before, after },
  };
}

/** The result of attention is added to the stream. */
export function add(view) {
  const page = sheet(view.width);
  const { attention } = view.data;
  const [before, added] = [attention.stream[view.q], attention.result[view.q]];
  const total = before.map((value, c) => value + added[c]);
  const most = reach(before, added, total);
  const one = (y, label, values) =>
    vector(page, { y, label, note: `length ${brief(length(values))}`, values, most, height: 54 });
  let y = sign(page, one(4, "in the stream", before), "+");
  y = sign(page, one(y, "from attention", added), "=");
  one(y, "sum", total);
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        total.map((value, c) => [c + 1, ...[before[c], added[c], value].map((number) => decimal(number, 4))]),
        ["number", "in the stream", "from attention", "sum"],
        `“${view.labels.queries[view.q]}”`,
      ),
    json: { stream: before, added, sum: total },
  };
}
