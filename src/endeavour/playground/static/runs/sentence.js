/* The same sentence by several systems: their translations and scores, where the first parts from another, what each
 * thinks of the others' translations, and their attention side by side.
 *
 * Knows the search of the page, which is the first system's, and asks the server for the others.
 */

import { Answers } from "../answers.js";
import { ApiError, overtaken, stream } from "../api.js";
import { partingStep } from "../diff.js";
import { card, h } from "../dom.js";
import { figure } from "../figure.js";
import { pieceName } from "../format.js";
import { parsePrefix } from "../state.js";
import { attentionOf, partingOf, scoresOf } from "./comparison.js";
import { createPicker } from "./picker.js";
import { createSystemList } from "./system_list.js";
import { parseSystems, printSystems, sameSystem, suggested, systemTitle } from "./systems.js";
import { announce, report } from "../messages.js";

const LETTERS = "ABCDEF";
const KEPT = 40; // answers

export function createSentence(context) {
  const { state, search, results, systems } = context;
  const verdict = h("p", { class: "verdict", "aria-live": "polite" });
  const picker = createPicker(systems, add);
  const languageOf = (name) => systems.languages(name)[1].code;
  const list = createSystemList({
    onPick: pick,
    onRemove: remove,
    languageOf,
    next: picker,
  });
  const parting = figure({
    title: "Where they part",
    label: "Probabilities of the next piece where the translations part",
  });
  const opinions = h("div", { class: "opinions" });
  const attention = ["A", "the other system"].map((whose) =>
    figure({ title: `Attention of ${whose}`, label: "Cross-attention, mean of the last layer’s heads" }),
  );
  const pictures = [parting.node, opinions, ...attention.map(({ node: one }) => one)];
  hideAll();
  const node = card(
    "compare",
    "The same sentence",
    picker.node,
    list.node,
    verdict,
    h("div", { class: "halves" }, parting.node, opinions),
    h(
      "div",
      { class: "halves attention" },
      attention.map(({ node: one }) => one),
    ),
  );
  const answers = new Answers(KEPT, search);
  let running = new AbortController();
  let found = []; // {system, letter, hypothesis, milliseconds, error}
  let other = 1; // which of the further systems is compared with the first
  let translating = ""; // the weights of the further systems that were asked
  let latest = null; // the comparison that may draw; an earlier one may still be waiting for answers

  search.subscribe(({ stale, status }) => {
    if (stale || status === "idle") node.classList.add("stale");
    if (stale) running.abort();
  });

  const further = () => {
    const { w, run } = state.get();
    return (w ? parseSystems(w) : suggested(run, systems)).slice(0, LETTERS.length - 1);
  };
  const weights = () => further().map(({ name }) => systems.weights(name)).join();
  // Ids mean the same pieces only within a run.
  const sameRun = (one, other) => systems.runOf(one) === systems.runOf(other);
  const main = () => ({ name: state.get().run || systems.default, beam: null });

  function add(system) {
    if (further().some((one) => sameSystem(one, system)))
      return announce(`${systemTitle(system)} is compared already`);
    if (further().length > 4) return report("Five further systems are the most: remove one first");
    state.set({ w: printSystems([...further(), system]) }, { push: true });
    return announce(`${systemTitle(system)} is compared`);
  }
  function remove(system) {
    state.set({ w: printSystems(further().filter((one) => !sameSystem(one, system))) }, { push: true });
  }

  async function translated(system, signal) {
    const { q, p, run, lp } = state.get();
    const prefix = sameRun(system.name, run) ? parsePrefix(p) : null;
    const body = {
      system: system.name,
      text: q,
      prefix,
      beam_size: system.beam,
      length_penalty: lp,
      pruned: 0,
      reference: null,
    };
    const key = JSON.stringify(body);
    if (!answers.has(key)) {
      await stream("/api/search", body, {
        signal,
        onEvent: (name, data) => name === "result" && answers.set(key, data),
      });
    }
    const answer = answers.get(key);
    if (!answer) throw new ApiError("The search ended without a result", 500);
    return { hypothesis: answer.hypotheses[0], milliseconds: answer.milliseconds };
  }

  async function load() {
    if (!search.current.done || !state.get().q.trim()) return;
    running.abort();
    const { signal } = (running = new AbortController());
    translating = weights();
    node.classList.add("stale");
    let first;
    try {
      first = await results.translation();
    } catch (error) {
      if (!signal.aborted) failed(error);
    }
    if (!first || signal.aborted) return;
    found = [{ system: main(), letter: "A", hypothesis: first, milliseconds: search.current.milliseconds }];
    found.push(...further().map((system, i) => ({ system, letter: LETTERS[i + 1], hypothesis: null })));
    for (const entry of found.slice(1)) {
      try {
        Object.assign(entry, await translated(entry.system, signal));
      } catch (error) {
        if (overtaken(error)) return;
        entry.error = error.message;
      }
    }
    node.classList.remove("stale");
    if (!found[other]?.hypothesis) other = Math.max(1, found.findIndex((one, i) => i && one.hypothesis));
    list.show(found, other);
    try {
      await compare(signal);
    } catch (error) {
      failed(error);
    }
  }

  function hideAll() {
    for (const part of pictures) part.hidden = true;
  }

  function failed(error) {
    if (overtaken(error)) return;
    hideAll(); // pictures of another comparison do not stay
    report(error.message);
  }

  function pick(position) {
    other = position;
    list.show(found, other);
    compare(running.signal).catch(failed);
  }

  async function compare(signal) {
    const mine = (latest = {});
    opinions.replaceChildren();
    const [a, b] = [found[0], found[other]];
    const both = Boolean(b?.hypothesis);
    for (const part of pictures) part.hidden = !both && part !== attention[0].node;
    const { q } = state.get();
    const pair = ({ system, hypothesis }) => ({
      system: system.name,
      text: q,
      target: { ids: hypothesis.ids },
    });
    if (both) {
      const same = a.hypothesis.text === b.hypothesis.text; // in other pieces, if the vocabularies differ
      const step = same ? null : partingStep(a.hypothesis.pieces, b.hypothesis.pieces);
      parting.node.hidden = step === null;
      verdict.textContent =
        step === null ? `A and ${b.letter} find the same translation.` : partText(a, b, step);
      if (step !== null) {
        const [ours, theirs] = await Promise.all(
          [a, b].map((one) => answers.post("/api/analyse", { ...pair(one), alternatives: 10 }, signal)),
        );
        if (mine !== latest) return;
        parting.show(
          partingOf({ a, b, step, ours: ours.target[step], theirs: theirs.target[step] }, width(parting)),
        );
      }
    } else verdict.textContent = b?.error ?? "Add a system to compare it with A.";
    const maps = await Promise.all(
      [a, b].map((one) => (one?.hypothesis ? answers.post("/api/attention", pair(one), signal) : null)),
    );
    if (mine !== latest) return;
    maps.forEach(
      (map, i) => map && attention[i].show(attentionOf([a, b][i], map, width(attention[i]))),
    );
    if (!both) return;
    const scores = await scoresOf(
      found.filter(({ hypothesis }) => hypothesis),
      languageOf,
      ({ system }, { system: author, hypothesis: { ids, text } }) => {
        const target = sameRun(system.name, author.name) ? { ids } : { text };
        return answers.post("/api/analyse", { system: system.name, text: q, target, alternatives: 0 }, signal);
      },
    );
    if (mine === latest) opinions.replaceChildren(scores);
  }

  const width = ({ stage }) => stage.clientWidth || node.clientWidth / 2 - 40 || 400;

  function partText(a, b, step) {
    const before = a.hypothesis.pieces.slice(0, step);
    const name = ({ hypothesis }) => pieceName(hypothesis.pieces[step]?.piece ?? "</s>");
    return `They part at piece ${step + 1}${before.length ? "" : ", the first"}: A writes “${name(a)}”, ${b.letter} writes “${name(b)}”.`;
  }

  return {
    node,
    load,
    /** To be called when the runs that are offered have changed. */
    refresh() {
      picker.refresh();
      if (weights() === translating) return;
      answers.clear();
      if (state.get().v === "runs") load();
    },
  };
}
