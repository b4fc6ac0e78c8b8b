/* One node of the search in numbers and words, what might stand in its place, and what can be done from there.
 *
 * Knows a path of the search; alternatives are asked of the server, for they may never have been in the beam.
 */

import { alternativeRows } from "../alternatives.js";
import { Answers } from "../answers.js";
import { overtaken } from "../api.js";
import { h } from "../dom.js";
import { decimal, ordinal, percent, readable } from "../format.js";
import { roving, setRoving } from "../keys.js";
import { printIds } from "../state.js";
import { idsOf, named } from "./layout.js";
import { report } from "../messages.js";

const ALTERNATIVES = 10;
const KEPT = 100; // answers
const PAUSE = 120; // ms that a node must stay selected before its alternatives are asked for
const STATUS = {
  kept: "kept: among the best of its step",
  finished: "finished: a complete translation",
};

/**
 * @param {HTMLElement} root
 * @param {object} context
 * @param {() => void} leave takes the focus, when what had it here is of another question
 */
export function createDetails(root, { state, search, forcing }, leave) {
  let asking = new AbortController();
  let timer = 0;
  const known = new Answers(KEPT, search);
  search.subscribe(({ stale }) => {
    if (stale && root.contains(document.activeElement)) leave();
    root.inert = stale; // the ids are of another question
    if (!stale) return;
    asking.abort();
    clearTimeout(timer);
  });
  const list = h("div", { class: "rows", role: "toolbar", "aria-label": "Alternatives" });
  roving(list, "button");

  /** @param {object[]} path the nodes from the root to the one that is shown; empty: none */
  function show(path) {
    asking.abort();
    clearTimeout(timer);
    const node = path.at(-1);
    if (!node) {
      root.replaceChildren(h("p", { class: "hint" }, "Choose a node to see its numbers."));
      return;
    }
    const ids = idsOf(path);
    const text = readable(path.slice(1).filter(({ piece }) => piece !== "</s>"))
      .join("")
      .trim();
    const cut = text.lastIndexOf(" ") + 1;
    root.replaceChildren(
      h(
        "p",
        { class: "path", lang: document.getElementById("output").lang },
        text.slice(0, cut),
        h("strong", {}, text.slice(cut) || named(node)),
      ),
      ...(node.parent === null ? [h("p", { class: "hint" }, "Every translation begins here.")] : facts(node)),
      actions(node, ids, text),
      node.parent === null ? "" : h("section", {}, h("h4", {}, "In its place"), list),
    );
    list.replaceChildren();
    if (node.parent !== null) timer = setTimeout(() => alternatives(path.slice(0, -1), node), PAUSE);
  }

  function actions(node, ids, text) {
    const row = h("div", { class: "actions" });
    if (node.status === "finished" || node.piece === "</s>") {
      row.append(
        h(
          "button",
          {
            class: "plain",
            onclick: () => state.set({ t: printIds(ids), v: "look" }, { push: true }),
          },
          "Look at this translation",
        ),
      );
    } else if (node.parent !== null) {
      row.append(
        h(
          "button",
          {
            class: "strong",
            "aria-label": `Continue from ${text}`,
            onclick: () => forcing.force(ids),
          },
          "Continue from here",
        ),
      );
    }
    return row;
  }

  async function alternatives(before, node) {
    const ids = idsOf(before);
    const { run, q } = state.get();
    const body = { system: run || null, text: q, target: { ids }, alternatives: ALTERNATIVES };
    const { signal } = (asking = new AbortController());
    let last;
    try {
      last = (await known.post("/api/analyse", body, signal)).target.at(-1);
    } catch (error) {
      if (!overtaken(error)) report(error.message);
      return;
    }
    const buttons = alternativeRows({ ...last, id: node.token }).map(({ id, cells }) => {
      const end = last.id === id; // what the analysis ends with is the end of the sentence
      const choose = () =>
        end ? state.set({ t: printIds(ids) }, { push: true }) : forcing.force([...ids, id]);
      return h(
        "button",
        { class: "row", onclick: choose },
        cells,
      );
    });
    list.replaceChildren(...buttons);
    setRoving(buttons, 0);
  }
  return { show };
}

function facts(node) {
  const rows = [
    ["probability of this piece", percent(Math.exp(node.log_probability))],
    ["log-probability so far", decimal(node.total, 3)],
    ["score (by length)", decimal(node.score, 3)],
    ["rank in its step", ordinal(node.rank + 1)],
  ];
  const why = node.status === "pruned" ? ["pruned: ", node.why] : [STATUS[node.status]];
  return [
    h(
      "dl",
      { class: "facts" },
      rows.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
    ),
    h("p", { class: ["status", node.status] }, why),
  ];
}
