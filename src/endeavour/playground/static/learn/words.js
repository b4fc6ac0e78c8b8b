/* Learn, from the text to vectors: pieces and their embeddings.
 *
 * Each function takes the view (see learn.js) and returns a figure's content.
 */

import { beginsWord, brief, decimal, isSpecial, label, thousands } from "../format.js";
import { el, rect, tableOf, text, textWidth } from "../drawing.js";
import { arrow, reach, sheet } from "./draw.js";
import { strips, vector } from "./vectors.js";

const BOX = 34; // height of a piece's box
const LINE = 68;

/** The sentence and its translation as pieces with their ids. */
export function pieces(view) {
  const page = sheet(view.width);
  const { source, target_in: target } = view.data.tokens;
  const bottom = boxes(page, {
    y: 0,
    title: `Source: ${source.length} pieces`,
    tokens: source,
    lit: view.source,
    choose: (position) => view.choose({ source: position }),
  });
  boxes(page, {
    y: bottom + 20,
    title: `Translation, as the decoder reads it: ${target.length} pieces`,
    tokens: target,
    lit: view.target,
    choose: (position) => view.choose({ target: position }),
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        [
          ...source.map((one, i) => ["source", i, one.piece, one.id]),
          ...target.map((one, i) => ["translation", i, one.piece, one.id]),
        ],
        ["side", "position", "piece", "id"],
      ),
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
    const kind = [
      "piece",
      isSpecial(piece) && "special",
      !beginsWord(piece) && !isSpecial(piece) && "inner",
      i === lit && "lit",
    ]
      .filter(Boolean)
      .join(" ");
    page.add(
      top + LINE - 12,
      rect(x + 0.5, top, width - 1, BOX, { rx: 7, class: kind }),
      text(x + width / 2, top + BOX / 2, shown, { anchor: "middle", kind: i === lit ? "word lit" : "word" }),
      text(x + width / 2, top + BOX + 11, String(id), { anchor: "middle", kind: "heading" }),
    );
    page.area({
      x,
      y: top,
      cell: [width, BOX + 16],
      rows: 1,
      columns: 1,
      text: () => `position ${i}: piece ${piece}, id ${id}`,
      choose: () => choose(i),
    });
    x += width;
  });
  return top + LINE - 12;
}

/** The row of the chosen piece in the embedding's table, and the rows of all pieces. */
export function embedding(view) {
  const page = sheet(view.width);
  const { model } = view.data;
  const rows = view.data.embedding[view.side].rows;
  const token = view.tokens[view.q];
  const root = model.width ** 0.5;
  const scaled = rows.map((row) => row.map((value) => value * root));
  const own = rows[view.q];
  const vocabulary = model[view.side === "source" ? "source_vocabulary" : "target_vocabulary"];
  const narrow = view.width < 560;
  const left = narrow ? 0 : 150;
  if (!narrow) lookup(page, { token, vocabulary, width: model.width });
  const most = reach(scaled);
  const options = { x: left, width: view.width - left, most, height: 46 };
  let y = vector(page, {
    ...options,
    y: 6,
    label: `row ${thousands(token.id)}`,
    note: label(token.piece),
    values: own,
  });
  page.add(
    y + 26,
    text(left + (view.width - left) / 2, y + 15, `× √${model.width} = × ${brief(root)}`, {
      anchor: "middle",
      kind: "sign",
    }),
  );
  y = vector(page, {
    ...options,
    y: y + 30,
    label: "embedding",
    note: "as it goes on",
    values: scaled[view.q],
  });
  y = alike(page, {
    y: y + 18,
    x: left,
    token,
    neighbours: view.data.embedding[view.side].neighbours[view.q],
  });
  strips(page, {
    y: y + 20,
    title: "the embeddings of all pieces",
    labels: view.labels[view.side],
    values: scaled,
    lit: view.q,
    choose: view.follow,
  });
  return {
    graphic: page.finish(),
    table: () =>
      tableOf(
        own.map((value, c) => [c + 1, decimal(value, 4), decimal(value * root, 4)]),
        ["number", `row ${token.id} of the table`, `× √${model.width}`],
        `“${label(token.piece)}”`,
      ),
    json: {
      piece: token,
      row: own,
      embedding: scaled[view.q],
      neighbours: view.data.embedding[view.side].neighbours[view.q],
    },
  };
}

/** The pieces whose rows are most like this one. */
function alike(page, { y, x, token, neighbours }) {
  page.add(
    y + 16,
    text(x, y + 8, `rows most like that of “${label(token.piece)}” (cosine)`, { kind: "heading" }),
  );
  let [at, top] = [x, y + 22];
  for (const { piece, similarity } of neighbours) {
    const [name, value] = [label(piece), similarity.toFixed(2)];
    const width = textWidth(name, 13) + textWidth(value, 11) + 26;
    if (at + width > page.width) [at, top] = [x, top + 32];
    page.add(
      top + 28,
      rect(at, top, width, 26, { rx: 7, class: "piece inner" }),
      text(at + 9, top + 13, name, { kind: "label strong" }),
      text(at + width - 9, top + 13, value, { anchor: "end", kind: "heading" }),
    );
    at += width + 6;
  }
  return top + 26;
}

function lookup(page, { token, vocabulary, width }) {
  const [x, y, w, h] = [8, 10, 76, 112];
  const at = y + 3 + (token.id / vocabulary) * (h - 6);
  const lines = [...Array(14).keys()].map((i) =>
    el("line", {
      x1: x,
      x2: x + w,
      y1: y + (i + 0.5) * (h / 14),
      y2: y + (i + 0.5) * (h / 14),
      class: "rule",
    }),
  );
  page.add(
    y + h + 20,
    rect(x, y, w, h, { rx: 4, class: "box" }),
    lines,
    rect(x - 3, at - 3, w + 6, 6, { rx: 3, class: "mark" }),
    text(x + w / 2, y + h + 11, `${thousands(vocabulary)} × ${width}`, { anchor: "middle", kind: "heading" }),
    arrow(x + w + 6, at, 158, 29),
  );
}
