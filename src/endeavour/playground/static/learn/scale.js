/* Learn, why scores are divided by √d: the scores of one query before and after, and the weights that follow.
 *
 * Takes the view (see learn.js) and returns a figure's content.
 */

import { brief, decimal } from "../format.js";
import { circle, el, rect, tableOf, text } from "../drawing.js";
import { sheet } from "./draw.js";

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
  const lines = [
    [raw, "Q · K"],
    [scaled, `÷ √${d} = ÷ ${brief(d ** 0.5)}`],
  ];
  lines.forEach(([values, name], i) => {
    const y = 44 + i * 96;
    page.add(
      y + 40,
      text(left ? left - 12 : 0, left ? y : y - 24, name, {
        anchor: left ? "end" : "start",
        kind: "label strong",
      }),
      el("line", { x1: x(low), x2: x(high), y1: y, y2: y, class: "axis" }),
      el("line", { x1: x(0), x2: x(0), y1: y - 8, y2: y + 8, class: "axis" }),
      text(x(0), y + 18, "0", { anchor: "middle", kind: "heading" }),
      values.map((value, k) =>
        circle(x(value), y, k === view.best ? 7 : 5, { class: k === view.best ? "dot lit" : "dot soft" }),
      ),
      text(x(values[view.best]), y - 16, `${names[view.best]} ${brief(values[view.best])}`, {
        anchor: x(values[view.best]) > view.width - 80 ? "end" : "middle",
        kind: "label lit",
      }),
    );
  });
  page.add(
    140,
    raw.map((value, k) => el("line", { x1: x(value), y1: 52, x2: x(scaled[k]), y2: 132, class: "fall" })),
  );
  compare(page, { y: 196, names, raw, scaled, best: view.best });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        names.map((name, k) => [
          name,
          decimal(raw[k], 3),
          decimal(scaled[k], 3),
          decimal(shares(raw)[k], 3),
          decimal(shares(scaled)[k], 3),
        ]),
        ["key", "Q · K", `÷ √${d}`, "weight without ÷", "weight with ÷"],
        `query “${view.labels.queries[view.q]}”`,
      ),
    json: { keys: names, raw, scaled },
  };
}

/** The softmax of some scores. */
function shares(values) {
  const most = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

function compare(page, { y, names, raw, scaled, best }) {
  const left = page.width < 460 ? 0 : 132;
  const width = page.width - left;
  [
    ["weights without it", shares(raw)],
    ["weights with it", shares(scaled)],
  ].forEach(([name, weights], i) => {
    const top = y + i * 52 + (left ? 0 : 14);
    let x = left;
    page.add(top + 32, left ? text(left - 12, top + 13, name, { anchor: "end" }) : text(0, top - 9, name));
    weights.forEach((weight, k) => {
      const own = weight * width;
      page.add(
        top + 32,
        rect(x, top, Math.max(own - 1, 0.3), 26, { rx: 3, class: k === best ? "share lit" : "share" }),
        own > 62 &&
          text(x + 8, top + 13, `${names[k]} ${Math.round(100 * weight)} %`, {
            kind: k === best ? "label on-share lit" : "label on-share",
          }),
      );
      x += own;
    });
  });
}
