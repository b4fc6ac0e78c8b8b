/* The sentence to translate, examples of it, and the model that translates.
 *
 * Knows the state's keys q and run; not the translation.
 */

import { h } from "./dom.js";
import { NEW_SEARCH, NEW_SENTENCE } from "./state.js";

/** Fills the left card and the model's line in the head of the page. */
export function mountSentence({ state, systems }) {
  const input = document.getElementById("input");
  const select = document.getElementById("run");
  const examples = document.getElementById("examples");

  input.addEventListener("input", () => state.set({ ...NEW_SENTENCE, q: input.value }));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // one sentence; it is translated already
    if (event.key === "Escape") input.blur();
  });
  select.addEventListener("change", () =>
    state.set(
      { ...NEW_SEARCH, run: select.value === systems.default ? "" : select.value, p: "", source: null },
      { push: true },
    ),
  );

  function showModel() {
    const { run } = state.get();
    select.replaceChildren(...systems.options());
    select.value = run || systems.default;
    const [facts, all] = systems.facts(run);
    document.getElementById("run-facts").textContent = facts;
    document.getElementById("run-facts").title = all;
    showExamples(systems.runOf(run)?.examples ?? []);
  }
  function showExamples(texts) {
    // Those that are there already may have the focus.
    if (texts.join("\n") === [...examples.children].map(({ title }) => title).join("\n")) return;
    const choose = (q) => state.set({ ...NEW_SENTENCE, q }, { push: true });
    examples.replaceChildren(
      ...texts.map((text) => h("button", { title: text, onclick: () => choose(text) }, text)),
    );
    markExample(state.get().q);
  }
  function showRun(system) {
    showModel();
    const [source, target] = systems.languages(system);
    document.getElementById("source-language").textContent = source.name;
    document.getElementById("target-language").textContent = target.name;
    input.lang = source.code;
    document.getElementById("output").lang = target.code;
  }
  function markExample(q) {
    for (const button of examples.children) button.setAttribute("aria-pressed", button.title === q);
  }
  function update(current, changed) {
    if (changed.has("q") && input.value !== current.q) input.value = current.q;
    if (changed.has("q")) markExample(current.q);
    if (changed.has("run")) showRun(current.run);
  }
  state.subscribe(update);
  systems.subscribe(() => showRun(state.get().run));
  update(state.get(), new Set(["q", "run"]));
}
