/* The Runs view: systems compared on one sentence, evaluated test sets line by line, trainings as they go on.
 *
 * Knows which runs there are; its parts, in runs/, do not know each other.
 */

import { h, onWidth } from "./dom.js";
import { createSentence } from "./runs/sentence.js";
import { parseSystems, suggested } from "./runs/systems.js";
import { createTestSets } from "./runs/testsets.js";
import { createTraining } from "./runs/training.js";
import { announce } from "./messages.js";

/** See app.js for what a view is handed and what it returns. */
export function mount(root, context) {
  const { state, search, systems } = context;
  const sentence = createSentence(context);
  const sets = createTestSets(context);
  const training = createTraining(context);
  const jumpTo = (part) => {
    const heading = part.querySelector("h2");
    const jump = () => {
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
      part.scrollIntoView({ behavior: "instant", block: "start" });
    };
    return h("button", { class: "plain", onclick: jump }, heading.textContent);
  };
  const parts = [sentence, training, sets].map(({ node }) => node);
  const damaged = h("p", { class: "problem", role: "status", hidden: true });
  root.classList.add("runs");
  root.append(
    h("nav", { class: "parts", "aria-label": "Parts of this view" }, parts.map(jumpTo)),
    damaged,
    ...parts,
  );

  const shown = () => state.get().v === "runs" && !document.hidden;
  const watched = new Set(); // runs that were being trained while this page was open

  /** The runs of the systems that are compared, and those whose training was seen. */
  function follow() {
    if (!shown()) return;
    const { run, w } = state.get();
    const further = w ? parseSystems(w) : suggested(run, systems);
    const names = [run || systems.default, ...further.map(({ name }) => name)]
      .map((name) => systems.runOf(name)?.name)
      .filter(Boolean);
    for (const { name, training: now } of systems.runs) if (now) watched.add(name);
    const [main, ...others] = names;
    training.follow([main, ...[...watched].filter((name) => systems.runOf(name)), ...others].filter(Boolean));
  }

  function showDamaged() {
    const text = systems.damaged.length ? `Left out, because damaged: ${systems.damaged.join("; ")}` : "";
    damaged.hidden = !text;
    if (damaged.textContent !== text) damaged.textContent = text;
  }
  showDamaged();

  systems.subscribe((before) => {
    const known = new Set(before.filter(({ training: now }) => now).map(({ name }) => name));
    for (const run of systems.runs)
      if (run.training && !known.has(run.name)) announce(`${run.name} is being trained`);
    showDamaged();
    sentence.refresh();
    sets.refresh();
    follow();
  });

  const pause = () => shown() || training.close();
  state.subscribe(pause);
  document.addEventListener("visibilitychange", () => {
    pause();
    follow();
  });
  search.subscribe(({ done }) => done && state.get().v === "runs" && sentence.load());

  onWidth(root, () => {
    sentence.load();
    sets.load();
    training.show();
  });

  return {
    update(_, changed) {
      const any = (...keys) => keys.some((key) => changed.has(key));
      if (any("v", "run", "w", "t", "lp")) sentence.load();
      if (any("v", "run", "set", "sort", "filter")) sets.load();
      if (any("v", "run", "w")) follow();
    },
  };
}
