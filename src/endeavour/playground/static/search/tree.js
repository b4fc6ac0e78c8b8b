/* The beam as a tree, from left to right by step.
 *
 * Knows a layout and what is said of each node; selection and keys are reported by node. Kept nodes are round with a
 * solid line, finished ones pointed with a double one, pruned ones square and dashed: none of it depends on colour.
 */

import { el, rect, shortened, stroke, svg, text } from "../drawing.js";
import { layout, named, NODE, probability } from "./layout.js";
import { described } from "./words.js";

const MIDDLE = { anchor: "middle", dy: 0 };
const WHAT = { ...MIDDLE, kind: "what" };

/** The outline of a node by its status. */
function outline(status, width) {
  const { height } = NODE;
  const shape = { class: "shape" };
  if (status === "pruned") return el("rect", { ...shape, width, height, rx: 2 });
  if (status === "kept") return el("rect", { ...shape, width, height, rx: height / 2 });
  const tip = width - 12;
  const path = (inset) =>
    [
      `M${inset + 4} ${inset}H${tip}L${width - inset} ${height / 2}L${tip} ${height - inset}`,
      `H${inset + 4}Q${inset} ${height - inset} ${inset} ${height - inset - 4}`,
      `V${inset + 4}Q${inset} ${inset} ${inset + 4} ${inset}Z`,
    ].join("");
  return el("g", {}, el("path", { ...shape, d: path(0) }), stroke(path(3), "second"));
}

/**
 * Draws what there is until a step.
 *
 * @param {object} options
 * @param {Map<number, object>} options.nodes
 * @param {number} options.until
 * @param {Set<number>} options.alive ids from which something is still kept
 * @param {Set<number>} options.best ids of the emphasised path
 * @param {number} options.forced how many steps were forced
 * @param {Set<number>} options.reference ids of the path of a given translation
 * @param {{step: number, text: string} | null} options.left where that path left the beam
 * @returns {{node: SVGElement, places: Map, columns: object[], select: (id: number | null) => void,
 *   trail: (path: object[]) => void, size: [number, number]}}
 */
export function drawTree({ nodes, until, alive, best, forced, reference, left }) {
  const { places, columns, width, height } = layout(nodes, until);
  const ways = new Map(); // the edge that leads to each node
  const groups = new Map();
  for (const { x, y, width: own, node } of places.values()) {
    const classes = [
      node.status,
      !alive.has(node.id) && node.status !== "pruned" && "over",
      best.has(node.id) && "best",
      reference.has(node.id) && "reference",
      node.parent !== null && node.step <= forced && "forced",
    ];
    const parent = places.get(node.parent);
    if (parent) ways.set(node.id, edge(parent, { x, y }, classes));
    groups.set(node.id, group(node, x, y, own, classes));
  }
  const edges = [...ways].sort(([a], [b]) => best.has(a) - best.has(b)).map(([, path]) => path); // the best on top
  const heads = columns.map(({ x, width: own }, step) =>
    text(x + own / 2, 14, step ? (step <= forced ? `${step} forced` : step) : "step", {
      ...MIDDLE,
      kind: "heading",
    }),
  );
  const flag = left && columns[left.step] ? mark(columns[left.step], left) : null;
  const bottom = height + (flag ? NODE.pitch : 0);
  const node = svg(
    Math.ceil(width) + 8,
    bottom,
    el("g", { transform: "translate(4 0)" }, heads, edges, [...groups.values()], flag),
  );
  node.removeAttribute("aria-hidden"); // its nodes are the items of a tree
  node.setAttribute("role", "none");
  let selected = null;
  function select(id) {
    groups.get(selected)?.setAttribute("aria-selected", "false");
    groups.get(id)?.setAttribute("aria-selected", "true");
    selected = id;
  }
  let lit = [];
  /** Makes the way to a node stand out. */
  function trail(path) {
    for (const element of lit) element.classList.remove("trail");
    lit = path.flatMap(({ id }) => [groups.get(id), ways.get(id)]).filter(Boolean);
    for (const element of lit) element.classList.add("trail");
  }
  return { node, places, columns, select, trail, size: [Math.ceil(width) + 8, bottom] };
}

function edge(parent, { x, y }, classes) {
  const [x1, y1, y2] = [parent.x + parent.width, parent.y + NODE.height / 2, y + NODE.height / 2];
  const bend = (x - x1) / 2;
  return stroke(`M${x1} ${y1}C${x1 + bend} ${y1} ${x - bend} ${y2} ${x} ${y2}`, ["edge", ...classes]);
}

function group(node, x, y, width, classes) {
  const { height } = NODE;
  const share = node.parent === null ? 0 : Math.exp(node.log_probability);
  return el(
    "g",
    {
      class: ["node", ...classes],
      transform: `translate(${x} ${y})`,
      id: `node-${node.id}`,
      role: "treeitem",
      "aria-level": node.step + 1,
      "aria-selected": "false",
      "aria-label": described(node),
      "data-id": node.id,
    },
    outline(node.status, width),
    text(width / 2, node.parent === null ? 22 : 15, shortened(named(node), width - 16), WHAT),
    text(width / 2, 28, probability(node), { ...MIDDLE, kind: "numbers" }),
    share ? rect(14, height - 5, Math.max(1, (width - 28) * share), 2, { class: "share", rx: 1 }) : null,
  );
}

/** Where a given translation left the beam: its piece beneath the column, with a diamond. */
function mark({ x, width, nodes }, { text: piece }) {
  const y = NODE.top + nodes.length * NODE.pitch;
  return el(
    "g",
    { class: "left", transform: `translate(${x} ${y})` },
    el("rect", { class: "shape", width, height: NODE.height, rx: 2 }),
    el("path", { class: "diamond", d: `M${width / 2} -7l6 7l-6 7l-6 -7Z` }),
    text(width / 2, 23, shortened(piece, width - 12), WHAT),
  );
}
