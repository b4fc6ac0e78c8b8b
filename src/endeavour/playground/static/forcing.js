/* Forced prefixes: what the visitor decided of a translation, and the way back.
 *
 * Knows the keys p and t of the state; not how a prefix is chosen or shown.
 */

import { NEW_SEARCH, parsePrefix, printPrefix } from "./state.js";
import { readable } from "./format.js";
import { announce } from "./messages.js";

/** @returns {{force: Function, undo: () => boolean}} */
export function createForcing(state) {
  let choices = []; // {before: {p, t}, after: p}; after the first `made` come those that were taken back
  let made = 0;
  const forcedBy = (count) => choices[count]?.before.p ?? choices[count - 1]?.after;

  state.subscribe(({ p }, changed) => {
    // The browser's Back and Forward go among them too; letters that were deleted again are no choice.
    const now = [made - 1, made, made + 1].find((count) => forcedBy(count) === p);
    if (changed.has("q") || changed.has("run") || now === undefined) [choices, made] = [[], 0];
    else made = now;
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
      if (more && made) choices[made - 1].after = next;
      else choices.splice(made++, Infinity, { before: { p, t }, after: next });
      state.set({ ...NEW_SEARCH, p: next }, { push: !more });
    },
    /** Takes the last force back; false if nothing is forced. */
    undo() {
      const { p } = state.get();
      if (!p) return false;
      const before = made ? choices[--made].before : shorter(p);
      state.set({ ...NEW_SEARCH, ...before }, { push: true });
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
  // In the normal form of all texts; a space at the end forces no piece by itself.
  const wanted = prefix.text.normalize("NFC").trim().replace(/\s+/g, " ").length;
  let [spelt, count] = ["", 0];
  // A character that is spelt in bytes is read at the first one; the others belong to it.
  while (count < texts.length && (spelt.trimStart().length < wanted || (count && !texts[count])))
    spelt += texts[count++];
  return prefix.ids.length + count;
}
