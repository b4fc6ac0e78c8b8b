/* Keys that hold on the whole page, and arrows within a group of elements.
 *
 * Knows which key means what; not what the views do with theirs, which they are asked first.
 */

import { isTyping } from "./dom.js";

/** Which layer or head a key leads to: [what, by how many]. */
export const TURNS = { "[": ["layer", -1], "]": ["layer", 1], ",": ["head", -1], ".": ["head", 1] };

const KEPT = "endeavour-keys";
let off = false;
try {
  off = localStorage.getItem(KEPT) === "off";
} catch {
  // Without storage they are on at first.
}

/** Whether keys that hold on the whole page do something; speech input may not want that. */
export const pageKeys = {
  get on() {
    return !off;
  },
  set on(wanted) {
    off = !wanted;
    try {
      localStorage.setItem(KEPT, off ? "off" : "on");
    } catch {
      // The choice then lasts as long as the page.
    }
  },
};

/** Whether a key is typed together with one that makes a command of it. */
export const modified = ({ ctrlKey, metaKey, altKey }) => ctrlKey || metaKey || altKey;

/** What the help dialog lists. */
export const SHORTCUTS = [
  ["/", "go to the sentence"],
  ["1 – 4", "Look, Search, Runs, Learn"],
  ["← → ↑ ↓", "move within words, hypotheses, matrices, the search tree"],
  ["Enter", "choose; on a word of the translation: alternatives"],
  ["letters", "on a word of the translation: type over it, the model goes on"],
  ["Backspace", "undo the last forced choice"],
  ["[ ]", "previous, next layer"],
  [", .", "previous, next head"],
  ["Esc", "close what is open; leave the sentence"],
  ["?", "this list"],
];

/**
 * Listens on the document.
 *
 * @param {(event: KeyboardEvent) => boolean} toView asks the view that is shown; true if it used the key
 * @param {Record<string, () => void>} actions by `event.key`
 */
export function listenForKeys(toView, actions) {
  document.addEventListener("keydown", (event) => {
    // On some keyboards the brackets are typed with Alt.
    const command = event.ctrlKey || event.metaKey || (event.altKey && !"[]".includes(event.key));
    if (
      (off && event.key.length === 1) ||
      event.defaultPrevented ||
      command ||
      isTyping(event.target) ||
      document.querySelector("dialog[open], [popover=auto]:popover-open")
    )
      return;
    if (toView(event)) event.preventDefault();
    else if (Object.hasOwn(actions, event.key)) {
      event.preventDefault();
      actions[event.key]();
    }
  });
}

const TURNED = { ArrowDown: "ArrowUp", ArrowUp: "ArrowDown" };
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** The position that an arrow, Home or End leads to among `count`; null for other keys. */
function moved(key, position, count) {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  return key in STEPS ? Math.min(count - 1, Math.max(0, position + STEPS[key])) : null;
}

/**
 * Arrows move the focus among a container's items, of which one takes part in the tab order.
 *
 * @param {HTMLElement} container
 * @param {string} selector of its items
 * @param {boolean} [upwards] each item stands above the one before it
 */
export function roving(container, selector, upwards = false) {
  const items = () => [...container.querySelectorAll(selector)];
  const only = (item) => items().forEach((other) => other.setAttribute("tabindex", other === item ? 0 : -1));
  container.addEventListener("focusin", ({ target }) => target.matches(selector) && only(target));
  container.addEventListener("keydown", (event) => {
    if (modified(event)) return;
    const all = items();
    const position = all.indexOf(event.target.closest(selector));
    const key = (upwards && TURNED[event.key]) || event.key;
    const next = position < 0 ? null : moved(key, position, all.length);
    if (next === null) return;
    event.preventDefault();
    all[next].focus();
  });
}

/** The tab order of a roving group after its items were made anew: `position` is the one in it. */
export function setRoving(items, position) {
  const chosen = Math.min(Math.max(0, position), items.length - 1);
  items.forEach((item, i) => item.setAttribute("tabindex", i === chosen ? 0 : -1));
}
