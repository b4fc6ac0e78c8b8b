/* The Learn view: the Transformer explained on the sentence of the page, with the model's own numbers, from the text to
 * the next piece.
 *
 * Knows the answer of /api/learn and what is followed through it: one piece of each side, one key. What is told stands in
 * learn/story.js, what is drawn in the other modules there; each drawing gets the `view` that `seen` makes.
 */

import { Answers } from "./answers.js";
import { overtaken } from "./api.js";
import { debounce, h } from "./dom.js";
import { label } from "./format.js";
import { TURNS } from "./keys.js";
import { createChoices, layersOf } from "./learn/choices.js";
import { createExtras, PLAIN } from "./learn/extras.js";
import { createOverview } from "./learn/overview.js";
import { createPages } from "./learn/pages.js";
import { stepsOf } from "./learn/story.js";
import { announce } from "./messages.js";

const KEPT = 16; // answers
const OF_TRANSLATION = new Set(["cross", "logits", "probability", "search"]); // steps whose pictures have no keys
const FOLLOWED = ["source", "target", "key"];
const CHOSEN = ["run", "q", "t", "kind", "layer", "head"]; // what an answer depends on

/** See app.js for what a view is handed and what it returns. */
export function mount(root, context) {
  const { state, search } = context;
  const answers = new Answers(KEPT, search);
  let running = new AbortController();
  search.subscribe(({ stale, status }) => {
    if (stale || status === "idle") root.classList.add("stale");
    if (status === "idle") problem.hidden = true;
    if (stale) running.abort();
  });
  let data = null;
  let model = "";
  let temperature = PLAIN;

  const choices = createChoices({ onChoose: (patch) => state.set(patch), onFollow: choose });
  const overview = createOverview((step, kind) => {
    if (kind && kind !== state.get().kind) state.set({ kind, key: null });
    pages.go(step, { focus: true });
  });
  const extras = createExtras({
    onTemperature(value) {
      temperature = value;
      show();
    },
    onCross() {
      state.set({ kind: "cross", key: null }, { push: true });
      pages.go("project", { focus: true });
    },
    onView: (v) => state.set({ v }, { push: true }),
  });
  const pages = createPages({ onStep: (step) => mark(step), onKey: move, extras });
  const wide = matchMedia("(width >= 1020px)"); // where the map always stands beside the story; see learn.css
  const map = h(
    "details",
    { class: "whole", open: wide.matches },
    h("summary", {}, "Map of the model"),
    overview.node,
  );
  wide.addEventListener("change", () => (map.open ||= wide.matches));
  root.classList.add("learn");
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  pages.node.prepend(problem);
  root.append(
    h("aside", { class: "card guide", "aria-label": "Where you are" }, choices.node, map),
    pages.node,
  );

  /** What is followed: a piece of the source, one of the translation, a key. */
  function choose(patch) {
    state.set({ key: null, ...patch });
  }

  /** The pieces that are followed: unless others were chosen, those in the middle. */
  function followed() {
    const { source, target } = state.get();
    const within = (chosen, { length }) => Math.min(chosen ?? Math.floor((length - 1) / 2), length - 1);
    return { source: within(source, data.tokens.source), target: within(target, data.tokens.target_in) };
  }

  /** All that a drawing needs to know. */
  function seen(width) {
    const { tokens, kind, attention, head } = data;
    const names = (pieces) => pieces.map(({ piece }) => label(piece));
    const side = kind === "encoder" ? "source" : "target";
    const labels = {
      source: names(tokens.source),
      target: names(tokens.target_in),
      output: names(tokens.target_out),
    };
    labels.queries = labels[side];
    const own = kind === "decoder" ? labels.target : labels.source;
    labels.keys = [...own, ...attention.visible[0].slice(own.length).map(() => "<pad>")];
    labels.all = [...labels.source, ...labels.target];
    const { source, target } = followed();
    const q = side === "source" ? source : target;
    const weights = attention.weights[head][q];
    const best = weights.indexOf(Math.max(...weights));
    return {
      data,
      labels,
      side,
      q,
      best,
      head,
      width,
      temperature,
      choose,
      source,
      target,
      tokens: side === "source" ? tokens.source : tokens.target_in,
      real: own.length, // keys that are pieces; the others are padding
      k: Math.min(state.get().key ?? best, own.length - 1),
      follow: (row) => choose({ [side]: row }),
      chooseKey: (key) => choose({ key }),
      chooseCell: (row, key) =>
        choose({ ...(row !== null && { [side]: row }), ...(key !== null && key < own.length && { key }) }),
      chooseHead: (number) => state.set({ head: number }),
    };
  }

  /** Arrow keys in a step's picture: up and down to another piece, left and right to another key if it has keys. */
  function move({ key }, step) {
    if (!data) return false;
    const view = seen(0);
    const by = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 }[key];
    if (!by) return false;
    const within = (position, count) => Math.min(count - 1, Math.max(0, position + by));
    if (OF_TRANSLATION.has(step)) {
      choose({ target: within(view.target, view.labels.target.length) });
      const { labels, target } = seen(0);
      announce(`${labels.output[target]}, after ${labels.target[target]}`);
      return true;
    }
    if (key === "ArrowUp" || key === "ArrowDown")
      choose({ [view.side]: within(view.q, view.labels.queries.length) });
    else choose({ key: within(view.k, view.real) });
    const now = seen(0);
    announce(
      `${now.labels.queries[now.q]} to ${now.labels.keys[now.k]}: ${Math.round(100 * data.attention.weights[data.head][now.q][now.k])} percent`,
    );
    return true;
  }

  function ask() {
    const chosen = search.chosen();
    const current = state.get();
    if (!chosen || !search.current.done || !current.q.trim()) return null;
    const run = context.systems.runOf(current.run);
    const last = run ? layersOf(run.model, current.kind) - 1 : 0;
    const heads = run?.model.num_heads ?? 1;
    return {
      system: current.run || null,
      text: current.q,
      target: { ids: chosen.ids },
      kind: current.kind,
      layer: Math.min(current.layer ?? last, last),
      head: current.head === "avg" ? 0 : Math.min(current.head, heads - 1),
    };
  }

  async function load() {
    const body = ask();
    if (!body) return;
    running.abort();
    running = new AbortController();
    root.classList.add("stale");
    try {
      data = await answers.post("/api/learn", body, running.signal);
      problem.hidden = true;
      root.classList.remove("stale");
      show();
    } catch (error) {
      if (overtaken(error)) return;
      problem.hidden = false;
      problem.textContent = error.message;
    }
  }

  function show() {
    if (!data) return;
    const steps = stepsOf(data.model);
    const described = JSON.stringify(data.model);
    if (described !== model) {
      model = described;
      overview.show(data.model);
      pages.build(steps);
      pages.go(stepOf(steps), { quiet: true });
    }
    choices.show(data, followed());
    pages.show(seen);
    mark(pages.current());
  }

  const stepOf = (steps) => steps[Math.min(state.get().step, steps.length - 1)].id;

  function mark(step) {
    if (!data || !step) return;
    overview.mark(step, data.kind, data.layer);
    const position = stepsOf(data.model).findIndex(({ id }) => id === step);
    if (state.get().v === "learn") state.set({ step: position });
  }

  const soon = debounce(load, 30);
  search.subscribe(({ done }) => done && state.get().v === "learn" && soon());

  return {
    update(_, changed) {
      if (CHOSEN.some((key) => changed.has(key)) || changed.has("v")) load();
      else if (FOLLOWED.some((key) => changed.has(key))) show();
      if (changed.has("step") && data) {
        // Other views leave the window somewhere else.
        const how = changed.has("v") ? { quiet: true } : { unlessThere: true };
        pages.go(stepOf(stepsOf(data.model)), how);
      }
    },
    key({ key }) {
      if (!TURNS[key] || !data) return false;
      const [name, by] = TURNS[key];
      const count = name === "head" ? data.model.num_heads : layersOf(data.model, data.kind);
      const now = ask() ?? data; // an answer may be behind
      state.set({ [name]: (now[name] + by + count) % count });
      announce(`${name} ${state.get()[name] + 1} of ${count}`);
      return true;
    },
  };
}
