/* Forced prefixes: what the visitor decided of a translation, and the way back.
 *
 * Knows the keys p and t of the state; not how a prefix is chosen or shown.
 */

import { NEW_SEARCH, parsePrefix, printPrefix } from "./state.js";
import { readable } from "./format.js";
import { announce } from "./messages.js";

/** @returns {{force: Function, undo: () => boolean}} */
export function createForcing(state) {
  let past = []; // what undo restores: {p, t}

  state.subscribe((current, changed) => {
    if (changed.has("q") || changed.has("run")) past = [];
    // The browser's Back button has undone it already.
    else if (changed.has("p") && past.length && past.at(-1).p === current.p) past.pop();
  });

  return {
    /**
     * Forces ids and, after them, text that may end within a word.
     *
     * @param {number[]} ids
     * @param {string} [typed]
     * @param {boolean} [more] further letters of the same word: one undo takes all of them back
     */
    force(ids, typed = "", more = false) {
      const { p, t } = state.get();
      const next = printPrefix(ids, typed);
      if (next === p) return;
      const entry = { p, t };
      state.set({ ...NEW_SEARCH, p: next }, { push: !more });
      if (!more) past.push(entry);
    },
    /** Takes the last force back; false if nothing is forced. */
    undo() {
      if (!state.get().p) return false;
      state.set({ ...NEW_SEARCH, ...(past.pop() ?? shorter(state.get().p)) }, { push: true });
      announce("Undone");
      return true;
    },
  };
}

/** What is left of a prefix whose choices are not known, as in an address: without its typed text, or its last piece. */
function shorter(p) {
  const { ids, text } = parsePrefix(p);
  return { p: printPrefix(text ? ids : ids.slice(0, -1)) };
}

/** How many of a translation's pieces are forced by `p`: its ids, and the pieces that spell its typed text. */
export function forcedCount(p, pieces) {
  const prefix = parsePrefix(p);
  if (!prefix) return 0;
  const texts = readable(pieces.slice(prefix.ids.length));
  const wanted = prefix.text.trim().replace(/\s+/g, " ").length; // a space at the end forces no piece by itself
  let [spelt, count] = ["", 0];
  // A character that is spelt in bytes is read at the first one; the others belong to it.
  while (count < texts.length && (spelt.trimStart().length < wanted || (count && !texts[count])))
    spelt += texts[count++];
  return prefix.ids.length + count;
}
