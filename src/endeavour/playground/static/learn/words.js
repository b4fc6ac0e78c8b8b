/* Learn, from the text to the vectors that enter the first layer: pieces, embeddings, positions.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { beginsWord, decimal, isSpecial, label, thousands } from "../format.js";
import { el, shortened, tableOf, textWidth } from "../svg.js";
import { arrow, brief, reach, sheet, sign, strips, text, vector } from "./draw.js";

const BOX = 34; // height of a piece's box
const LINE = 68;

/** The sentence and its translation as pieces with their ids. */
export function pieces(view) {
  const page = sheet(view.width);
  const { source, target_in: target } = view.data.tokens;
  const bottom = boxes(page, { y: 0, title: `Source: ${source.length} pieces`, tokens: source, lit: view.source, choose: (source) => view.choose({ source }) });
  boxes(page, { y: bottom + 20, title: `Translation, as the decoder reads it: ${target.length} pieces`, tokens: target, lit: view.target, choose: (target) => view.choose({ target }) });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf([...source.map((one, i) => ["source", i, one.piece, one.id]), ...target.map((one, i) => ["translation", i, one.piece, one.id])], ["side", "position", "piece", "id"]),
    json: view.data.tokens,
  };
}

function boxes(page, { y, title, tokens, lit, choose }) {
  page.add(y + 16, text(0, y + 8, title, { kind: "heading" }));
  let [x, top] = [0, y + 24];
  tokens.forEach(({ id, piece }, i) => {
    const shown = label(piece);
    const width = Math.max(textWidth(shown, 14) + 18, textWidth(String(id), 11) + 10, 30);
    const gap = beginsWord(piece) || isSpecial(piece) ? 10 : 2;
    x += i ? gap : 0;
    if (x + width > page.width) [x, top] = [0, top + LINE];
    const kind = ["piece", isSpecial(piece) && "special", !beginsWord(piece) && !isSpecial(piece) && "inner", i === lit && "lit"].filter(Boolean).join(" ");
    page.add(top + LINE - 12,
      el("rect", { x: x + 0.5, y: top, width: width - 1, height: BOX, rx: 7, class: kind }),
      text(x + width / 2, top + BOX / 2, shown, { anchor: "middle", kind: i === lit ? "word lit" : "word" }),
      text(x + width / 2, top + BOX + 11, String(id), { anchor: "middle", kind: "heading" }));
    page.area({ x, y: top, cell: [width, BOX + 16], rows: 1, columns: 1, text: () => `position ${i}: piece ${piece}, id ${id}`, choose: () => choose(i) });
    x += width;
  });
  return top + LINE - 12;
}

/** The row of the chosen piece in the embedding's table, and the rows of all pieces. */
export function embedding(view) {
  const page = sheet(view.width);
  const { model } = view.data;
  const rows = view.data.embedding[view.side].rows;
  const token = view.tokens[view.position];
  const root = model.width ** 0.5;
  const scaled = rows.map((row) => row.map((value) => value * root));
  const own = rows[view.position];
  const vocabulary = model[view.side === "source" ? "source_vocabulary" : "target_vocabulary"];
  const narrow = view.width < 560;
  const left = narrow ? 0 : 150;
  if (!narrow) lookup(page, { token, vocabulary, width: model.width });
  const most = reach(scaled);
  const options = { x: left, width: view.width - left, most, height: 46 };
  let y = vector(page, { ...options, y: 6, label: `row ${thousands(token.id)}`, note: label(token.piece), values: own });
  page.add(y + 26, text(left + (view.width - left) / 2, y + 15, `× √${model.width} = × ${brief(root)}`, { anchor: "middle", kind: "sign" }));
  y = vector(page, { ...options, y: y + 30, label: "embedding", note: "as it goes on", values: scaled[view.position] });
  y = alike(page, { y: y + 18, x: left, token, neighbours: view.data.embedding[view.side].neighbours[view.position] });
  strips(page, { y: y + 20, title: "the embeddings of all pieces", labels: view.labels[view.side], values: scaled, lit: view.position, choose: view.follow });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(own.map((value, c) => [c + 1, decimal(value, 4), decimal(value * root, 4)]), ["number", `row ${token.id} of the table`, `× √${model.width}`], `“${label(token.piece)}”`),
    json: { piece: token, row: own, embedding: scaled[view.position], neighbours: view.data.embedding[view.side].neighbours[view.position] },
  };
}

/** The pieces whose rows are most like this one. */
function alike(page, { y, x, token, neighbours }) {
  page.add(y + 16, text(x, y + 8, `rows most like that of “${label(token.piece)}” (cosine)`, { kind: "heading" }));
  let [at, top] = [x, y + 22];
  for (const { piece, similarity } of neighbours) {
    const [name, value] = [label(piece), similarity.toFixed(2)];
    const width = textWidth(name, 13) + textWidth(value, 11) + 26;
    if (at + width > page.width) [at, top] = [x, top + 32];
    page.add(top + 28,
      el("rect", { x: at, y: top, width, height: 26, rx: 7, class: "piece inner" }),
      text(at + 9, top + 13, name, { kind: "label strong" }), text(at + width - 9, top + 13, value, { anchor: "end", kind: "heading" }));
    at += width + 6;
  }
  return top + 26;
}

function lookup(page, { token, vocabulary, width }) {
  const [x, y, w, h] = [8, 10, 76, 112];
  const at = y + 3 + (token.id / vocabulary) * (h - 6);
  const lines = [...Array(14).keys()].map((i) => el("line", { x1: x, x2: x + w, y1: y + (i + 0.5) * (h / 14), y2: y + (i + 0.5) * (h / 14), class: "rule" }));
  page.add(y + h + 20,
    el("rect", { x, y, width: w, height: h, rx: 4, class: "box" }), lines,
    el("rect", { x: x - 3, y: at - 3, width: w + 6, height: 6, rx: 3, class: "mark" }),
    text(x + w / 2, y + h + 11, `${thousands(vocabulary)} × ${width}`, { anchor: "middle", kind: "heading" }),
    arrow(x + w + 6, at, 158, 29));
}

/** How positions are told, by the model's own way. */
export function positions(view) {
  return view.data.rotation ? rotary(view) : added(view);
}

function added(view) {
  const page = sheet(view.width);
  const { rows, positions: vectors, states } = view.data.embedding[view.side];
  const root = view.data.model.width ** 0.5;
  const own = rows[view.position].map((value) => value * root);
  const most = reach(states);
  const names = view.labels[view.side];
  let y = 0;
  if (view.data.model.positions === "sinusoidal") y = waves(page, view, vectors) + 18;
  y = strips(page, { y, title: "position vectors, one a row", labels: names.map((_, t) => String(t)), values: vectors, lit: view.position, choose: view.follow });
  const options = { most, height: 40 };
  y = vector(page, { ...options, y: y + 22, label: names[view.position], note: "embedding", values: own });
  y = sign(page, y, "+");
  y = vector(page, { ...options, y, label: `position ${view.position}`, note: "", values: vectors[view.position] });
  y = sign(page, y, "=");
  vector(page, { ...options, y, label: "what goes on", note: "into the first layer", values: states[view.position] });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(own.map((value, c) => [c + 1, ...[value, vectors[view.position][c], states[view.position][c]].map((one) => decimal(one, 4))]), ["number", "embedding", `position ${view.position}`, "sum"], `“${names[view.position]}”`),
    json: { positions: vectors, sum: states[view.position] },
  };
}

/** A few components of the sinusoidal vectors as curves over the positions. */
function waves(page, view, vectors) {
  const width = view.data.model.width;
  const shown = [0, 8, 16, 32].map((pair) => 2 * Math.round((pair * width) / 128)).filter((component) => component < vectors[0].length);
  const [left, height] = [view.width < 420 ? 78 : 110, 38];
  const count = Math.max(vectors.length - 1, 1);
  const x = (t) => left + 6 + (t / count) * (view.width - left - 12);
  shown.forEach((component, i) => {
    const middle = 22 + i * (height + 6) + height / 2;
    const y = (value) => middle - (value * height) / 2.4;
    const frequency = 10000 ** (-component / width);
    const steps = Math.ceil(view.width / 3);
    const d = [...Array(steps + 1).keys()].map((s) => `${s ? "L" : "M"}${x((s * count) / steps).toFixed(1)} ${y(Math.sin((s * count * frequency) / steps)).toFixed(1)}`).join("");
    page.add(middle + height / 2,
      text(left - 8, middle, `number ${component + 1}`, { anchor: "end", kind: "label small" }),
      el("line", { x1: x(0), x2: x(count), y1: middle, y2: middle, class: "axis" }),
      el("path", { d, class: "curve", fill: "none" }),
      vectors.map((row, t) => el("circle", { cx: x(t), cy: y(row[component]), r: t === view.position ? 5 : 2.5, class: t === view.position ? "dot lit" : "dot" })));
  });
  page.add(20, text(left, 8, "four of the waves, position by position", { kind: "heading" }));
  return 22 + shown.length * (height + 6);
}

/** Rotary positions: for some pairs of numbers a dial, with query and key before and after they are turned. */
function rotary(view) {
  const page = sheet(view.width);
  const { cosine, sine } = view.data.rotation;
  const half = cosine[0].length;
  const columns = view.width < 560 ? 3 : 6;
  const pairs = [0, 1, 2, 4, 8, 12].map((pair) => Math.min(half - 1, Math.round((pair * half) / 16)));
  const query = view.data.kind === "cross" ? null : view.data.attention.unturned[0][view.position];
  const [size, gap] = [Math.min(112, (view.width - 8 * columns) / columns), 8];
  const t = view.position;
  page.add(20, text(0, 8, shortened(`how far position ${t} turns each pair of numbers${query ? `; dashed: the query of “${view.labels[view.side][t]}”, turned` : ""}`, view.width, 11), { kind: "heading" }));
  pairs.forEach((pair, i) => {
    const [cx, cy] = [(i % columns) * (size + gap) + size / 2, 28 + Math.floor(i / columns) * (size + 34) + size / 2];
    page.add(cy + size / 2 + 26, dial({ cx, cy, radius: size / 2 - 4, cosine: cosine.map((row) => row[pair]), sine: sine.map((row) => row[pair]), t, own: query && [query[pair], query[pair + half]] }),
      text(cx, cy + size / 2 + 10, `${pair + 1} with ${pair + 1 + half}`, { anchor: "middle", kind: "heading" }));
  });
  const angles = cosine[0].map((_, pair) => Math.atan2(sine[1]?.[pair] ?? 0, cosine[1]?.[pair] ?? 1));
  const rows = Math.ceil(pairs.length / columns);
  let y = 34 + rows * (size + 34);
  y = strips(page, { y, title: "cosine of the angles: positions by pairs of numbers", labels: view.labels[view.side].map((name, row) => `${row} ${name}`), values: cosine.slice(0, view.labels[view.side].length), most: 1, lit: t, choose: view.follow });
  return {
    graphic: page.finish(view.tooltip),
    table: () => tableOf(angles.map((angle, pair) => [`${pair + 1}, ${pair + 1 + half}`, decimal(angle, 4), decimal((angle * t * 180) / Math.PI, 1)]), ["numbers", "radians a position", `degrees at position ${t}`]),
    json: view.data.rotation,
  };
}

function dial({ cx, cy, radius, cosine, sine, t, own }) {
  const hand = (angle, length, kind) => {
    const line = el("line", { x1: cx, y1: cy, x2: cx + length, y2: cy, class: `hand ${kind}` });
    line.style.transformOrigin = `${cx}px ${cy}px`;
    line.style.transform = `rotate(${-angle}rad)`; // counter-clockwise, as angles are counted
    return line;
  };
  const angle = (row) => Math.atan2(sine[row], cosine[row]);
  const start = own ? Math.atan2(own[1], own[0]) : 0;
  const dots = cosine.map((value, row) => el("circle", { cx: cx + radius * value, cy: cy - radius * sine[row], r: row === t ? 5 : 2, class: row === t ? "dot lit" : "dot" }));
  return [
    el("circle", { cx, cy, r: radius, class: "dial" }), dots,
    hand(0, radius - 4, "thin"), hand(angle(t), radius - 6, "thick"),
    own && hand(start + angle(t), radius * 0.55, "own"),
  ];
}
