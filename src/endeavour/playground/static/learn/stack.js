/* Learn, the stack of layers: how vectors grow, and what would be predicted if the decoder ended earlier.
 *
 * Takes the view (see learn.js) and returns a figure's content.
 */

import { brief, decimal, label, percent } from "../format.js";
import {
  circle,
  el,
  onFill,
  polyline,
  rect,
  sequential,
  shortened,
  stroke,
  tableOf,
  text,
} from "../drawing.js";
import { sheet } from "./draw.js";

/** Lengths of the vectors layer by layer, and what would be predicted if the decoder ended there. */
export function stack(view) {
  const page = sheet(view.width);
  const { stack: all, predictions } = view.data;
  let y = 0;
  for (const side of ["encoder", "decoder"]) {
    y =
      grown(page, {
        y,
        title: `length of each vector in the ${side}, after 0, 1, … layers`,
        layers: all[side],
        labels: view.labels[side === "encoder" ? "source" : "target"],
        lit: side === "encoder" ? view.source : view.target,
      }) + 18;
  }
  page.add(
    y + 20,
    text(
      0,
      y + 8,
      shortened(
        `after “${view.labels.target[view.target]}” would follow, if the decoder ended there`,
        view.width,
      ),
      { kind: "label strong" },
    ),
  );
  const guesses = view.width < 460 ? 2 : 3;
  const wide = Math.min(200, (view.width - 84) / guesses);
  all.top.forEach((positions, depth) => {
    const top = y + 24 + depth * 30;
    page.add(top + 28, text(0, top + 12, depth ? `layer ${depth}` : "embedding", { kind: "label small" }));
    positions[view.target].slice(0, guesses).forEach(({ piece, probability }, i) => {
      const shown = shortened(label(piece), wide - 58, 12);
      page.add(
        top + 28,
        rect(84 + i * wide, top, wide - 6, 24, { rx: 6, ...sequential(0.85 * probability) }),
        text(92 + i * wide, top + 12, `${shown} ${percent(probability)}`, {
          kind: `small ${onFill(sequential(0.85 * probability))}`,
        }),
      );
    });
  });
  const next = predictions[view.target].expected.piece;
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        all.top.map((positions, depth) => [
          depth,
          ...positions[view.target].map(
            ({ piece, probability }) => `${label(piece)} ${percent(probability)}`,
          ),
          decimal(all.decoder[depth][view.target], 2),
        ]),
        ["layers", "first", "second", "third", "length of the vector"],
        `the translation goes on with “${label(next)}”`,
      ),
    json: all,
  };
}

function grown(page, { y, title, layers, labels, lit }) {
  const left = page.width < 460 ? 72 : 110;
  const height = 92;
  const most = Math.max(...layers.flat());
  const x = (depth) => left + 8 + (depth / (layers.length - 1)) * (page.width - left - 60);
  const at = (value) => y + 22 + (1 - value / most) * (height - 10);
  const line = (position) => polyline(layers.map((norms, depth) => [x(depth), at(norms[position])]));
  const end = layers.at(-1)[lit];
  page.add(
    y + height + 36,
    text(left, y + 8, shortened(title, page.width - left, 11), { kind: "heading" }),
    el("line", { x1: left, x2: page.width - 40, y1: at(0), y2: at(0), class: "axis" }),
    labels.map((_, position) => stroke(line(position), "thread")),
    stroke(line(lit), "curve"),
    layers.map((norms, depth) => circle(x(depth), at(norms[lit]), 3.5, { class: "dot lit" })),
    layers.map((_, depth) =>
      text(x(depth), at(0) + 14, String(depth), { anchor: "middle", kind: "heading" }),
    ),
    text(left - 10, at(layers[0][lit]), shortened(labels[lit], left - 14, 12), {
      anchor: "end",
      kind: "label small lit",
    }),
    text(x(layers.length - 1) + 10, at(end), brief(end), { kind: "label small lit" }),
  );
  return y + height + 30;
}
