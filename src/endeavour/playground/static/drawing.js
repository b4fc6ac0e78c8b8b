/* The smallest parts of a graphic: SVG elements, colour scales, texts of a known width, and the table that each graphic
 * must have.
 *
 * Knows the document; not what is drawn. Colours are custom properties of style.css, so that light and dark need no new
 * drawing.
 */

import { flat, h, setAttributes } from "./dom.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const [WEIGHT, BELOW] = ["var(--weight)", "var(--below)"];

/** An SVG element; attributes and children as `h` in dom.js takes them. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElementNS(NAMESPACE, name);
  setAttributes(element, attributes);
  element.append(...flat(children));
  return element;
}

/** An <svg> of a size in CSS pixels. It is hidden from screen readers, who get the figure's label and its table. */
export function svg(width, height, ...children) {
  const size = { width, height, viewBox: `0 0 ${width} ${height}` };
  return el("svg", { ...size, "aria-hidden": "true", class: "graphic" }, ...children);
}

/**
 * A text whose middle is at `y`, or with `dy: 0` its baseline.
 *
 * @param {number} x
 * @param {number} y
 * @param {string | number} content
 * @param {{anchor?: "start" | "middle" | "end", kind?: string | null}} [options] `anchor`: what of it is at `x`; `kind`:
 *   its class; further ones are attributes
 */
export const text = (x, y, content, { anchor = "start", kind = "label", ...more } = {}) =>
  el("text", { x, y, "text-anchor": anchor, class: kind, dy: "0.35em", ...more }, content);

/** A rectangle from its upper left corner, and a circle around its centre, with further attributes. */
export const rect = (x, y, width, height, more) => el("rect", { x, y, width, height, ...more });
export const circle = (cx, cy, r, more) => el("circle", { cx, cy, r, ...more });

/** The `d` of a path from point to point. */
export const polyline = (points) =>
  points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/** A line along a path; what it goes round is not filled. */
export const stroke = (d, kind, more) => el("path", { d, class: kind, fill: "none", ...more });

/** Fill of a weight between 0 and 1: the more, the stronger. */
export const sequential = (weight) => ({
  fill: WEIGHT,
  "fill-opacity": round(Math.min(1, Math.max(0, weight))),
});

/** Fill of a difference between −1 and 1: blue above zero, orange below. */
export const diverging = (difference) => ({
  fill: difference < 0 ? BELOW : WEIGHT,
  "fill-opacity": round(Math.min(1, Math.abs(difference))),
});

/** The class of a text on a fill: black or white, whichever has the larger contrast, which is then 4.5 : 1 or more. */
export function onFill({ fill, "fill-opacity": strength = 0 }) {
  const [dark, light] = fill === BELOW ? [0.565, 0.952] : [0.636, 0.82]; // where they change in either scheme
  return strength > light ? "on-strong" : strength > dark ? "on-middle" : "on-weak";
}

/** Three decimals: enough for an opacity, and short in a file. */
export const round = (value) => Math.round(value * 1000) / 1000;

/** About how wide a text is, in CSS pixels; exact enough to leave room for it. */
export function textWidth(text, size = 13) {
  pen.font = `${size}px ${getComputedStyle(document.documentElement).getPropertyValue("--sans") || "sans-serif"}`;
  return pen.measureText(text).width;
}
const pen = document.createElement("canvas").getContext("2d");

/** A text shortened to a width, with an ellipsis. */
export function shortened(text, width, size = 13) {
  if (textWidth(text, size) <= width) return text;
  let end = text.length;
  while (end > 1 && textWidth(`${text.slice(0, end)}…`, size) > width) end--;
  return `${text.slice(0, end)}…`;
}

/**
 * The table of a graphic.
 *
 * @param {Array<Array<string | number | Node | Array<string | Node>>>} rows
 * @param {string[]} columns headings
 * @param {string} [caption]
 */
export function tableOf(rows, columns, caption) {
  return h(
    "table",
    { class: "data" },
    caption ? h("caption", {}, caption) : null,
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        columns.map((text) => h("th", { scope: "col" }, text)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map(([first, ...rest]) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, first),
          rest.map((value) => h("td", {}, value)),
        ),
      ),
    ),
  );
}
