/* Pieces, or the words that they spell, as what a picture has one row, column or chip for.
 *
 * Knows pieces and matrices over them; not which model or head they come from.
 */

import { beginsWord, isSpecial, label, readable } from "../format.js";

/**
 * Units of a row of pieces: each piece for itself, or joined into words.
 *
 * @param {{piece: string}[]} pieces
 * @param {boolean} words
 * @returns {{from: number, to: number, text: string}[]} `to` is exclusive
 */
export function unitsOf(pieces, words) {
  const units = [];
  pieces.forEach(({ piece }, i) => {
    const alone =
      !words || !units.length || beginsWord(piece) || isSpecial(piece) || isSpecial(pieces[i - 1].piece);
    if (alone) units.push({ from: i, to: i + 1 });
    else units.at(-1).to = i + 1;
  });
  return units.map((unit) => ({ ...unit, text: named(pieces.slice(unit.from, unit.to)) }));
}

const named = (pieces) => (pieces.length === 1 ? label(pieces[0].piece) : readable(pieces).join("").trim());

/**
 * A matrix over pieces as one over units: weights on a unit add up, and a unit that attends has its pieces' mean.
 *
 * @param {(number | null)[][]} values [piece][piece]; null: hidden by a mask
 * @returns {(number | null)[][]} [unit][unit]
 */
export function merged(values, rows, columns) {
  return rows.map((row) =>
    columns.map((column) => {
      const sums = [];
      for (let i = row.from; i < row.to; i++) {
        const seen = values[i].slice(column.from, column.to).filter((value) => value !== null);
        sums.push(seen.length ? seen.reduce((sum, value) => sum + value, 0) : null);
      }
      if (sums.every((sum) => sum === null)) return null;
      return sums.reduce((sum, value) => sum + (value ?? 0), 0) / sums.length;
    }),
  );
}
