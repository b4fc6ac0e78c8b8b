/* The search for what the page shows: it follows the state, overtakes itself, and publishes what the server reports.
 *
 * Knows /api/search and which keys of the state it depends on; not how results are shown.
 */

import { ApiError, overtaken, stream } from "./api.js";
import { debounce } from "./dom.js";
import { parseIds, parsePrefix, printIds } from "./state.js";

const DEPENDS_ON = ["q", "run", "p", "beam", "lp", "ref"];
const PAUSE = 60; // ms without a key before a sentence is sent
const PRUNED = 4; // pruned nodes a step that the tree shows at most

const nothing = {
  status: "idle", // idle | running | done | error
  done: false,
  stale: false, // whether what follows is still the last search's
  error: null,
  offline: false, // whether the error is that no server answers
  beam_size: null,
  length_penalty: null,
  source: [],
  prefix: [], // forced pieces
  typed: "", // forced text after them
  nodes: new Map(), // by id; of those pruned at the end, `before` is the status until then
  steps: 0,
  text: "", // the best so far
  hypotheses: [],
  reference: null,
  milliseconds: null,
};

/** What a search is asked: the body of the request. Settings that are null are the run's own. */
const question = (state) => ({
  system: state.run || null,
  text: state.q,
  prefix: parsePrefix(state.p),
  beam_size: state.beam,
  length_penalty: state.lp,
  pruned: PRUNED,
  reference: state.ref || null,
});

/**
 * @returns {{readonly current: object, subscribe: (listener: (current: object) => void) => void,
 *   chosen: () => null | {ids: number[], hypothesis: object | null}, start: () => void}}
 */
export function createSearch(state) {
  const listeners = [];
  let current = nothing;
  let running = new AbortController();

  function publish(patch) {
    current = { ...current, ...patch };
    for (const listener of listeners) listener(current);
  }

  async function start() {
    running.abort();
    const { signal } = (running = new AbortController());
    if (!state.get().q.trim()) {
      publish({ ...nothing, nodes: new Map() });
      return;
    }
    const asked = question(state.get());
    // What the last search found stays until this one has something to show.
    publish({ status: "running", done: false, stale: true, error: null, asked });
    try {
      await stream("/api/search", asked, {
        signal,
        onEvent: (name, data) => !signal.aborted && take(name, data),
      });
      if (!signal.aborted && !current.done) throw new ApiError("The search ended without a result", 500);
    } catch (error) {
      if (!overtaken(error)) publish({ status: "error", error: error.message, offline: error.status === 0 });
    }
  }

  function take(name, data) {
    if (name === "start") {
      publish({ ...nothing, status: "running", asked: current.asked, ...data, nodes: new Map() });
    } else if (name === "step") {
      for (const node of data.nodes) current.nodes.set(node.id, node);
      publish({ steps: data.step, text: data.text });
    } else if (name === "result") {
      for (const { id, ...late } of data.pruned_late) {
        const node = current.nodes.get(id);
        if (node) current.nodes.set(id, { ...node, ...late, status: "pruned", before: node.status });
      }
      const { hypotheses, reference, milliseconds } = data;
      const text = hypotheses[0]?.text ?? "";
      publish({ status: "done", done: true, text, hypotheses, reference, milliseconds });
    }
  }

  const soon = debounce(start, PAUSE);
  state.subscribe((_, changed) => {
    if (!DEPENDS_ON.some((key) => changed.has(key))) return;
    running.abort(); // what it still reports answers another question
    publish({ status: "running", done: false, stale: true });
    soon();
  });

  return {
    get current() {
      return current;
    },
    start,
    subscribe(listener) {
      listeners.push(listener);
    },
    chosen() {
      const { t } = state.get();
      const found = current.hypotheses;
      const hypothesis = (t ? found.find(({ ids }) => printIds(ids) === t) : found[0]) ?? null;
      return hypothesis || t ? { ids: hypothesis?.ids ?? parseIds(t), hypothesis } : null;
    },
  };
}
