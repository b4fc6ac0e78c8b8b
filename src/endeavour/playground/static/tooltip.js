/* One tooltip for the page: it appears beside an element on hover or focus, stays while the pointer is on it, and goes
 * with Escape.
 *
 * Knows where it stands; not what it says.
 */

import { h } from "./dom.js";

const GAP = 8;
const LINGER = 120; // ms in which the pointer may move onto the tooltip

/** @returns {{show: (anchor: Element, ...content: (Node | string)[]) => void, hide: () => void}} */
export function createTooltip() {
  const box = h("div", { class: "tooltip", role: "tooltip", id: "tooltip", popover: "manual" });
  document.querySelector("main").append(box);
  let timer = 0;

  function show(anchor, ...content) {
    clearTimeout(timer);
    box.replaceChildren(...content);
    if (!box.matches(":popover-open")) box.showPopover();
    const from = anchor.getBoundingClientRect();
    const size = box.getBoundingClientRect();
    const [above, beneath] = [from.top - GAP, innerHeight - from.bottom - GAP];
    const below = beneath >= size.height || beneath > above;
    const left = Math.min(from.left + from.width / 2 - size.width / 2, innerWidth - size.width - GAP);
    box.style.left = `${Math.max(GAP, left)}px`;
    box.style.top = `${below ? from.bottom + GAP : Math.max(GAP, from.top - GAP - size.height)}px`;
  }

  function close() {
    clearTimeout(timer);
    if (box.matches(":popover-open")) box.hidePopover();
  }
  function hide() {
    clearTimeout(timer);
    timer = setTimeout(close, LINGER);
  }
  box.addEventListener("pointerenter", () => clearTimeout(timer));
  box.addEventListener("pointerleave", hide);
  addEventListener("keydown", (event) => event.key === "Escape" && close(), true);
  addEventListener("scroll", close, { capture: true, passive: true });
  return { show, hide };
}
