/* Who looks where, as what a figure shows: a matrix that answers the pointer, and its table.
 *
 * Knows weights and names; not where they come from.
 */

import { percent } from "../format.js";
import { matrix } from "../charts.js";
import { tableOf } from "../drawing.js";
import { tooltip } from "../tooltip.js";

/**
 * @param {{rows: string[], columns: string[], values: number[][], width: number, sides: [number, number],
 *   caption: string}} on `rows`: the pieces that are written; `columns`: those that are looked at; `caption`: of the
 *   table; see `matrix` for the others
 * @returns {{graphic: SVGElement, table: () => HTMLElement}}
 */
export function attentionMatrix({ rows, columns, values, width, sides, caption }) {
  const { node, highlight } = matrix({
    rows,
    columns,
    values,
    width,
    sides,
    onHover(row, column) {
      highlight(row, column);
      if (row === null || column === null) tooltip.hide();
      else tooltip.show(node, `${rows[row]} looks at ${columns[column]}: ${percent(values[row][column])}`);
    },
  });
  return {
    graphic: node,
    table: () =>
      tableOf(
        values.map((weights, row) => [rows[row], ...weights.map((value) => percent(value))]),
        ["is written", ...columns],
        caption,
      ),
  };
}
