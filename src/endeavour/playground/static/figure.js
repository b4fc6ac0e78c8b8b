/* The frame of a graphic: its title, a menu that exports it, the graphic in a box that takes the keyboard, its table.
 *
 * Knows how a graphic is presented; not what is drawn.
 */

import { closeWhenLeft, h, placeBeside, scrollRegion, uniqueId } from "./dom.js";
import { save } from "./export.js";
import { modified } from "./keys.js";
import { announce } from "./messages.js";

const KINDS = { svg: "SVG", png: "PNG", json: "JSON", html: "HTML page" };

/**
 * A figure whose content can be replaced.
 *
 * @param {object} options
 * @param {string} options.title heading
 * @param {string} options.label what screen readers say of the graphic's box
 * @param {string} [options.hint] one sentence beneath the title
 * @param {Node[]} [options.tools] controls beside the title
 * @param {(event: KeyboardEvent) => boolean} [options.onKey] keys typed in the box; true if used
 * @returns {{node: HTMLElement, stage: HTMLElement, show: (content: {graphic: Node,
 *   svg?: SVGElement | (() => SVGElement), table: () => HTMLElement, json: object, note?: string,
 *   name?: string}) => void}}
 *   `svg` where the graphic is none; `name` of exported files, instead of the title
 */
export function figure({ title, label, hint, tools = [], onKey }) {
  const heading = h("h3", { id: uniqueId("figure") }, title);
  const stage = h("div", { class: "stage", tabindex: 0, role: "group", "aria-label": label });
  const table = scrollRegion("scroll", `${title}: table`);
  const details = h("details", { class: "table", hidden: true }, h("summary", {}, "Table"), table);
  const failure = h("p", { class: "problem", role: "alert", hidden: true });
  const shown = { name: title };

  async function exported(kind) {
    failure.hidden = true;
    try {
      await save({ ...shown, table: shown.table?.() }, kind);
      announce(`${title} saved as ${KINDS[kind]}`);
    } catch (error) {
      failure.hidden = false;
      failure.textContent = `${title} could not be saved: ${error.message}`;
    }
  }
  const fill = () => details.open && shown.table && table.replaceChildren(shown.table());
  details.addEventListener("toggle", fill);
  if (onKey) {
    stage.addEventListener("keydown", (event) => {
      if (!modified(event) && onKey(event)) event.preventDefault();
    });
  }
  const exports = menu(title, exported);
  const head = h("header", {}, heading, h("div", { class: "tools" }, tools, exports));
  const node = h(
    "figure",
    { class: "figure", "aria-labelledby": heading.id },
    head,
    failure,
    hint ? h("p", { class: "hint" }, hint) : null,
    stage,
    details,
  );
  return {
    node,
    stage,
    show({ graphic, svg = graphic, ...rest }) {
      failure.hidden = true;
      exports.hidden = details.hidden = false;
      if (graphic.parentNode !== stage) stage.replaceChildren(graphic); // what is there may have the focus
      Object.assign(shown, { svg }, rest);
      fill();
    },
  };
}

function menu(title, exported) {
  const list = h(
    "div",
    { class: "menu", popover: "auto", id: uniqueId("export") },
    Object.entries(KINDS).map(([kind, text]) =>
      h(
        "button",
        { class: "quiet", onclick: () => (list.hidePopover(), exported(kind)) },
        text,
      ),
    ),
  );
  const opener = h(
    "button",
    { class: "quiet", popovertarget: list.id, "aria-label": `Export ${title}` },
    "Export",
  );
  // Once it is open, but before it is painted.
  list.addEventListener("beforetoggle", ({ newState }) => {
    if (newState === "open") requestAnimationFrame(() => placeBeside(list, opener, 1));
  });
  closeWhenLeft(list, opener);
  return h("span", { hidden: true }, opener, list);
}
