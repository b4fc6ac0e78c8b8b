/* Where two translations part: the first piece that differs, and the words that do. Knows pieces and texts only. */

import { changedWords, wordsOf } from "../diff.js";
import { beginsWord } from "../format.js";

/**
 * The first position at which two rows of pieces differ; null if they are the same.
 *
 * @param {{piece: string}[]} a
 * @param {{piece: string}[]} b
 */
export function partingStep(a, b) {
  const length = Math.max(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i]?.piece !== b[i]?.piece) return i;
  return null;
}

/** The position of the word that a piece belongs to, among the words of its text. */
export function wordAt(pieces, position) {
  const begun = pieces.slice(0, position + 1).filter(({ piece }, i) => beginsWord(piece) || i === 0).length;
  return Math.max(0, begun - 1);
}

/** The words of a text, each with whether the other text lacks it there: [{word, changed}]. */
export function comparedWords(text, other) {
  const words = wordsOf(text);
  const changed = changedWords(words, wordsOf(other));
  return words.map((word, i) => ({ word, changed: changed[i] }));
}
