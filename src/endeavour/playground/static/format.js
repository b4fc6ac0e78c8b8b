/* How numbers and pieces are written for people. Knows no element and no view. */

export const MINUS = "\u2212";
const WORD = "\u2581"; // SentencePiece's mark of the beginning of a word

/** A number with a true minus sign and a fixed number of decimals. */
export const decimal = (value, digits = 2) => value.toFixed(digits).replace("-", MINUS);

/** The same without a minus before zeros. */
export const fixed = (value, digits) => decimal(Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value, digits);

/** A number with about three significant digits. */
export function brief(value) {
  const size = Math.abs(value);
  return fixed(value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3);
}

/** A probability as a percentage with about two significant digits. */
export function percent(probability) {
  const value = 100 * probability;
  if (value >= 99.95) return "100\u2009%";
  if (value >= 10) return `${value.toFixed(value >= 99 ? 1 : 0)}\u2009%`;
  if (value >= 0.1) return `${value.toFixed(1)}\u2009%`;
  return value >= 0.001 ? `${value.toFixed(3)}\u2009%` : "<\u20090.001\u2009%";
}

/** Bits, as surprisal and entropy are given. */
export const bits = (value) => `${decimal(value, value < 10 ? 2 : 1)} bits`;

/** 1st, 2nd, 3rd … */
export function ordinal(number) {
  const tens = number % 100;
  const ending = tens >= 11 && tens <= 13 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number.toLocaleString("en")}${ending}`;
}

/** Whether a piece begins a word. */
export const beginsWord = (piece) => piece.startsWith(WORD);

/** A piece as it reads in a sentence: its leading mark is a space. */
const spoken = (piece) => piece.replaceAll(WORD, " ");

/** A piece as a label of its own: without the mark of a word's beginning, unless it is nothing else. */
export const label = (piece) => piece.replace(new RegExp(`^${WORD}(?=.)`), "").replaceAll(WORD, "\u2423");

/** The same, with a word for the end of a sentence. */
export const pieceName = (piece) => (piece === "</s>" ? "end" : label(piece));

/** Whether a piece is BOS, EOS or another id that stands for no text. */
export const isSpecial = (piece) => /^<(s|\/s|pad|unk)>$/.test(piece);

/** 1,800 and the like. */
export const thousands = (value) => value.toLocaleString("en");

const BYTE = /^<0x([0-9A-F]{2})>$/;

/**
 * How each piece reads: characters outside the vocabulary are spelt in bytes, and are read at their first one.
 *
 * @param {{piece: string}[]} pieces
 * @returns {string[]} one text a piece; "" for the further bytes of a character
 */
export function readable(pieces) {
  const texts = pieces.map(({ piece }) => spoken(piece));
  for (let start = 0; start < pieces.length; start++) {
    const run = [];
    for (let i = start; i < pieces.length && BYTE.test(pieces[i].piece); i++)
      run.push(Number.parseInt(BYTE.exec(pieces[i].piece)[1], 16));
    if (!run.length) continue;
    texts.fill("", start, start + run.length);
    texts[start] = new TextDecoder().decode(Uint8Array.from(run));
    start += run.length;
  }
  return texts;
}
