/* What the model might have written instead: the most probable pieces at one position of the translation.
 *
 * Knows one position of an analysed translation; the caller decides what a choice does.
 */

import { overtaken } from "./api.js";
import { bar, h } from "./dom.js";
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
 * @param {{piece: string}[]} pieces of the translation
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
    return overtaken(error) ? undefined : report(error.message);
  }
  if (!anchor.isConnected || !analysis) return undefined;
  const before = readable(pieces.slice(0, position)).join("").trimStart();
  const close = () => box.hidePopover();
  function choose(alternative) {
    close();
    if (alternative.id !== analysis.target[position].id) onChoose(alternative);
  }
  const rows = alternativeRows(analysis.target[position])
    .filter(({ piece }) => position || piece !== "</s>") // an empty translation is none
    .map((row) => h("button", { class: "row", onclick: () => choose(row) }, row.cells));
  const box = h(
    "div",
    {
      class: "alternatives",
      popover: "auto",
      role: "dialog",
      "aria-label": `Instead of ${pieceName(pieces[position].piece)}`,
    },
    h("p", { class: "hint" }, before ? ["after ", h("q", {}, shortEnd(before))] : "at the beginning"),
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
  box.addEventListener("toggle", ({ newState }) => {
    if (newState !== "closed") return;
    const inside = box.contains(document.activeElement) || document.activeElement === document.body;
    box.remove();
    if (inside && anchor.isConnected) anchor.focus();
  });
  box.showPopover();
  const from = anchor.getBoundingClientRect();
  const size = box.getBoundingClientRect();
  box.style.left = `${Math.max(8, Math.min(from.left - 8, innerWidth - size.width - 8))}px`;
  const beneath = from.bottom + 8;
  box.style.top = `${beneath + size.height < innerHeight ? beneath : Math.max(8, from.top - size.height - 8)}px`;
  box.querySelector("button")?.focus();
  return undefined;
}

const shortEnd = (text) => (text.length > 28 ? `…${text.slice(-27)}` : text);
