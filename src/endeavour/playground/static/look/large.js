/* The chosen head, large: as a matrix and as lines between words, side by side and lit together.
 *
 * Knows one map, see maps.js; hovering and choosing are reported by row and column.
 */

import { figure } from "../figure.js";
import { links, matrix } from "../charts.js";
import { tableOf } from "../drawing.js";
import { announce } from "../messages.js";

/**
 * @param {HTMLElement} root
 * @param {{onHover: (row: number | null, column: number | null) => void,
 *   onChoose: (row: number | null, column: number | null) => void}} context
 */
export function createLarge(root, { onHover, onChoose }) {
  let [shown, place, drawn] = [null, [0, 0], []];
  const frame = (title, hint) => figure({ title, hint, label: title, onKey: step });
  const asMatrix = frame("Matrix", "The weights of a row add up to 100 %.");
  const asLines = frame("Lines", "The thicker a line, the more weight.");
  root.append(asMatrix.node, asLines.node);
  for (const { stage } of [asMatrix, asLines]) stage.addEventListener("blur", () => onHover(null, null));

  function step({ key }) {
    if (!shown) return false;
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key];
    if (key === "Enter") return (onChoose(place[0], null), true);
    if (!moves) return false;
    const within = (value, count) => Math.min(count - 1, Math.max(0, value));
    place = [
      within(place[0] + moves[0], shown.rows.length),
      within(place[1] + moves[1], shown.columns.length),
    ];
    onHover(...place);
    announce(inWords(...place));
    return true;
  }

  function inWords(row, column) {
    const value = shown.values[row][column];
    const amount = value === null ? "hidden by the mask" : `${Math.round(100 * value)} percent`;
    return `${shown.rows[row].text} ${shown.map.verb} ${shown.columns[column].text}: ${amount}`;
  }

  function show(map) {
    shown = map;
    place = [0, 0];
    const rows = map.rows.map(({ text }) => text);
    const columns = map.columns.map(({ text }) => text);
    const one = matrix({
      rows,
      columns,
      values: map.values,
      width: asMatrix.stage.clientWidth,
      sides: [16, 34],
      format: (value) => (value >= 0.005 ? String(Math.round(100 * value)) : ""),
      onHover,
      onChoose,
    });
    const two = links({
      left: rows,
      right: columns,
      values: map.values,
      titles: [map.map.rows, map.map.columns],
      width: Math.max(240, Math.min(440, asLines.stage.clientWidth)),
      row: Math.min(28, Math.max(20, one.cell)),
      onHover,
      onChoose,
    });
    drawn = [one, two];
    const content = { table: () => table(map), json: asJson(map), note: map.sentence };
    asMatrix.show({ graphic: one.node, name: `${map.title} (matrix)`, ...content });
    asLines.show({ graphic: two.node, name: `${map.title} (lines)`, ...content });
    for (const { stage } of [asMatrix, asLines])
      stage.setAttribute("aria-label", `${map.title}. Arrow keys move, Enter keeps a row lit.`);
  }

  return {
    show,
    highlight: (row, column) => drawn.forEach((graphic) => graphic.highlight(row, column)),
  };
}

function table(map) {
  const rows = map.rows.map(({ text }, i) => [
    text,
    ...map.values[i].map((value) => (value === null ? "–" : value.toFixed(3))),
  ]);
  return tableOf(
    rows,
    [`${map.map.rows} ↓ ${map.map.columns} →`, ...map.columns.map(({ text }) => text)],
    map.title,
  );
}

const asJson = ({ title, rows, columns, values }) => ({
  title,
  rows: rows.map(({ text }) => text),
  columns: columns.map(({ text }) => text),
  weights: values,
});
