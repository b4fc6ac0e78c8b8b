/* A field within the translation: what is typed there is forced at once, and the model's continuation follows it.
 *
 * Knows pieces and one position; the caller forces and searches.
 */

import { h } from "./dom.js";
import { beginsWord, label, readable } from "./format.js";

/**
 * Replaces the translation by its beginning, a field, and the continuation.
 *
 * @param {HTMLElement} output
 * @param {{piece: string}[]} pieces of the translation
 * @param {number} position the piece that is typed over
 * @param {string} letter that was typed already, or ""
 * @param {{onChange: (typed: string, more: boolean) => void, onEnd: (kept: boolean, left: boolean) => void}} callbacks
 *   `more`: not the first change; `left`: the focus went elsewhere
 * @returns {{follow: (rest: string) => void, changed: () => void}} `follow` shows a new continuation; `changed` reports
 *   what the field holds
 */
export function typeOver(output, pieces, position, letter, { onChange, onEnd }) {
  const piece = pieces[position].piece;
  // A word is typed over as a word: after the pieces before it comes the space that it began with.
  const space = position > 0 && (beginsWord(piece) || piece === "</s>") ? " " : "";
  const before = readable(pieces.slice(0, position)).join("").trimStart();
  const field = h("input", {
    type: "text",
    class: "over",
    "data-position": position,
    "aria-label": `Type over ${label(piece)}`,
    spellcheck: "false",
    autocomplete: "off",
    value: letter,
  });
  const rest = h("span");
  let changes = 0;
  let ended = false;

  function changed() {
    onChange(field.value ? space + field.value : "", changes++ > 0);
  }
  function end(kept, left = false) {
    if (ended) return;
    ended = true;
    onEnd(kept || !changes, left);
  }
  field.addEventListener("input", changed);
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    const atEnd = field.selectionStart === field.value.length;
    if (event.key === "Escape") end(false);
    else if (event.key === "Enter" || (event.key === "ArrowRight" && atEnd)) end(true);
    else return;
    event.preventDefault();
  });
  field.addEventListener("blur", () => end(true, true));
  output.replaceChildren(h("span", { class: "forced" }, before), space, field, rest);
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
  return { follow: (text) => (rest.textContent = text), changed };
}
