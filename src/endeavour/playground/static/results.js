/* The chosen translation and its numbers: analysis, attention and saliency, asked once and kept.
 *
 * Knows the three requests; not who shows their answers. When another sentence, translation or system is chosen, what
 * is still being worked out for the last one is given up. Another search may be by another checkpoint: nothing is kept
 * beyond it.
 */

import { Answers } from "./answers.js";
import { post } from "./api.js";

const KEPT = 24; // answers
const ALTERNATIVES = 10;

/**
 * Each function returns the promise of an answer, or null where nothing is chosen or the search goes on.
 *
 * @returns {{translation: () => Promise<object | null>, analysis: () => Promise<object> | null,
 *   attention: () => Promise<object> | null, saliency: () => Promise<object> | null}}
 */
export function createResults(state, search) {
  const answers = new Answers(KEPT, search);
  let pending = { pair: "", controller: new AbortController() };

  function ask(path, extra = {}) {
    const chosen = search.chosen();
    const { q, run } = state.get();
    if (!chosen || !search.current.done) return null;
    const body = { system: run || null, text: q, target: { ids: chosen.ids }, ...extra };
    const pair = JSON.stringify([run, q, chosen.ids]);
    const key = path + pair;
    if (answers.has(key)) return answers.get(key);
    if (pending.pair !== pair) {
      pending.controller.abort();
      pending = { pair, controller: new AbortController() };
    }
    const answer = post(path, body, { signal: pending.controller.signal });
    answers.set(key, answer);
    answer.catch(() => answers.delete(key));
    return answer;
  }

  const analysis = () =>
    ask("/api/analyse", { alternatives: ALTERNATIVES, length_penalty: state.get().lp });

  /** The chosen translation as a hypothesis of the search, or, where the search did not find it, in the same form. */
  async function translation() {
    const chosen = search.chosen();
    if (chosen?.hypothesis) return chosen.hypothesis;
    const scored = await analysis();
    return scored && { ...scored, ids: chosen.ids, pieces: scored.target };
  }

  return {
    translation,
    analysis,
    attention: () => ask("/api/attention"),
    saliency: () => ask("/api/saliency"),
  };
}
