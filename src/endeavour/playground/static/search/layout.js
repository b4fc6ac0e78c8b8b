/* Where the nodes of a search stand: a column for each step, in it the best extension on top.
 *
 * Knows nodes and their parents; not how they are drawn.
 */

import { percent, pieceName } from "../format.js";
import { textWidth } from "../drawing.js";

export const NODE = { height: 36, pitch: 44, gap: 32, top: 30 };
const WIDTHS = { least: 56, most: 150, padding: 20 };

/** The nodes from the root to this one, both included. */
export function pathTo(nodes, id) {
  const path = [];
  for (let node = nodes.get(id); node; node = nodes.get(node.parent)) path.unshift(node);
  return path;
}

/** The ids of a path's tokens, without BOS and EOS. */
export const idsOf = (path) =>
  path.filter(({ parent, piece }) => parent !== null && piece !== "</s>").map(({ token }) => token);

/**
 * @param {Map<number, object>} nodes
 * @param {number} until the last step that is placed
 * @returns {{places: Map<number, {x: number, y: number, width: number, node: object}>,
 *   columns: {x: number, width: number, nodes: object[]}[], width: number, height: number}}
 */
export function layout(nodes, until) {
  const steps = [];
  for (const node of nodes.values()) if (node.step <= until) (steps[node.step] ??= []).push(node);
  const places = new Map();
  const columns = [];
  let [x, rows] = [0, 1];
  for (const all of steps.filter(Boolean)) {
    all.sort((a, b) => a.rank - b.rank || b.total - a.total);
    const texts = all.map((node) => Math.max(textWidth(named(node)), textWidth(probability(node), 11)));
    const width = Math.min(
      WIDTHS.most,
      Math.max(WIDTHS.least, ...texts.map((text) => text + WIDTHS.padding)),
    );
    all.forEach((node, row) => places.set(node.id, { x, y: NODE.top + row * NODE.pitch, width, node }));
    columns.push({ x, width, nodes: all });
    rows = Math.max(rows, all.length);
    x += width + NODE.gap;
  }
  return { places, columns, width: Math.max(0, x - NODE.gap), height: NODE.top + rows * NODE.pitch };
}

/** The nodes that a translation passes, after the root, until it leaves the beam. */
export function pathAlong(nodes, tokens) {
  const path = [];
  for (const token of tokens) {
    const here = path.at(-1)?.id ?? 0;
    const next = [...nodes.values()].find((node) => node.parent === here && node.token === token);
    if (!next) break;
    path.push(next);
  }
  return path;
}

/** The nodes while the search still runs: none is pruned yet by what was found later. */
export const beforeTheEnd = (nodes) =>
  new Map([...nodes].map(([id, node]) => [id, node.before ? { ...node, status: node.before } : node]));

/** What is written into a node. */
export const named = ({ piece, parent }) => (parent === null ? "start" : pieceName(piece));

/** The second line of a node: its own probability, which the root has not. */
export const probability = ({ parent, log_probability: value }) =>
  parent === null ? "" : percent(Math.exp(value));

/**
 * The nodes that count at a time: those from which something is still kept or was finished, and the best of them.
 *
 * @param {Map<number, object>} nodes
 * @param {number} time a step
 * @param {object[] | null} shown the path of the translation shown, once the search has ended
 * @returns {{alive: Set<number>, best: Set<number>}}
 */
export function statesAt(nodes, time, shown) {
  const [alive, leaves] = [new Set(), []];
  for (const node of nodes.values()) {
    if (node.step > time) continue;
    const open = node.status === "kept" && node.step === time;
    if (open || node.status === "finished") leaves.push(node);
  }
  for (const leaf of leaves) {
    for (let node = leaf; node && !alive.has(node.id); node = nodes.get(node.parent)) alive.add(node.id);
  }
  const best = shown ?? pathTo(nodes, leaves.sort((a, b) => b.score - a.score)[0]?.id);
  return { alive, best: new Set(best.map(({ id }) => id)) };
}
