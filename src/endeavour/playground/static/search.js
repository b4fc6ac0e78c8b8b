/* The Search view: how a translation is found, step by step, and how it can be steered.
 *
 * Knows the current search and the chosen node; its parts, in search/, do not know each other.
 */

import { h } from "./dom.js";
import { figure } from "./figure.js";
import { forcedCount } from "./forcing.js";
import { createSettings, createTime } from "./search/controls.js";
import { createDetails } from "./search/details.js";
import { NODE, beforeTheEnd, idsOf, named, pathAlong, pathTo, statesAt } from "./search/layout.js";
import { createReference } from "./search/reference.js";
import { drawTree } from "./search/tree.js";
import { asJson, described, explained, nodesTable } from "./search/words.js";
import { printIds } from "./state.js";
import { announce } from "./messages.js";
import { tooltip } from "./tooltip.js";

const LEGEND = [
  ["kept", "kept"],
  ["over", "kept, but lost later"],
  ["finished", "finished"],
  ["pruned", "pruned"],
  ["best", "the translation shown"],
  ["reference", "the one to score"],
];
const ZOOMS = [0.5, 0.65, 0.8, 1, 1.25, 1.6];

/** See app.js for what a view is handed and what it returns. */
export function mount(root, context) {
  const { state, search, forcing } = context;
  let tree = null;
  let zoom = 1;
  let waiting = 0;

  const settings = createSettings(context);
  const clock = createTime((at) => state.set({ at: at < search.current.steps ? at : null }));
  const zooms = h(
    "div",
    { class: "zooms", role: "group", "aria-label": "Zoom" },
    [
      ["Smaller", "\u2212", -1],
      ["Larger", "+", 1],
    ].map(([name, sign, by]) =>
      h(
        "button",
        { class: "quiet sign", "aria-label": name, onclick: () => magnify(by) },
        sign,
      ),
    ),
  );
  const beam = figure({
    title: "The search",
    label: "Nodes of the search",
    tools: [zooms],
    onKey: step,
  });
  const legend = h(
    "ul",
    { class: "legend" },
    LEGEND.map(([key, text]) => h("li", {}, h("i", { class: key }), text)),
  );
  const side = h("aside", { class: "card details", "aria-label": "The chosen node" });
  const details = createDetails(side, context, () => beam.stage.focus());
  const scored = h("div", { class: "card reference" });
  const reference = createReference(scored, context);
  beam.node.insertBefore(h("div", { class: "bar-of-controls" }, settings.node, clock.node), beam.stage);
  beam.node.insertBefore(legend, beam.stage.nextSibling);
  root.append(h("div", { class: "search" }, h("div", { class: "card" }, beam.node), side), scored);

  beam.stage.addEventListener("click", ({ target }) => {
    const group = target.closest(".node");
    if (group) choose(Number(group.dataset.id));
  });
  beam.stage.addEventListener("pointerover", ({ target }) => hover(target.closest(".node")));
  beam.stage.addEventListener("pointerleave", () => hover(null));
  beam.stage.addEventListener(
    "dblclick",
    ({ target }) => target.closest(".node") && follow(Number(target.closest(".node").dataset.id)),
  );

  /** The path of the translation shown; of one that the search did not find, as far as it kept along. */
  function shownPath() {
    const { nodes } = search.current;
    const chosen = search.chosen();
    if (!chosen) return [];
    if (chosen.hypothesis) return pathTo(nodes, chosen.hypothesis.node);
    return [nodes.get(0), ...pathAlong(nodes, chosen.ids)];
  }
  const chosenNode = () => {
    const { node } = state.get();
    return search.current.nodes.has(node) ? node : shownPath().at(-1)?.id;
  };

  function hover(group) {
    tree?.trail(group ? pathTo(search.current.nodes, Number(group.dataset.id)) : []);
    const node = group && search.current.nodes.get(Number(group.dataset.id));
    if (node && node.parent !== null) tooltip.show(group, () => explained(node));
    else tooltip.hide();
  }
  /** Selects a node; one that ends a translation also makes it the one that all views show. */
  function choose(id) {
    if (search.current.stale) return; // the node is of another question
    const hypothesis = search.current.hypotheses.find(({ node }) => node === id);
    state.set({ node: id, ...(hypothesis ? { t: printIds(hypothesis.ids) } : {}) });
  }
  /** Forces the translation up to a node. */
  function follow(id) {
    if (search.current.stale) return;
    const path = pathTo(search.current.nodes, id);
    if (path.length > 1 && path.at(-1).piece !== "</s>") forcing.force(idsOf(path));
  }

  function step({ key }) {
    const { nodes, stale } = search.current;
    if (!tree || stale || !nodes.size) return false;
    const now = nodes.get(chosenNode()) ?? nodes.get(0);
    const column = tree.columns[now.step]?.nodes ?? [];
    const row = column.findIndex(({ id }) => id === now.id);
    const next = {
      ArrowLeft: () => nodes.get(now.parent),
      ArrowRight: () => tree.columns[now.step + 1]?.nodes.find(({ parent }) => parent === now.id),
      ArrowUp: () => column[row - 1],
      ArrowDown: () => column[row + 1],
      Home: () => nodes.get(0),
      End: () => shownPath().at(-1),
    }[key];
    if (key === "Enter") follow(now.id);
    else if (!next) return false;
    else if (next()) choose(next().id);
    return true;
  }

  function magnify(by) {
    const position = ZOOMS.findIndex((one) => one >= zoom);
    zoom = ZOOMS[Math.min(ZOOMS.length - 1, Math.max(0, position + by))];
    scale();
  }
  function scale() {
    if (!tree) return;
    tree.node.setAttribute("width", tree.size[0] * zoom);
    tree.node.setAttribute("height", tree.size[1] * zoom);
  }

  function draw() {
    waiting = 0;
    const current = search.current;
    const { steps, done, hypotheses } = current;
    if (!current.nodes.size) return;
    const now = Math.min(state.get().at ?? steps, steps);
    const atEnd = done && now === steps;
    const nodes = atEnd ? current.nodes : beforeTheEnd(current.nodes);
    const pieces = hypotheses[0]?.pieces ?? [];
    const forced = done ? forcedCount(state.get().p, pieces) : current.prefix.length;
    tree = drawTree({
      nodes,
      until: now,
      forced,
      ...statesAt(nodes, now, atEnd ? shownPath() : null),
      ...givenPath(),
    });
    scale();
    beam.show({
      graphic: tree.node,
      json: asJson(current),
      table: () => nodesTable(current.nodes),
      note: state.get().q,
      name: "Beam search",
    });
    beam.stage.setAttribute("role", "tree");
    beam.stage.setAttribute(
      "aria-label",
      "Nodes of the search. Arrow keys move, Enter continues from a node.",
    );
    clock.show(now, steps);
    select();
  }

  /** The given translation in the tree: the nodes that it passes, and where it left the beam. */
  function givenPath() {
    const { reference: given, nodes } = search.current;
    if (!given?.pieces) return { reference: new Set(), left: null }; // none, or one that cannot be scored
    const passed = new Set(pathAlong(nodes, given.pieces.map(({ id }) => id)).map(({ id }) => id));
    const at = given.left_at;
    const shown = at !== null && passed.size >= at; // it is drawn as a pruned node
    return {
      reference: passed,
      left: at === null || shown ? null : { step: at, text: named(given.pieces[at - 1]) },
    };
  }

  function select() {
    if (!tree) return;
    const id = chosenNode();
    tree.select(id);
    details.show(pathTo(search.current.nodes, id));
    if (tree.places.has(id)) beam.stage.setAttribute("aria-activedescendant", `node-${id}`);
    else beam.stage.removeAttribute("aria-activedescendant");
    reveal(tree.places.get(id));
  }
  /** Scrolls the tree, but not the page, so that a node can be seen. */
  function reveal(place) {
    if (!place || state.get().node === null) return;
    const { stage } = beam;
    const [from, to] = [place.x * zoom, (place.x + place.width) * zoom];
    if (from < stage.scrollLeft + 24) stage.scrollLeft = from - 48;
    else if (to > stage.scrollLeft + stage.clientWidth - 24) stage.scrollLeft = to + 48 - stage.clientWidth;
    const [top, bottom] = [place.y * zoom, (place.y + NODE.height) * zoom];
    if (top < stage.scrollTop) stage.scrollTop = top - 24;
    else if (bottom > stage.scrollTop + stage.clientHeight) stage.scrollTop = bottom + 24 - stage.clientHeight;
  }

  state.subscribe((_, changed) => ["v", "q", "run"].some((key) => changed.has(key)) && clock.stop());
  search.subscribe((current) => {
    for (const card of [beam.node, side, scored])
      card.classList.toggle("stale", current.stale || current.status === "idle");
    if (current.stale || state.get().v !== "search") return;
    waiting ||= requestAnimationFrame(draw);
    if (current.done || current.status === "idle") reference.update();
  });

  return {
    update(_, changed) {
      settings.update();
      if (changed.has("v")) (draw(), reference.update());
      else if (changed.has("ref")) reference.update();
      else if (changed.has("t") || changed.has("at")) draw();
      else if (changed.has("node")) select();
      if (changed.has("node") && state.get().node !== null)
        announce(described(search.current.nodes.get(chosenNode()) ?? { parent: null }));
    },
  };
}
