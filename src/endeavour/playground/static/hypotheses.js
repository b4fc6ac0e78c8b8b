/* The n best translations as a list with score bars; the one chosen is what all views show.
 *
 * Knows hypotheses and the state's key t; not how they were found.
 */

import { marked } from "./diff.js";
import { bar, h } from "./dom.js";
import { decimal, percent } from "./format.js";
import { roving, setRoving } from "./keys.js";
import { printIds } from "./state.js";
import { tooltip } from "./tooltip.js";

/** Fills the list below the translation and keeps it up to date. */
export function mountHypotheses(root, { state, search }) {
  const list = h("ol", { role: "listbox", "aria-label": "Best translations" });
  root.append(list);
  roving(list, '[role="option"]');

  function choose(position) {
    const { hypotheses, done } = search.current;
    if (!done) return; // they are of another question
    state.set({ t: position ? printIds(hypotheses[position].ids) : "" }, { push: true });
  }
  list.addEventListener("keydown", (event) => {
    const option = event.target.closest('[role="option"]');
    if (!option || ![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    choose(Number(option.dataset.position));
  });

  function option(hypothesis, position, best) {
    const share = Math.exp(hypothesis.score - best.score);
    const row = h(
      "li",
      { role: "option", "data-position": position, onclick: () => choose(position) },
      h("span", { class: "rank" }, position + 1),
      h(
        "span",
        { class: "text", lang: document.getElementById("output").lang },
        marked(hypothesis.text, best.text),
      ),
      h("span", { class: "score" }, bar(share), h("span", { class: "unseen" }, "score "), decimal(hypothesis.score)),
    );
    const explain = () => tooltip.show(row.querySelector(".score"), explained(hypothesis));
    for (const name of ["pointerenter", "focus"]) row.addEventListener(name, explain);
    for (const name of ["pointerleave", "blur"]) row.addEventListener(name, tooltip.hide);
    return row;
  }

  let shown = null;
  function showChosen() {
    const position = search.current.hypotheses.indexOf(search.chosen()?.hypothesis);
    [...list.children].forEach((row, i) => row.setAttribute("aria-selected", i === position));
    setRoving([...list.children], position);
  }
  search.subscribe(({ hypotheses, done, status }) => {
    root.classList.toggle("stale", !done && status !== "idle");
    if (status === "idle") list.replaceChildren();
    if (!done || shown === hypotheses) return;
    shown = hypotheses;
    const focused = list.contains(document.activeElement)
      ? Number(document.activeElement.dataset.position)
      : null;
    list.replaceChildren(...hypotheses.map((hypothesis, i) => option(hypothesis, i, hypotheses[0])));
    showChosen();
    if (focused !== null) (list.children[focused] ?? list.lastChild)?.focus();
  });
  state.subscribe((_, changed) => changed.has("t") && showChosen());
}

const explained = ({ score, log_probability: total, pieces }) =>
  [
    `score ${decimal(score, 3)} = log-probability ${decimal(total, 3)},`,
    `divided by the length penalty of ${pieces.length} pieces; probability ${percent(Math.exp(total))}`,
  ].join(" ");
