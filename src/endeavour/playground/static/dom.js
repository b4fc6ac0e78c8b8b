/* HTML elements without HTML text: whatever a piece or a sentence holds is only ever set as text.
 *
 * Knows the document; not what is shown.
 */

/**
 * An HTML element. Attributes that are null, undefined or false are left out, `true` is an empty attribute,
 * functions named `on…` listen, `class` may be a list; children may be nodes, strings, numbers, null or lists.
 */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  if (name === "button") element.type = "button"; // which submits nothing, unless asked to
  setAttributes(element, attributes);
  element.append(...flat(children));
  return element;
}

/** Sets attributes on any element, as `h` does. */
export function setAttributes(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function" && key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(key);
    else if (key === "class" && Array.isArray(value))
      element.setAttribute(key, value.filter(Boolean).join(" "));
    else element.setAttribute(key, value === true ? "" : value);
  }
}

/** Children as `append` takes them: without null and false, lists opened. */
export const flat = (children) =>
  children.flat(Infinity).filter((child) => child !== null && child !== false);

/** A bar as long as a share of its room. */
export function bar(share) {
  const filled = h("i");
  filled.style.width = `${100 * share}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, filled);
}

/** A card with a head: its title, by which it is known, and what stands beside that. */
export function card(kind, title, beside, ...children) {
  const id = `${kind}-title`;
  const head = h("header", {}, h("h2", { id }, title), beside);
  return h("section", { class: ["card", kind], "aria-labelledby": id }, head, children);
}

/** A box that scrolls, and therefore takes the keyboard. */
export const scrollRegion = (kind, label, ...children) =>
  h("div", { class: kind, tabindex: 0, role: "region", "aria-label": label }, children);

const GAP = 8; // px between a box and what it belongs to, and to the edges of the window
const LEAST = 48; // px of room in which a box can be read

/**
 * Places an open box below its anchor, or above where there is more room, and within the window. It scrolls where it is
 * higher than the room there, and lies on its anchor only where that fills the window.
 *
 * @param {HTMLElement} box of position: fixed
 * @param {Element} anchor
 * @param {number} [align] 0: at the anchor's left edge, 1: at its right edge
 */
export function placeBeside(box, anchor, align = 0.5) {
  const from = anchor.getBoundingClientRect();
  const [above, beneath] = [from.top - 2 * GAP, innerHeight - from.bottom - 2 * GAP];
  box.style.maxHeight = ""; // from another place
  const below = beneath >= box.getBoundingClientRect().height || beneath > above;
  const room = below ? beneath : above;
  box.style.maxHeight = `${room < LEAST ? innerHeight - 2 * GAP : room}px`;
  const size = box.getBoundingClientRect();
  const within = (start, length, room) => Math.max(GAP, Math.min(start, room - length - GAP));
  const left = from.left + align * (from.width - size.width);
  const top = below ? from.bottom + GAP : from.top - GAP - size.height;
  box.style.left = `${within(left, size.width, innerWidth)}px`;
  box.style.top = `${within(top, size.height, innerHeight)}px`;
}

/** Closes a popover when the focus goes elsewhere than into it or to what opened it. */
export function closeWhenLeft(box, opener) {
  // Not at its focusout: a click on its text and another window take the focus to nothing.
  const check = ({ target }) => box.contains(target) || opener.contains(target) || box.hidePopover();
  box.addEventListener("beforetoggle", ({ newState }) => {
    if (newState === "open") document.addEventListener("focusin", check);
    else document.removeEventListener("focusin", check);
  });
}

/** Calls `action` when an element has another width than when it was last in sight. */
export function onWidth(element, action) {
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    const now = Math.round(contentRect.width);
    if (now && width && now !== width) action();
    width = now || width;
  }).observe(element);
}

/** A group of buttons, one of them pressed: `onChoose` is told the place of the one that is clicked, `press` sets it. */
export function segments(label, names, onChoose) {
  const buttons = names.map((name, i) => h("button", { onclick: () => onChoose(i) }, name));
  const node = h("div", { class: "segments", role: "group", "aria-label": label }, buttons);
  return {
    node,
    press: (chosen) => buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === chosen)),
  };
}

/** A function that waits until it was not called for some milliseconds. */
export function debounce(action, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

let lastId = 0;
/** An id that nothing else on the page has. */
export const uniqueId = (prefix) => `${prefix}-${++lastId}`;

/** Whether keys typed now belong to a text field. */
export function isTyping(target) {
  return Boolean(target?.closest?.("textarea, select, input:not([type=range])"));
}
