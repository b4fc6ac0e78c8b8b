/* Learn, where the two sides meet and where the translation comes out: cross-attention, logits, probabilities, search.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { brief, decimal, label, percent, thousands } from "../format.js";
import { average } from "../look/maps.js";
import { links } from "../charts.js";
import { el, rect, shortened, tableOf, text } from "../drawing.js";
import { arrow, reach, room, sheet } from "./draw.js";
import { vector } from "./vectors.js";

/** Where each position of the translation looks in the source, averaged over the heads of a layer. */
export function cross(view) {
  const [source, target] = [view.labels.source, view.labels.output];
  const mean = average(view.data.cross.weights);
  const width = Math.min(view.width, 620);
  const { node, highlight } = links({
    left: target,
    right: source,
    values: mean,
    width,
    row: target.length + source.length > 50 ? 18 : 26,
    titles: ["is written", "looks at"],
    onHover: (t, s) => (t === null && s === null ? highlight(view.target, null) : highlight(t, s)),
    onChoose: (t) => t !== null && view.choose({ target: t }),
  });
  highlight(view.target, null);
  return {
    graphic: node,
    table: () =>
      tableOf(
        mean.map((row, t) => [target[t], ...row.map((value) => percent(value))]),
        ["is written", ...source],
      ),
    json: { layer: view.data.cross.layer, source, target, weights: mean },
  };
}

/** The last vector of a position, and its products with all rows of the output matrix. */
export function logits(view) {
  const page = sheet(view.width);
  const prediction = view.data.predictions[view.target];
  const state = view.data.final[view.target];
  const y = vector(page, {
    y: 4,
    label: "last vector",
    note: `after “${view.labels.target[view.target]}”`,
    values: state,
    most: reach(state),
    height: 54,
  });
  page.add(
    y + 34,
    text(
      view.width / 2,
      y + 16,
      `· each of ${thousands(view.data.model.target_vocabulary)} rows = a logit for each piece`,
      { anchor: "middle", kind: "sign small" },
    ),
  );
  distribution(page, y + 36, prediction);
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        prediction.top.map(({ piece, id, logit }) => [label(piece), id, decimal(logit, 3)]),
        ["piece", "id", "logit"],
      ),
    json: { state, ...prediction },
  };
}

/** How many pieces have which logit, and where the first one stands. */
function distribution(page, y, { top, lowest, highest, histogram }) {
  const [left, height] = [16, 130];
  const wide = page.width - 2 * left;
  const tallest = Math.log1p(Math.max(...histogram));
  const x = (logit) => left + ((logit - lowest) / (highest - lowest || 1)) * wide;
  const step = wide / histogram.length;
  const base = y + 44 + height;
  histogram.forEach((count, i) => {
    const size = count ? 6 + (Math.log1p(count) / tallest) * (height - 6) : 0;
    page.add(base, rect(left + i * step + 1, base - size, step - 2, size, { rx: 2, class: "share" }));
  });
  page.area({
    x: left,
    y: base - height,
    cell: [step, height],
    rows: 1,
    columns: histogram.length,
    text: (_, i) =>
      `${thousands(histogram[i])} pieces have logits around ${brief(lowest + ((i + 0.5) * (highest - lowest)) / histogram.length)}`,
  });
  page.add(
    base + 34,
    text(left, y + 10, "how many pieces have which logit (heights are logarithmic)", { kind: "heading" }),
    el("line", { x1: left, x2: left + wide, y1: base, y2: base, class: "axis" }),
    [lowest, 0, highest]
      .filter((value, i) => i !== 1 || (lowest < -1 && highest > 1))
      .map((value, i, all) =>
        text(x(value), base + 14, brief(value), {
          anchor: i === 0 ? "start" : i === all.length - 1 ? "end" : "middle",
          kind: "heading",
        }),
      ),
    mark(top[0], x, base, page.width),
  );
}

const mark = ({ piece, logit }, x, base, width) => [
  arrow(Math.min(x(logit) - 4, width - 20), base - 66, x(logit) - 4, base - 12),
  text(Math.min(x(logit), width - 16), base - 76, `${label(piece)} ${brief(logit)}`, {
    anchor: "end",
    kind: "label strong lit",
  }),
];

/** The most probable next pieces, at a temperature at which they might be drawn. */
export function probability(view) {
  const page = sheet(view.width);
  const { top, expected, log_sums: sums } = view.data.predictions[view.target];
  const rows = top.some(({ id }) => id === expected.id) ? top : [...top.slice(0, -1), expected];
  const [, logSum] = sums.find(([temperature]) => temperature === view.temperature);
  const share = ({ logit }) => Math.exp(logit / view.temperature - logSum);
  const left = room(
    rows.map(({ piece }) => label(piece)),
    120,
  );
  const narrow = view.width < 460;
  const full = view.width - left - (narrow ? 96 : 150);
  rows.forEach((row, i) => {
    const y = 4 + i * 26;
    const own = row.id === expected.id;
    const wide = share(row) * full;
    page.add(
      y + 26,
      text(left - 10, y + 10, shortened(label(row.piece), left - 12), {
        anchor: "end",
        kind: own ? "label strong lit" : "label",
      }),
      rect(left, y, Math.max(wide, 1.5), 20, { rx: 4, class: own ? "share lit" : "share" }),
      text(
        left + wide + 8,
        y + 10,
        own ? `${percent(share(row))}${narrow ? ", written" : ", is written"}` : percent(share(row)),
        { kind: own ? "label lit" : "label" },
      ),
    );
  });
  const others = 1 - rows.reduce((sum, row) => sum + share(row), 0);
  page.add(
    26 * rows.length + 24,
    text(left, 26 * rows.length + 12, `all other pieces together: ${percent(Math.max(0, others))}`, {
      kind: "heading",
    }),
  );
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        rows.map((row) => [
          label(row.piece),
          row.id,
          decimal(row.logit, 3),
          percent(share(row)),
          row.id === expected.id ? "yes" : "",
        ]),
        ["piece", "id", "logit", "probability", "is written"],
        `temperature ${view.temperature}`,
      ),
    json: {
      after: view.labels.target.slice(0, view.target + 1),
      temperature: view.temperature,
      top,
      expected,
    },
  };
}

/** The translation, one piece at a time, with the probability of each. */
export function search(view) {
  const page = sheet(view.width);
  const { predictions } = view.data;
  const written = predictions.map(({ expected }) => expected);
  const left = room(
    written.map(({ piece }) => label(piece)),
    110,
  );
  const each = written.length > 32 ? 18 : 24;
  const full = (view.width - left) * 0.42;
  let sum = 0;
  page.add(
    20,
    text(left, 8, shortened("probability of each piece, given all before", view.width - left - 70, 11), {
      kind: "heading",
    }),
    text(view.width, 8, "of all so far", { anchor: "end", kind: "heading" }),
  );
  written.forEach(({ piece, probability: share, rank }, t) => {
    sum += Math.log(share);
    const y = 22 + t * each;
    const lit = t === view.target;
    page.add(
      y + each,
      text(left - 10, y + each / 2 - 2, shortened(label(piece), left - 12), {
        anchor: "end",
        kind: lit ? "label lit" : "label",
      }),
      rect(left, y, Math.max(share * full, 1.5), each - 6, { rx: 3, class: lit ? "share lit" : "share" }),
      text(
        left + share * full + 8,
        y + each / 2 - 2,
        rank === 1 ? percent(share) : `${percent(share)}, not the first choice`,
        { kind: "label small" },
      ),
      text(view.width, y + each / 2 - 2, percent(Math.exp(sum)), { anchor: "end", kind: "label small" }),
    );
  });
  page.area({
    x: 0,
    y: 22,
    cell: [view.width, each],
    rows: written.length,
    columns: 1,
    choose: (target) => view.choose({ target }),
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        written.map(({ piece, probability: share, rank }, t) => [t + 1, label(piece), percent(share), rank]),
        ["position", "piece", "probability", "rank"],
      ),
    json: written,
  };
}
