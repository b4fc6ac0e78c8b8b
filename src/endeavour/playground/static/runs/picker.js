/* Where a further system is chosen: a run or one of its checkpoints, and how it decodes. Knows the runs that are offered. */

import { h } from "../dom.js";

const BEAMS = [1, 2, 5, 10];

/** @param {(system: {name: string, beam: number | null}) => void} onAdd */
export function createPicker(systems, onAdd) {
  const name = h("select", { "aria-label": "System to compare with" });
  const beam = h(
    "select",
    { "aria-label": "Its decoding" },
    h("option", { value: "" }, "as configured"),
    BEAMS.map((size) => h("option", { value: size }, size === 1 ? "greedy" : `beam ${size}`)),
  );
  const add = h(
    "button",
    {
      class: "plain",
      onclick: () => onAdd({ name: name.value, beam: Number(beam.value) || null }),
    },
    "Compare",
  );
  const node = h("div", { class: "picker" }, name, beam, add);

  function refresh() {
    const before = name.value;
    name.replaceChildren(...systems.options());
    if ([...name.options].some(({ value }) => value === before)) name.value = before;
  }
  refresh();
  return { node, refresh, focus: () => name.focus() };
}
