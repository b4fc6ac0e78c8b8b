/* How the chrF of some lines is distributed, as what a figure shows.
 *
 * Knows scores between 0 and 100; not where they come from.
 */

import { el, rect, svg, tableOf, text } from "../drawing.js";

const BINS = 20;
export const HEIGHTS = "Heights are square roots of the numbers of lines.";

/**
 * How many lines have which chrF.
 *
 * @param {{chrf: number}[]} rows
 * @param {number} width in CSS pixels
 */
export function histogram(rows, width) {
  const counts = new Array(BINS).fill(0);
  for (const { chrf } of rows) counts[Math.min(BINS - 1, Math.floor((chrf / 100) * BINS))]++;
  const most = Math.max(...counts, 1);
  const [height, step] = [84, width / BINS];
  const bars = counts.map((value, i) => {
    const size = value ? Math.max(2, Math.sqrt(value / most) * height) : 0;
    return rect(i * step + 1, height - size, step - 2, size, { rx: 2, class: "count" });
  });
  const base = el("line", { x1: 0, x2: width, y1: height, y2: height, class: "frame" });
  const labels = [0, 50, 100].map((value) =>
    text((value / 100) * width, height + 15, value, {
      anchor: value === 0 ? "start" : value === 100 ? "end" : "middle",
      kind: "heading",
      dy: 0,
    }),
  );
  return {
    graphic: svg(width, height + 20, bars, base, labels),
    table: () =>
      tableOf(
        counts.map((value, i) => [`${(100 / BINS) * i} – ${(100 / BINS) * (i + 1)}`, value]),
        ["chrF", "lines"],
      ),
    json: counts,
    note: HEIGHTS,
  };
}
