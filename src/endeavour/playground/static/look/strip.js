/* Source and target as rows of chips: id, probability, surprisal in colour and number, alternatives on hover or focus.
 *
 * Knows the analysis of one translation; hovering is reported, and shown as told.
 */

import { alternativeRows } from "../alternatives.js";
import { h } from "../dom.js";
import { bits, decimal, label, ordinal, percent } from "../format.js";
import { roving, setRoving } from "../keys.js";
import { rect, svg, text, textWidth } from "../drawing.js";
import { unitsOf } from "./units.js";
import { tooltip } from "../tooltip.js";

const LEAST = 0.005; // weight that is not shown on a chip
const LISTED = 6; // alternatives in the tooltip; the list that a click on the translation opens has all
const STRONGEST = 8; // bits from which the colour of a surprise does not grow any more

/** Between 0 and 1; the root lets small surprises be seen in a translation of which the model is sure. */
export const strength = (surprisal) => Math.sqrt(Math.min(1, surprisal / STRONGEST));

/** Units of the target with their numbers: those of a word are its pieces' together. */
function scoredUnits(target, words) {
  return unitsOf(target, words).map((unit) => {
    const pieces = target.slice(unit.from, unit.to);
    return { ...unit, pieces, surprisal: pieces.reduce((sum, { surprisal }) => sum + surprisal, 0) };
  });
}

const languageOf = (side) => document.getElementById(side === "source" ? "input" : "output").lang;
const probability = (unit) => 2 ** -unit.surprisal;
const idsOf = (pieces) => pieces.map(({ id }) => id).join(" ");

/**
 * @param {HTMLElement} root
 * @param {{onHover: (side: string, index: number | null) => void, onChoose: Function}} context
 */
export function createStrip(root, { onHover, onChoose }) {
  let lit = []; // chips that look other than usual
  const rows = { source: row("Source", "source"), target: row("Target", "target") };
  root.append(rows.source.node, rows.target.node);

  function row(name, side) {
    const chips = h("div", {
      class: "chips",
      role: "toolbar",
      "aria-label": `${name} pieces`,
      "data-side": side,
    });
    roving(chips, ".chip");
    return { chips, node: h("div", { class: "strip" }, h("h4", {}, name), chips) };
  }

  function chip(side, i, ...content) {
    const on = {
      onpointerenter: () => enter(),
      onpointerleave: () => leave(),
      onfocus: () => enter(),
      onblur: () => leave(),
      onclick: () => onChoose(side, i),
    };
    const node = h("button", { class: "chip", ...on }, content);
    const enter = () => (onHover(side, i), node.explain && tooltip.show(node, node.explain));
    const leave = () => (onHover(side, null), tooltip.hide());
    return node;
  }

  function show({ source, target }, words) {
    const focused = root.contains(document.activeElement) ? document.activeElement : null;
    const [side, index] = [
      focused?.parentNode.dataset.side,
      focused ? [...focused.parentNode.children].indexOf(focused) : 0,
    ];
    const sources = unitsOf(source, words).map((unit, i) =>
      chip(
        "source",
        i,
        h("b", { lang: languageOf("source") }, unit.text),
        h("small", {}, idsOf(source.slice(unit.from, unit.to))),
      ),
    );
    const targets = scoredUnits(target, words).map((unit, i) => targetChip(unit, i));
    rows.source.chips.replaceChildren(...sources);
    rows.target.chips.replaceChildren(...targets);
    setRoving(sources, 0);
    setRoving(targets, 0);
    if (side) rows[side].chips.children[Math.min(index, rows[side].chips.children.length - 1)].focus();
  }

  function targetChip(unit, i) {
    const node = chip(
      "target",
      i,
      h("b", { lang: languageOf("target") }, unit.text),
      h("span", {}, percent(probability(unit))),
      h("small", {}, bits(unit.surprisal)),
      h("small", {}, idsOf(unit.pieces)),
    );
    node.style.setProperty("--surprisal", `${Math.round(100 * strength(unit.surprisal))}%`);
    node.explain = () => explained(unit);
    return node;
  }

  /** Marks one chip, and on a side how much it attends to each. */
  function highlight(side, index, weightsSide, weights) {
    for (const node of lit) {
      node.classList.remove("lit");
      node.style.removeProperty("--attended");
    }
    lit = [rows[side]?.chips.children[index]].filter(Boolean);
    lit[0]?.classList.add("lit");
    if (!weights) return;
    [...rows[weightsSide].chips.children].forEach((node, i) => {
      if (!(weights[i] > LEAST)) return;
      node.style.setProperty("--attended", weights[i].toFixed(3));
      lit.push(node);
    });
  }
  return { show, highlight };
}

/** What the tooltip says of a unit of the target. */
function explained(unit) {
  const [first] = unit.pieces;
  const rows = alternativeRows(first)
    .slice(0, LISTED)
    .map(({ cells }) => h("div", { class: "row" }, cells));
  const part = unit.pieces.length > 1 ? `its first piece, ${label(first.piece)}: ` : "";
  const facts = `${part}${ordinal(first.rank + 1)} choice, of an entropy of ${bits(first.entropy)}`;
  return [
    h("p", {}, h("strong", { lang: languageOf("target") }, unit.text), ` ${percent(probability(unit))}`),
    h("p", { class: "hint" }, facts),
    h("div", { class: "rows" }, rows),
  ];
}

/** The table of a translation's pieces: [rows, headings]. */
export function piecesTable({ target }) {
  const rows = target.map(({ id, piece, log_probability: value, surprisal, rank, entropy, alternatives }) => [
    label(piece),
    id,
    percent(Math.exp(value)),
    decimal(surprisal, 3),
    rank + 1,
    decimal(entropy, 3),
    alternatives
      .slice(0, 3)
      .map((other) => `${label(other.piece)} ${percent(Math.exp(other.log_probability))}`)
      .join(", "),
  ]);
  return [rows, ["Piece", "Id", "Probability", "Surprisal (bits)", "Rank", "Entropy (bits)", "Alternatives"]];
}

/** The target's surprisal as a bar chart, for files. */
export function surprisalGraphic({ target }, words) {
  const units = scoredUnits(target, words);
  const [height, base] = [120, 96];
  let x = 0;
  const bars = units.map((unit) => {
    const width = Math.max(44, textWidth(unit.text) + 20);
    const size = 4 + 64 * strength(unit.surprisal);
    const middle = x + width / 2;
    x += width;
    return [
      rect(middle - 14, base - size, 28, size, { rx: 4, fill: "var(--surprise)" }),
      text(middle, base - size - 6, decimal(unit.surprisal), { anchor: "middle", kind: "heading", dy: 0 }),
      text(middle, height - 6, unit.text, { anchor: "middle", kind: null, dy: 0 }),
    ];
  });
  return svg(Math.ceil(x), height, bars);
}
