/* Learn, where each piece stands: sinusoidal and learned vectors, which are added, and rotary angles, by which queries and
 * keys are turned.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { decimal } from "../format.js";
import { circle, el, polyline, shortened, stroke, tableOf, text } from "../drawing.js";
import { reach, sheet } from "./draw.js";
import { sign, strips, vector } from "./vectors.js";

/** How positions are told, by the model's own way. */
export function positions(view) {
  return view.data.rotation ? rotary(view) : added(view);
}

function added(view) {
  const page = sheet(view.width);
  const { rows, positions: vectors, states } = view.data.embedding[view.side];
  const root = view.data.model.width ** 0.5;
  const own = rows[view.q].map((value) => value * root);
  const most = reach(states);
  const names = view.labels[view.side];
  let y = 0;
  if (view.data.model.positions === "sinusoidal") y = waves(page, view, vectors) + 18;
  y = strips(page, {
    y,
    title: "position vectors, one a row",
    labels: names.map((_, t) => String(t)),
    values: vectors,
    lit: view.q,
    choose: view.follow,
  });
  const options = { most, height: 40 };
  y = vector(page, { ...options, y: y + 22, label: names[view.q], note: "embedding", values: own });
  y = sign(page, y, "+");
  y = vector(page, { ...options, y, label: `position ${view.q}`, values: vectors[view.q] });
  y = sign(page, y, "=");
  vector(page, {
    ...options,
    y,
    label: "what goes on",
    note: "into the first layer",
    values: states[view.q],
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        own.map((value, c) => [
          c + 1,
          ...[value, vectors[view.q][c], states[view.q][c]].map((one) => decimal(one, 4)),
        ]),
        ["number", "embedding", `position ${view.q}`, "sum"],
        `“${names[view.q]}”`,
      ),
    json: { positions: vectors, sum: states[view.q] },
  };
}

/** A few components of the sinusoidal vectors as curves over the positions. */
function waves(page, view, vectors) {
  const width = view.data.model.width;
  const shown = [0, 8, 16, 32]
    .map((pair) => 2 * Math.round((pair * width) / 128))
    .filter((component) => component < vectors[0].length);
  const [left, height] = [view.width < 420 ? 78 : 110, 38];
  const count = Math.max(vectors.length - 1, 1);
  const x = (t) => left + 6 + (t / count) * (view.width - left - 12);
  shown.forEach((component, i) => {
    const middle = 22 + i * (height + 6) + height / 2;
    const y = (value) => middle - (value * height) / 2.4;
    const frequency = 10000 ** (-component / width);
    const steps = Math.ceil(view.width / 3);
    const along = [...Array(steps + 1).keys()].map((s) => (s * count) / steps);
    const d = polyline(along.map((t) => [x(t), y(Math.sin(t * frequency))]));
    page.add(
      middle + height / 2,
      text(left - 8, middle, `number ${component + 1}`, { anchor: "end", kind: "label small" }),
      el("line", { x1: x(0), x2: x(count), y1: middle, y2: middle, class: "axis" }),
      stroke(d, "curve"),
      vectors.map((row, t) =>
        circle(x(t), y(row[component]), t === view.q ? 5 : 2.5, { class: t === view.q ? "dot lit" : "dot" }),
      ),
    );
  });
  page.add(20, text(left, 8, "some of the waves, position by position", { kind: "heading" }));
  return 22 + shown.length * (height + 6);
}

/** Rotary positions: for some pairs of numbers a dial, with query and key before and after they are turned. */
function rotary(view) {
  const page = sheet(view.width);
  const { cosine, sine } = view.data.rotation;
  const half = cosine[0].length;
  const columns = view.width < 560 ? 3 : 6;
  const pairs = [0, 1, 2, 4, 8, 12].map((pair) => Math.min(half - 1, Math.round((pair * half) / 16)));
  const query = view.data.kind === "cross" ? null : view.data.attention.unturned[view.q];
  const [size, gap] = [Math.min(112, (view.width - 8 * columns) / columns), 8];
  const t = view.q;
  page.add(
    20,
    text(
      0,
      8,
      shortened(
        `how far position ${t} turns each pair of numbers${query ? `; dashed: the query of “${view.labels[view.side][t]}”, turned` : ""}`,
        view.width,
        11,
      ),
      { kind: "heading" },
    ),
  );
  pairs.forEach((pair, i) => {
    const [cx, cy] = [
      (i % columns) * (size + gap) + size / 2,
      28 + Math.floor(i / columns) * (size + 34) + size / 2,
    ];
    page.add(
      cy + size / 2 + 26,
      dial({
        cx,
        cy,
        radius: size / 2 - 4,
        cosine: cosine.map((row) => row[pair]),
        sine: sine.map((row) => row[pair]),
        t,
        own: query && [query[pair], query[pair + half]],
      }),
      text(cx, cy + size / 2 + 10, `${pair + 1} with ${pair + 1 + half}`, {
        anchor: "middle",
        kind: "heading",
      }),
    );
  });
  const angles = cosine[0].map((_, pair) => 10000 ** (-pair / half)); // those of the tables are rounded
  const rows = Math.ceil(pairs.length / columns);
  const y = 34 + rows * (size + 34);
  strips(page, {
    y,
    title: "cosine of the angles: positions by pairs of numbers",
    labels: view.labels[view.side].map((name, row) => `${row} ${name}`),
    values: cosine.slice(0, view.labels[view.side].length),
    most: 1,
    lit: t,
    choose: view.follow,
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        angles.map((angle, pair) => [
          `${pair + 1}, ${pair + 1 + half}`,
          decimal(angle, 4),
          decimal((angle * t * 180) / Math.PI, 1),
        ]),
        ["numbers", "radians a position", `degrees at position ${t}`],
      ),
    json: view.data.rotation,
  };
}

function dial({ cx, cy, radius, cosine, sine, t, own }) {
  const hand = (angle, length, kind) => {
    const turn = `rotate(${(-angle * 180) / Math.PI} ${cx} ${cy})`; // counter-clockwise, as angles are counted
    return el("line", { x1: cx, y1: cy, x2: cx + length, y2: cy, transform: turn, class: `hand ${kind}` });
  };
  const angle = (row) => Math.atan2(sine[row], cosine[row]);
  const start = own ? Math.atan2(own[1], own[0]) : 0;
  const dots = cosine.map((value, row) =>
    circle(cx + radius * value, cy - radius * sine[row], row === t ? 5 : 2, {
      class: row === t ? "dot lit" : "dot",
    }),
  );
  return [
    circle(cx, cy, radius, { class: "dial" }),
    dots,
    hand(0, radius - 4, "thin"),
    hand(angle(t), radius - 6, "thick"),
    own && hand(start + angle(t), radius * 0.55, "own"),
  ];
}
