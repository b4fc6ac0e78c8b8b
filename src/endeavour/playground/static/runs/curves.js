/* Curves over the updates of one or several trainings: loss, BLEU, learning rate. Each run has a colour, a dash and a number.
 *
 * Knows series of points; not where they come from.
 */

import { thousands } from "../format.js";
import { circle, el, polyline, stroke, svg, text } from "../drawing.js";

const MOST_POINTS = 500; // of a curve; longer ones are thinned evenly
const LEFT = 52;
const RIGHT = 16;
const GAP = 34;

/**
 * @param {{title: string, height: number, format?: (value: number) => string,
 *   series: {run: number, kind: string, dots: boolean, points: [number, number][]}[]}[]} panels
 * @param {number} width
 * @param {(update: number | null) => void} onPoint a place on the common axis was pointed at
 * @returns {{node: SVGElement, line: SVGElement, mark: (update: number | null) => void}}
 */
export function curves(panels, width, onPoint) {
  const ends = panels.flatMap(({ series }) => series.map(({ points }) => points.at(-1)?.[0] ?? 0));
  const last = Math.max(1, ...ends);
  const x = (update) => LEFT + (update / last) * (width - LEFT - RIGHT);
  let top = 22;
  const drawn = panels.map((panel) => {
    const part = drawPanel(panel, top, x, width);
    top += panel.height + GAP;
    return part;
  });
  const bottom = top - GAP;
  const ticks = steps(0, last, Math.max(2, Math.floor(width / 140)));
  const axis = ticks.map((update, i) =>
    text(x(update), bottom + 18, i ? thousands(update) : "update 0", {
      anchor: i ? "middle" : "start",
      kind: "heading",
      dy: 0,
    }),
  );
  const line = el("line", { y1: 16, y2: bottom, class: "crosshair", visibility: "hidden" });
  const node = svg(width, bottom + 26, drawn, axis, line);

  function mark(update) {
    line.setAttribute("visibility", update === null ? "hidden" : "visible");
    if (update !== null) for (const name of ["x1", "x2"]) line.setAttribute(name, x(update));
  }
  node.addEventListener("pointermove", ({ offsetX }) => {
    const update = ((offsetX - LEFT) / (width - LEFT - RIGHT)) * last;
    onPoint(update < 0 || update > last ? null : update);
  });
  node.addEventListener("pointerleave", () => onPoint(null));
  return { node, line, mark };
}

function drawPanel({ title, height, format, series }, top, x, width) {
  const values = series.flatMap(({ points }) => points.map(([, value]) => value)).filter(Number.isFinite);
  if (!values.length) return [];
  // One by one: there may be more than a function takes.
  let [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  if (high - low <= 1e-9 * Math.abs(high)) {
    const pad = Math.abs(low) / 2 || 1;
    [low, high] = [low - pad, high + pad];
  }
  const ticks = steps(low, high, 4);
  const decimals = Math.max(...ticks.map((value) => (String(value).split(".")[1] ?? "").length));
  [low, high] = [Math.min(low, ticks[0]), Math.max(high, ticks.at(-1))];
  const y = (value) => top + height - ((value - low) / (high - low)) * height;
  const grid = ticks.map((value) => [
    el("line", { x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value), class: "rule" }),
    text(LEFT - 8, y(value), format ? format(value) : value.toFixed(decimals), {
      anchor: "end",
      kind: "heading",
    }),
  ]);
  const lines = series.map(({ run, kind, dots, points }) => {
    const shown = thinned(points.filter(([, value]) => Number.isFinite(value)));
    const d = polyline(shown.map(([update, value]) => [x(update), y(value)]));
    return [
      stroke(d, `line ${kind} run-${run}`),
      dots
        ? shown.map(([update, value]) => circle(x(update), y(value), 3, { class: `point run-${run}` }))
        : null,
    ];
  });
  return [grid, text(LEFT, top - 9, title, { kind: "label strong", dy: 0 }), lines];
}

function thinned(points) {
  const step = Math.ceil(points.length / MOST_POINTS);
  return step <= 1 ? points : points.filter((_, i) => i % step === 0 || i === points.length - 1);
}

/** Round numbers from one value to another, about so many. */
function steps(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step)
    found.push(Number(value.toPrecision(12)));
  return found.length ? found : [low];
}
