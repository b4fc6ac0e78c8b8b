/* A table of any number of rows, of which only those in sight exist; arrows move, Enter opens.
 *
 * Knows rows, columns and the keyboard; not what they hold. The table is a grid for screen readers: it has the focus, and
 * says which row is the current one.
 */

import { h, uniqueId } from "../dom.js";
import { modified } from "../keys.js";

const ROW = 36; // px; learn where rows are without measuring them
const AHEAD = 10; // rows above and below those in sight
const PAGE = 12;

/**
 * @param {object} options
 * @param {{key: string, title: string, cell: (row: object) => (Node | string), number?: boolean}[]} options.columns
 * @param {string} options.label
 * @param {(row: object) => void} options.onSelect
 * @param {(row: object) => void} options.onOpen
 * @param {(key: string) => void} options.onSort
 */
export function createGrid({ columns, label, onSelect, onOpen, onSort }) {
  const id = uniqueId("row");
  const heads = columns.map(({ key, title, number }) => {
    const button = h(
      "button",
      { class: "sort", onclick: () => onSort(key) },
      title,
      h("span", { class: "order", "aria-hidden": "true" }),
    );
    return h("th", { scope: "col", class: [`col-${key}`, number && "number"], "data-key": key }, button);
  });
  const [above, below] = [0, 1].map(() => h("tr", { class: "space", "aria-hidden": "true" }, h("td")));
  const body = h("tbody", {});
  const table = h(
    "table",
    { role: "grid", tabindex: 0, "aria-label": label, "aria-colcount": columns.length },
    h("thead", {}, h("tr", { "aria-rowindex": 1 }, heads)),
    body,
  );
  const node = h("div", { class: "grid" }, table);
  let rows = [];
  let current = -1;
  let shown = [0, -1];

  function row(index) {
    const values = rows[index];
    const element = h(
      "tr",
      {
        id: `${id}-${index}`,
        role: "row",
        "aria-rowindex": index + 2,
        "aria-selected": String(index === current),
        onclick: () => select(index),
        ondblclick: () => onOpen(values),
      },
      columns.map(({ key, cell, number }, i) =>
        h(
          i ? "td" : "th",
          {
            ...(i ? {} : { scope: "row" }),
            role: i ? "gridcell" : "rowheader",
            class: [`col-${key}`, number && "number"],
          },
          cell(values),
        ),
      ),
    );
    return element;
  }

  function draw(force = false) {
    const first = Math.max(0, Math.floor(node.scrollTop / ROW) - AHEAD);
    const last = Math.min(rows.length - 1, Math.ceil((node.scrollTop + node.clientHeight) / ROW) + AHEAD);
    if (!force && first === shown[0] && last === shown[1]) return;
    shown = [first, last];
    above.firstChild.style.height = `${first * ROW}px`;
    below.firstChild.style.height = `${Math.max(0, rows.length - 1 - last) * ROW}px`;
    const drawn = [];
    for (let index = first; index <= last; index++) drawn.push(row(index));
    body.replaceChildren(above, ...drawn, below);
    active();
  }

  function active() {
    if (current >= shown[0] && current <= shown[1])
      table.setAttribute("aria-activedescendant", `${id}-${current}`);
    else table.removeAttribute("aria-activedescendant");
  }

  function select(index) {
    current = rows.length ? Math.min(Math.max(0, index), rows.length - 1) : -1;
    if (current < 0) return;
    const head = table.tHead.offsetHeight;
    const top = current * ROW;
    if (top < node.scrollTop) node.scrollTop = top;
    else if (top + ROW > node.scrollTop + node.clientHeight - head)
      node.scrollTop = top + ROW - node.clientHeight + head;
    draw(true);
    onSelect(rows[current]);
  }

  node.addEventListener("scroll", () => requestAnimationFrame(() => draw()), { passive: true });
  new ResizeObserver(() => draw()).observe(node);
  table.addEventListener("keydown", (event) => {
    if (event.target !== table || modified(event)) return;
    const by = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: PAGE,
      PageUp: -PAGE,
      Home: -rows.length,
      End: rows.length,
    }[event.key];
    if (by) {
      select(current + by);
      document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: "nearest" }); // the window may have to follow
    } else if (event.key === "Enter" && rows[current]) onOpen(rows[current]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    node,
    /** Other rows, or the same in another order; the row that was selected stays so if `same` finds it. */
    show(next, { sort: [key, descending], same }) {
      const kept = current >= 0 ? rows[current] : null;
      rows = next;
      table.setAttribute("aria-rowcount", rows.length + 1);
      for (const head of heads) {
        const own = head.dataset.key === key;
        if (own) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
        head.querySelector(".order").textContent = own ? (descending ? "↓" : "↑") : "";
      }
      const found = kept ? rows.findIndex((one) => same(one, kept)) : 0;
      node.scrollTop = 0;
      current = -1;
      if (rows.length) select(Math.max(0, found));
      else draw(true);
    },
  };
}
