/* The Runs view: systems compared on one sentence, evaluated test sets line by line, trainings as they go on.
 *
 * Knows which runs there are, and looks from time to time whether others have come; its parts, in runs/, do not know each
 * other.
 */

import { h } from "./dom.js";
import { createSentence } from "./runs/sentence.js";
import { parseSystems, suggested } from "./runs/systems.js";
import { createTestSets } from "./runs/testsets.js";
import { createTraining } from "./runs/training.js";

const LOOK_AGAIN = 3000; // ms after which the runs are asked for again, while the view is shown

/** See app.js for what a view is handed and what it returns. */
export function mount(root, context) {
  const { api, state, search, announce } = context;
  const sentence = createSentence(context);
  const sets = createTestSets(context);
  const training = createTraining(context);
  const parts = [
    ["compare-title", "The same sentence"],
    ["training-title", "Training"],
    ["sets-title", "Test sets"],
  ];
  const jump = (id) => {
    const heading = document.getElementById(id);
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    heading.closest("section").scrollIntoView({ behavior: "instant", block: "start" });
  };
  const damaged = h("p", { class: "problem", role: "status", hidden: true });
  root.classList.add("runs");
  root.append(
    h(
      "nav",
      { class: "parts", "aria-label": "Parts of this view" },
      parts.map(([id, name]) =>
        h("button", { type: "button", class: "plain", onclick: () => jump(id) }, name),
      ),
    ),
    damaged,
    sentence.node,
    training.node,
    sets.node,
  );

  const shown = () => state.get().v === "runs" && !document.hidden;
  const watched = new Set(); // runs that were being trained while this page was open

  /** The runs of the systems that are compared, and those whose training was seen. */
  function follow() {
    if (!shown()) return;
    const { run, w } = state.get();
    const systems = w ? parseSystems(w) : suggested(run, context.runs);
    const names = [run || context.runs.default, ...systems.map(({ name }) => name)]
      .map((name) => context.runs.runOf(name)?.name)
      .filter(Boolean);
    for (const { name, training: now } of context.runs.runs) if (now) watched.add(name);
    training.follow([...names, ...[...watched].filter((name) => context.runs.runOf(name))]);
  }

  let timer = 0;
  let last = JSON.stringify(context.runs.runs);
  async function lookAgain() {
    clearTimeout(timer);
    if (!shown()) return;
    try {
      const fresh = await api.get("/api/runs");
      const printed = JSON.stringify(fresh.runs);
      if (printed !== last) refresh(fresh.runs);
      last = printed;
      showDamaged(fresh.damaged);
    } catch {
      // The server is away; the parts that need it say so.
    }
    timer = setTimeout(lookAgain, LOOK_AGAIN);
  }

  function showDamaged(left) {
    const text = left.length ? `Left out, because damaged: ${left.map(({ error }) => error).join("; ")}` : "";
    damaged.hidden = !text;
    if (damaged.textContent !== text) damaged.textContent = text;
  }

  function refresh(fresh) {
    const known = new Set(context.runs.runs.filter(({ training: now }) => now).map(({ name }) => name));
    // In place: all parts of the page hold this list.
    context.runs.runs.splice(0, context.runs.runs.length, ...fresh);
    for (const run of fresh)
      if (run.training && !known.has(run.name)) announce(`${run.name} is being trained`);
    sentence.refresh();
    sets.refresh();
    follow();
  }

  // Each log takes a connection, of which a browser allows all tabs together six.
  function pause() {
    clearTimeout(timer);
    training.close();
  }
  state.subscribe(({ v }) => v !== "runs" && pause());
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return pause();
    follow();
    return lookAgain();
  });
  search.subscribe(({ done }) => done && state.get().v === "runs" && sentence.load());

  let width = 0;
  new ResizeObserver(([entry]) => {
    const wide = Math.round(entry.contentRect.width);
    if (width && wide && wide !== width) {
      sentence.load();
      sets.load();
      training.show();
    }
    width = wide;
  }).observe(root);

  return {
    update(_, changed) {
      const any = (...keys) => keys.some((key) => changed.has(key));
      if (any("v", "run", "w", "t", "lp")) sentence.load();
      if (any("v", "run", "set", "sort", "filter")) sets.load();
      if (any("v", "run", "w")) follow();
      if (any("v")) lookAgain();
    },
  };
}
