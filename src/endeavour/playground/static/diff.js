/* How two texts differ: the words that the other has not in the same order, the first piece at which they part.
 *
 * Knows words and pieces only.
 */

import { h } from "./dom.js";
import { beginsWord } from "./format.js";

const wordsOf = (text) => text.split(/\s+/).filter(Boolean);

/**
 * For each word whether it is outside the longest common subsequence with the other words.
 *
 * @param {string[]} words
 * @param {string[]} others
 * @returns {boolean[]}
 */
function changedWords(words, others) {
  const common = Array.from({ length: words.length + 1 }, () => new Array(others.length + 1).fill(0));
  for (let i = words.length - 1; i >= 0; i--) {
    for (let j = others.length - 1; j >= 0; j--) {
      common[i][j] =
        words[i] === others[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const changed = words.map(() => true);
  for (let i = 0, j = 0; i < words.length && j < others.length;) {
    if (words[i] === others[j]) [changed[i], i, j] = [false, i + 1, j + 1];
    else if (common[i + 1][j] >= common[i][j + 1]) i++;
    else j++;
  }
  return changed;
}

/**
 * The words of a text with spaces between them, as content of an element.
 *
 * @param {string} text
 * @param {string} other
 * @param {object} [options]
 * @param {(word: string, position: number) => Node} [options.mark] what a word becomes that the other text lacks there
 * @param {(word: string) => string} [options.fold] what of a word is compared
 */
export function marked(text, other, { mark = (word) => h("mark", {}, word), fold = (word) => word } = {}) {
  const words = wordsOf(text);
  const changed = changedWords(words.map(fold), wordsOf(other).map(fold));
  return words.map((word, i) => [i ? " " : "", changed[i] ? mark(word, i) : word]);
}

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
