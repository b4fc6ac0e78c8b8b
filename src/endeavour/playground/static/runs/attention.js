/* Who looks where, as what a figure shows: a matrix that answers the pointer, and its table.
 *
 * Knows weights and names; not where they come from.
 */

import { percent } from "../format.js";
import { matrix } from "../charts.js";
import { tableOf } from "../drawing.js";
import { tooltip } from "../tooltip.js";

/**
 * @param {{rows: string[], columns: string[], values: number[][], cell: number, caption: string}} on
 *   `rows`: the pieces that are written; `columns`: those that are looked at; `cell`: px; `caption`: of the table
 * @returns {{graphic: SVGElement, table: () => HTMLElement}}
 */
export function attentionMatrix({ rows, columns, values, cell, caption }) {
  const { node, highlight } = matrix({
    rows,
    columns,
    values,
    cell,
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
