/* What the model might have written instead: the most probable pieces at one position of the translation.
 *
 * Knows one position of an analysed translation; the caller decides what a choice does.
 */

import { overtaken } from "./api.js";
import { bar, closeWhenLeft, h, placeBeside } from "./dom.js";
import { percent, pieceName, readable } from "./format.js";
import { roving, setRoving } from "./keys.js";
import { report } from "./messages.js";
import { tooltip } from "./tooltip.js";

/** A row for each alternative: piece, bar, probability. */
export function alternativeRows(position) {
  return position.alternatives.map(({ id, piece, log_probability: value }) => ({
    id,
    piece,
    cells: [
      h("span", { class: ["what", id === position.id && "current"] }, pieceName(piece)),
      bar(Math.exp(value)),
      h("span", { class: "number" }, percent(Math.exp(value))),
    ],
  }));
}

/**
 * Opens the list beneath a piece.
 *
 * @param {object} context
 * @param {HTMLElement} anchor
 * @param {{id: number, piece: string}[]} pieces of the translation
 * @param {number} position
 * @param {{onChoose: (alternative: {id: number, piece: string}) => void, onType: () => void}} callbacks
 */
export async function openAlternatives(
  { results },
  anchor,
  pieces,
  position,
  { onChoose, onType },
) {
  tooltip.hide();
  let analysis;
  try {
    analysis = await results.analysis();
  } catch (error) {
    if (!overtaken(error)) report(error.message);
    return;
  }
  if (!anchor.isConnected || !analysis || !sameIds(pieces, analysis.target)) return;
  const before = readable(pieces.slice(0, position)).join("").trimStart();
  const { lang } = document.getElementById("output");
  const close = () => box.hidePopover();
  function choose(alternative) {
    close();
    if (alternative.id !== analysis.target[position].id) onChoose(alternative);
  }
  const rows = alternativeRows(analysis.target[position]).map((row) =>
    h("button", { class: "row", onclick: () => choose(row) }, row.cells),
  );
  const box = h(
    "div",
    {
      class: "alternatives",
      popover: "auto",
      role: "dialog",
      "aria-label": `Instead of ${pieceName(pieces[position].piece)}`,
    },
    h("p", { class: "hint" }, before ? ["after ", h("q", { lang }, shortEnd(before))] : "at the beginning"),
    h("div", { class: "rows" }, rows),
    h(
      "button",
      { class: "quiet", onclick: () => (close(), onType()) },
      "Type something else…",
    ),
  );
  roving(box, "button");
  setRoving([...box.querySelectorAll("button")], 0);
  document.body.append(box);
  closeWhenLeft(box, anchor);
  box.addEventListener("toggle", ({ newState }) => {
    if (newState !== "closed") return;
    const inside = box.contains(document.activeElement) || document.activeElement === document.body;
    box.remove();
    if (inside && anchor.isConnected) anchor.focus();
  });
  box.showPopover();
  placeBeside(box, anchor, 0);
  box.querySelector("button").focus();
}

/** Whether the pieces are still those that were analysed: another translation may have been chosen meanwhile. */
const sameIds = (pieces, target) =>
  pieces.length === target.length && pieces.every(({ id }, i) => id === target[i].id);

const shortEnd = (text) => (text.length > 28 ? `…${text.slice(-27)}` : text);
