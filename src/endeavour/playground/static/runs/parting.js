/* Where two translations part: the first piece that differs, and the word that it belongs to. Knows pieces only. */

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
