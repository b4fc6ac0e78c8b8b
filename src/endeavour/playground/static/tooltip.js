/* One tooltip for the page: it appears beside an element on hover or focus, stays while the pointer is on it, and goes
 * with Escape.
 *
 * Knows where it stands; not what it says.
 */

import { h, placeBeside } from "./dom.js";

const WAIT = 80; // ms on an element before it opens
const FRAME = 16; // ms before an open one moves on, so that what is hovered is lit first
const LINGER = 120; // ms in which the pointer may move onto the tooltip

/**
 * `show` takes texts, nodes, and functions that return a list of them, which are called when the tooltip opens.
 *
 * @returns {{show: (anchor: Element, ...content: (Node | string | (() => (Node | string)[]))[]) => void,
 *   hide: () => void}}
 */
function createTooltip() {
  const box = h("div", { class: "tooltip", role: "tooltip", id: "tooltip", popover: "manual" });
  document.querySelector("main").append(box);
  const isOpen = () => box.matches(":popover-open");
  let [opening, closing] = [0, 0];
  let next = null;
  let described = null; // the element beside which it is open

  function show(anchor, ...content) {
    clearTimeout(closing);
    next = { anchor, content };
    opening ||= setTimeout(open, isOpen() ? FRAME : WAIT);
  }

  function open() {
    opening = 0;
    const { anchor, content } = next;
    if (!anchor.isConnected) {
      close();
      return;
    }
    box.replaceChildren(...content.flatMap((part) => (typeof part === "function" ? part() : [part])));
    if (!isOpen()) box.showPopover();
    described?.removeAttribute("aria-describedby");
    described = anchor;
    anchor.setAttribute("aria-describedby", box.id);
    placeBeside(box, anchor);
  }

  function close() {
    clearTimeout(opening);
    clearTimeout(closing);
    opening = 0;
    if (isOpen()) box.hidePopover();
    described?.removeAttribute("aria-describedby");
    described = null;
  }
  function hide() {
    clearTimeout(opening);
    clearTimeout(closing);
    opening = 0;
    closing = setTimeout(close, LINGER);
  }
  box.addEventListener("pointerenter", () => clearTimeout(closing));
  box.addEventListener("pointerleave", hide);
  addEventListener("keydown", (event) => event.key === "Escape" && close(), true);
  addEventListener("scroll", ({ target }) => target !== box && close(), { capture: true, passive: true });
  return { show, hide };
}

export const tooltip = createTooltip();
