/* Pictures of two systems on one sentence: the next piece where they part, attention, and what each thinks of the others'
 * translations.
 *
 * Knows the answers of /api/analyse and /api/attention; asks for nothing itself, except through the function it is given.
 */

import { h, scrollRegion } from "../dom.js";
import { decimal, label, percent, pieceName, readable } from "../format.js";
import { average } from "../look/maps.js";
import { rect, shortened, svg, tableOf, text, textWidth } from "../drawing.js";
import { attentionMatrix } from "./attention.js";
import { systemTitle } from "./systems.js";

const MOST = 7; // pieces in the picture

/** Both systems' probabilities of the pieces that might follow what they have in common. */
export function partingOf({ a, b, step, ours, theirs }, width) {
  const [first, second] = [ours, theirs].map(shares);
  const written = ({ piece }) => piece === ours.piece || piece === theirs.piece;
  const byShare = (x, y) => Math.max(y.a ?? 0, y.b ?? 0) - Math.max(x.a ?? 0, x.b ?? 0);
  const pieces = [...new Set([...first.keys(), ...second.keys()])]
    .map((piece) => ({ piece, a: first.get(piece) ?? null, b: second.get(piece) ?? null }))
    .sort((x, y) => written(y) - written(x) || byShare(x, y)) // those are never left out
    .slice(0, MOST)
    .sort(byShare);
  const before = readable(a.hypothesis.pieces.slice(0, step)).join("").trim();
  const left = Math.min(120, Math.max(...pieces.map(({ piece }) => textWidth(pieceName(piece))))) + 12;
  const full = width - left - 110; // "A 99.2 %, chosen" must fit
  const row = 40;
  const bars = pieces.map(({ piece, a: one, b: two }, i) => {
    const y = 24 + i * row;
    const bar = (value, top, kind, letter, chosen) => [
      rect(left, top, Math.max(1.5, (value ?? 0) * full), 14, { rx: 3, class: kind }),
      text(
        left + (value ?? 0) * full + 6,
        top + 7,
        `${letter} ${value === null ? "not among the first" : percent(value)}${chosen ? ", chosen" : ""}`,
        { kind: chosen ? "small lit" : "small" },
      ),
    ];
    return [
      text(left - 8, y + 15, shortened(pieceName(piece), left - 10), { anchor: "end", kind: "label strong" }),
      bar(one, y, "one", "A", ours.piece === piece),
      bar(two, y + 16, "two", b.letter, theirs.piece === piece),
    ];
  });
  const where = before ? `after “${before}”` : "at the beginning";
  const title = text(0, 8, shortened(where, width, 11), { kind: "heading" });
  return {
    graphic: svg(width, 28 + pieces.length * row, title, bars),
    table: () =>
      tableOf(
        pieces.map(({ piece, a: one, b: two }) => [
          pieceName(piece),
          one === null ? "–" : percent(one),
          two === null ? "–" : percent(two),
        ]),
        ["next piece", `A ${systemTitle(a.system)}`, `${b.letter} ${systemTitle(b.system)}`],
        where,
      ),
    json: { step, before, pieces },
    note: `A: ${systemTitle(a.system)}; ${b.letter}: ${systemTitle(b.system)}`,
  };
}

/** Probability by piece: of the one that was written, and of the alternatives. */
function shares({ piece, log_probability: own, alternatives }) {
  return new Map([
    [piece, Math.exp(own)],
    ...alternatives.map((one) => [one.piece, Math.exp(one.log_probability)]),
  ]);
}

/** Cross-attention of the last layer, averaged over its heads. */
export function attentionOf({ system, letter }, map, width) {
  const values = average(map.cross.at(-1));
  const [rows, columns] = [map.target_out, map.source].map((pieces) =>
    pieces.map(({ piece }) => label(piece)),
  );
  const caption = `Attention of ${letter}, ${systemTitle(system)}`;
  const { graphic, table } = attentionMatrix({ rows, columns, values, width, sides: [10, 30], caption });
  return {
    name: caption,
    graphic: captioned(graphic, `${letter}  ${systemTitle(system)}`),
    table,
    json: { system: system.name, source: columns, target: rows, weights: values },
  };
}

function captioned(node, caption) {
  const [width, height] = [Number(node.getAttribute("width")), Number(node.getAttribute("height"))];
  node.append(text(0, height + 14, caption, { kind: "heading", dy: 0 }));
  node.setAttribute("height", height + 22);
  node.setAttribute("viewBox", `0 0 ${width} ${height + 22}`);
  return node;
}

/**
 * What each system thinks of each translation, as a table.
 *
 * @param {object[]} found systems with their hypotheses
 * @param {(name: string) => string} languageOf a system's translations
 * @param {(judge: object, author: object) => Promise<object>} analyse the translation of one of them under another
 */
export async function scoresOf(found, languageOf, analyse) {
  const texts = found.filter(
    (one, i) => found.findIndex(({ hypothesis }) => hypothesis.text === one.hypothesis.text) === i,
  );
  const rows = texts.map((author) => ({ author, cells: [] }));
  // By judge: the server keeps a few models only.
  for (const judge of found)
    for (const { author, cells } of rows) cells.push((await analyse(judge, author)).log_probability);
  const best = found.map((_, i) => Math.max(...rows.map(({ cells }) => cells[i])));
  const body = rows.map(({ author, cells }) => {
    const letters = found
      .filter(({ hypothesis }) => hypothesis.text === author.hypothesis.text)
      .map(({ letter }) => letter);
    const scores = cells.map((value, i) =>
      value === best[i]
        ? h("span", { class: "best" }, decimal(value), h("span", { class: "unseen" }, " preferred"))
        : decimal(value),
    );
    const translation = h("span", { lang: languageOf(author.system.name) }, author.hypothesis.text);
    return [[`${letters.join(", ")}: `, translation], ...scores];
  });
  const title = "What each thinks of the others’ translations";
  const hint =
    "Natural logarithm of a translation’s probability; the highest of each column is the one that system prefers.";
  const table = tableOf(body, ["translation of", ...found.map(({ letter }) => `by ${letter}`)]);
  return h(
    "div",
    {},
    h("h3", {}, title),
    h("p", { class: "hint" }, hint),
    scrollRegion("scroll", title, table),
  );
}
