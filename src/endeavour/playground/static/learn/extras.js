/* Controls that belong to single steps of Learn: a temperature, and ways to the other views.
 *
 * Knows what can be asked for; not how the steps look.
 */

import { h } from "../dom.js";

const TEMPERATURES = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2]; // those that /api/learn knows

/** The temperature at which nothing is changed. */
export const PLAIN = 1;

/**
 * @param {{onTemperature: (value: number) => void, onCross: () => void, onView: (view: string) => void}} on
 * @returns {Record<string, Node>} by step
 */
export function createExtras({ onTemperature, onCross, onView }) {
  const shown = h("output", {}, PLAIN.toFixed(2));
  const slide = (event) => {
    const value = TEMPERATURES[event.target.valueAsNumber];
    shown.textContent = value.toFixed(2);
    event.target.setAttribute("aria-valuetext", String(value));
    onTemperature(value);
  };
  const range = h("input", {
    type: "range",
    min: 0,
    max: TEMPERATURES.length - 1,
    step: 1,
    value: TEMPERATURES.indexOf(PLAIN),
    "aria-valuetext": String(PLAIN),
    oninput: slide,
  });
  const button = (name, action) => h("button", { class: "plain", onclick: action }, name);
  return {
    heads: button("See all layers and heads in Look", () => onView("look")),
    cross: button("Take cross-attention apart", onCross),
    probability: h("label", { class: "temperature" }, "Temperature", range, shown),
    search: button("Watch the search", () => onView("search")),
  };
}
