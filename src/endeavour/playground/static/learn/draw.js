/* Drawing blocks of the Learn view: squares and bars for vectors, arrows, a legend, and a sheet that collects them and
 * answers the pointer.
 *
 * Knows numbers and places in CSS pixels; not what they mean.
 */

import { MINUS, brief } from "../format.js";
import { diverging, el, rect, round, stroke, svg, text, textWidth } from "../drawing.js";
import { tooltip } from "../tooltip.js";

const LEVELS = 12; // shades on either side of zero: a path for each, however many squares there are
const TYPICAL = 0.98; // the share of numbers that are within the colour scale; the others have its darkest shade

/** The size that the strongest shade stands for: nearly all of these numbers are smaller. */
export function reach(...lists) {
  const sizes = lists
    .flat(2)
    .map(Math.abs)
    .sort((a, b) => a - b);
  return Math.max(sizes[Math.floor(TYPICAL * (sizes.length - 1))] ?? 0, 1e-6);
}

/** A sheet of a width: drawings are added to it, and parts of it answer the pointer. */
export function sheet(width) {
  const parts = [];
  const areas = [];
  let bottom = 0;
  return {
    width,
    /** Adds elements; `to` is how far down they reach. */
    add(to, ...elements) {
      parts.push(...elements.flat(Infinity).filter(Boolean));
      bottom = Math.max(bottom, to);
    },
    /** A grid that answers: `text(row, column)` is shown on hover, `choose(row, column)` is called on a click. */
    area: (place) => areas.push(place),
    finish() {
      const drawn = el("g", {}, parts);
      const node = svg(width, Math.ceil(bottom) + 2, drawn);
      listen(node, drawn, areas);
      return node;
    },
  };
}

function listen(node, drawn, areas) {
  if (!areas.length) return;
  const cursor = el("rect", { class: "cursor", visibility: "hidden", fill: "none" });
  node.append(cursor);
  const find = ({ clientX, clientY }) => {
    // Of the group: browsers disagree on the box of an svg within another one.
    const { x: px, y: py } = new DOMPoint(clientX, clientY).matrixTransform(drawn.getScreenCTM().inverse());
    for (const area of areas) {
      const column = Math.floor((px - area.x) / area.cell[0]);
      const row = Math.floor((py - area.y) / area.cell[1]);
      if (row >= 0 && row < area.rows && column >= 0 && column < area.columns) return { area, row, column };
    }
    return null;
  };
  node.addEventListener("pointermove", (event) => {
    const found = find(event);
    cursor.setAttribute("visibility", found?.area.text ? "visible" : "hidden");
    node.classList.toggle("can-choose", Boolean(found?.area.choose));
    if (!found?.area.text) return tooltip.hide();
    const { area, row, column } = found;
    const place = {
      x: area.x + column * area.cell[0],
      y: area.y + row * area.cell[1],
      width: area.cell[0],
      height: area.cell[1],
    };
    for (const [name, value] of Object.entries(place)) cursor.setAttribute(name, value);
    tooltip.show(cursor, area.text(row, column));
  });
  node.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    tooltip.hide();
  });
  node.addEventListener("click", (event) => {
    const found = find(event);
    found?.area.choose?.(found.row, found.column);
  });
}

/**
 * Vectors as rows of coloured squares, blue above zero and orange below.
 *
 * @param {number[][]} values
 * @param {{x: number, y: number, cell: [number, number], most: number}} place
 */
export function heat(values, { x, y, cell: [width, height], most }) {
  const paths = new Map();
  values.forEach((row, r) => {
    let start = 0;
    const level = (value) =>
      Math.sign(value) * Math.min(LEVELS, Math.round((LEVELS * Math.abs(value)) / most));
    for (let c = 1; c <= row.length; c++) {
      const own = level(row[start]);
      if (c < row.length && level(row[c]) === own) continue;
      if (own)
        paths.set(
          own,
          `${paths.get(own) ?? ""}M${round(x + start * width)} ${round(y + r * height)}h${round((c - start) * width)}v${height - 1}h${round((start - c) * width)}z`,
        );
      start = c;
    }
  });
  const columns = values[0]?.length ?? 0;
  const ground = values.map((_, r) =>
    rect(x, y + r * height, round(columns * width), height - 1, { class: "ground" }),
  );
  return [ground, [...paths].map(([level, d]) => el("path", { d, ...diverging(level / LEVELS) }))];
}

/**
 * One vector as bars, up for numbers above zero and down for those below.
 *
 * @param {number[]} values
 * @param {{x: number, y: number, width: number, height: number, most: number}} place `y` is the top
 */
export function profile(values, { x, y, width, height, most }) {
  const [zero, step] = [y + height / 2, width / values.length];
  const thick = round(Math.max(step * 0.8, 0.6));
  const draw = (wanted) =>
    values
      .map((value, c) => {
        const size = round((Math.min(1, Math.abs(value) / most) * height) / 2);
        if (!size || value > 0 !== wanted) return "";
        return `M${round(x + c * step)} ${round(zero)}v${wanted ? -size : size}h${thick}v${wanted ? size : -size}z`;
      })
      .join("");
  return [
    rect(x, y, width, height, { class: "ground", rx: 3 }),
    el("line", { x1: x, x2: x + width, y1: zero, y2: zero, class: "axis" }),
    el("path", { d: draw(true), class: "above" }),
    el("path", { d: draw(false), class: "below" }),
  ];
}

/** An arrow, straight or bent, from one point to another. */
export function arrow(x1, y1, x2, y2, { kind = "" } = {}) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  const [bx, by] = [x2 - 6 * ux, y2 - 6 * uy];
  const head = `M${round(x2)} ${round(y2)}L${round(bx - 3.5 * uy)} ${round(by + 3.5 * ux)}L${round(bx + 3.5 * uy)} ${round(by - 3.5 * ux)}z`;
  return [
    stroke(`M${round(x1)} ${round(y1)}L${round(bx)} ${round(by)}`, `arrow ${kind}`),
    el("path", { d: head, class: `arrow-head ${kind}` }),
  ];
}

/** What the shades stand for. */
export function legend(x, y, most) {
  const [steps, cell] = [9, 8];
  const values = [[...Array(steps).keys()].map((c) => (most * (c - 4)) / 4)];
  return [
    text(x - 6, y + 5, `${MINUS}${brief(most)}`, { anchor: "end", kind: "heading" }),
    heat(values, { x, y, cell: [cell, 11], most }),
    text(x + steps * cell + 6, y + 5, `+${brief(most)}`, { kind: "heading" }),
  ];
}

/** Room for the labels on the left of rows, at most `most`. */
export const room = (labels, most) =>
  Math.min(most, Math.max(24, ...labels.map((one) => textWidth(one)))) + 12;
