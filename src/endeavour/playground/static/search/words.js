/* Nodes of a search in words and numbers: for screen readers, the tooltip, the table and files. Knows no graphic. */

import { h } from "../dom.js";
import { decimal, ordinal } from "../format.js";
import { tableOf } from "../drawing.js";
import { named, probability } from "./layout.js";

/** A node in one sentence. */
export function described(node) {
  if (node.parent === null) return "start";
  const fate = node.status + (node.why ? `: ${node.why}` : "");
  return [named(node), `step ${node.step}`, probability(node), `score ${decimal(node.score)}`, fate].join(
    ", ",
  );
}

/** What the tooltip says of a node. */
export function explained(node) {
  const numbers = [
    probability(node),
    `so far ${decimal(node.total)}`,
    `score ${decimal(node.score)}`,
    `${ordinal(node.rank + 1)} of step ${node.step}`,
  ];
  return [
    h("p", {}, h("strong", {}, named(node)), ` ${node.status}`),
    h("p", {}, numbers.join(" · ")),
    node.why ? h("p", { class: "hint" }, node.why) : "",
  ];
}

/** All nodes but the root. */
export function nodesTable(nodes) {
  const rows = [...nodes.values()]
    .slice(1)
    .map((node) => [
      node.step,
      named(node),
      node.rank + 1,
      probability(node),
      decimal(node.total, 3),
      decimal(node.score, 3),
      node.status + (node.why ? `: ${node.why}` : ""),
      named(nodes.get(node.parent)),
    ]);
  const columns = [
    "Step",
    "Piece",
    "Rank",
    "Probability",
    "Log-probability so far",
    "Score",
    "Fate",
    "After",
  ];
  return tableOf(rows, columns, "Nodes of the search");
}

/** The whole search as it is exported: what was asked, and what came of it. */
export const asJson = ({ asked, beam_size, length_penalty, source, nodes, hypotheses, reference }) => ({
  ...asked,
  beam_size,
  length_penalty,
  source,
  nodes: [...nodes.values()],
  hypotheses,
  reference,
});
