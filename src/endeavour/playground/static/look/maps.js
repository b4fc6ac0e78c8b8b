/* Which numbers the large picture shows: one head, the mean of a layer's heads, or the saliency; and what its rows and
 * columns stand for.
 *
 * Knows the answers of /api/attention and /api/saliency; not how they are drawn.
 */

import { merged, unitsOf } from "./units.js";

/** The three kinds, in the order in which a sentence passes them. */
export const KINDS = {
  encoder: {
    name: "Encoder self-attention",
    rows: "attends",
    columns: "attended to",
    verb: "attends to",
    rowSide: "source",
    columnSide: "source",
  },
  decoder: {
    name: "Decoder self-attention",
    rows: "writes",
    columns: "looks back at",
    verb: "attends to",
    rowSide: "target",
    columnSide: "written",
  },
  cross: {
    name: "Cross-attention",
    rows: "writes",
    columns: "reads",
    verb: "attends to",
    rowSide: "target",
    columnSide: "source",
  },
};
const SALIENCY = {
  name: "Gradient saliency",
  rows: "writes",
  columns: "depends on",
  verb: "depends on",
  rowSide: "target",
  columnSide: "source",
};

/** The layer that is shown, within the model: the state's, or the last one. */
export const layerOf = (state, attention) => {
  const last = attention[state.kind].length - 1;
  return Math.min(state.layer ?? last, last);
};

/** The head that is shown: a number within the model, or "avg". */
export const headOf = (state, attention) =>
  state.head === "avg" ? "avg" : Math.min(state.head, attention[state.kind][0].length - 1);

/** Mean over heads: [query][key]. */
export function average(heads) {
  return heads[0].map((row, i) =>
    row.map((_, j) => heads.reduce((sum, head) => sum + head[i][j], 0) / heads.length),
  );
}

/** Entropy of each row in bits: 0 where all weight is in one place. */
export const entropies = (values) =>
  values.map((row) =>
    Math.abs(row.reduce((sum, value) => sum + (value > 0 ? value * Math.log2(value) : 0), 0)),
  );

/** The mean of `entropies`. */
export const entropy = (values) => entropies(values).reduce((sum, value) => sum + value, 0) / values.length;

/** Weights of a decoder head without those that its mask hides. */
const causal = (values) => values.map((row, i) => row.map((value, j) => (j > i ? null : value)));

/**
 * @param {object} state
 * @param {object} attention the answer of /api/attention
 * @param {object | null} saliency the answer of /api/saliency, where it is what the state shows
 * @returns {{map: object, title: string, rows: object[], columns: object[], values: (number | null)[][]}}
 *   rows and columns are units, see units.js
 */
export function chosenMap(state, attention, saliency) {
  const map = saliency ? SALIENCY : KINDS[state.kind];
  const pieces = { source: attention.source, target: attention.target_out, written: attention.target_in };
  const rows = unitsOf(pieces[map.rowSide], state.words);
  const columns = unitsOf(pieces[map.columnSide], state.words);
  let [values, title] = [saliency?.weights, map.name];
  if (!saliency) {
    const [layer, head] = [layerOf(state, attention), headOf(state, attention)];
    const heads = attention[state.kind][layer];
    values = head === "avg" ? average(heads) : heads[head];
    title = `${map.name}, layer ${layer + 1}, ${head === "avg" ? `mean of ${heads.length} heads` : `head ${head + 1}`}`;
  }
  if (map.columnSide === "written") values = causal(values);
  return { map, title, rows, columns, values: merged(values, rows, columns) };
}
