/* The evaluated test sets, line by line: a table that sorts and filters, the distribution of its scores, and one line in
 * full.
 *
 * Knows /api/evaluation and the state's keys set, sort and filter; a line is opened in Look by setting the sentence.
 */

import { Answers } from "../answers.js";
import { get, overtaken } from "../api.js";
import { marked } from "../diff.js";
import { card, debounce, h } from "../dom.js";
import { figure } from "../figure.js";
import { decimal, thousands } from "../format.js";
import { NEW_SENTENCE } from "../state.js";
import { bleuName, foldOf } from "../systems.js";
import { FLAGS, arranged, has, parseSort, toggled } from "./filter.js";
import { createGrid } from "./grid.js";
import { HEIGHTS, histogram } from "./histogram.js";
import { announce, report } from "../messages.js";

const KEPT = 3; // evaluations in memory
const NOTHING = { key: null, run: "", rows: [], scores: {} };

export function createTestSets({ state, systems }) {
  const choose = h("select", {
    id: "test-set",
    onchange: () => state.set({ set: choose.value }, { push: true }),
  });
  const scores = h("p", { class: "hint" });
  const input = h("input", {
    type: "search",
    id: "test-filter",
    placeholder: "words, chrf<60, ratio>1.3, flag:any …",
    spellcheck: "false",
    autocomplete: "off",
  });
  input.addEventListener(
    "input",
    debounce(() => state.set({ filter: input.value }), 120),
  );
  const flags = Object.entries({ any: "any fault", ...FLAGS }).map(([flag, name]) =>
    h(
      "button",
      {
        class: "plain flag",
        "data-token": `flag:${flag}`,
        onclick: () => state.set({ filter: toggled(state.get().filter, `flag:${flag}`) }),
      },
      name,
    ),
  );
  const count = h("p", { class: "hint", role: "status" });
  const detail = h("div", { class: "line" });
  const grid = createGrid({
    label: "Lines of the test set. Arrows move, Enter opens a line in Look.",
    columns: [
      { key: "line", title: "Line", cell: ({ line }) => thousands(line), number: true },
      { key: "source", title: "Source", cell: ({ source }) => inLanguage(0, source) },
      { key: "hypothesis", title: "Translation", cell: ({ hypothesis }) => hypothesis ? inLanguage(1, hypothesis) : "(empty)" },
      { key: "chrf", title: "chrF", cell: ({ chrf }) => decimal(chrf, 1), number: true },
      { key: "length_ratio", title: "Length", cell: (row) => decimal(row.length_ratio, 2), number: true },
      { key: "flags", title: "Faults", cell: faults },
    ],
    onSelect: showLine,
    onOpen: open,
    onSort(key) {
      const [column, descending] = parseSort(state.get().sort);
      state.set({ sort: key === column && !descending ? `-${key}` : key });
    },
  });
  const bars = figure({
    title: "chrF of the lines shown",
    label: "Distribution of chrF",
    hint: HEIGHTS,
  });
  const node = card(
    "sets",
    "Test sets",
    [h("label", { for: "test-set" }, h("span", { class: "unseen" }, "Evaluation"), choose), scores],
    h(
      "div",
      { class: "filters" },
      h("label", { for: "test-filter", class: "unseen" }, "Filter"),
      input,
      h("div", { class: "flags", role: "group", "aria-label": "Faults" }, flags),
      count,
    ),
    h("div", { class: "split" }, grid.node, h("div", { class: "aside" }, detail, bars.node)),
  );
  const inLanguage = (side, text) => h("span", { lang: systems.languages(data.run)[side].code }, text);
  const loaded = new Answers(KEPT);
  let running = new AbortController();
  let data = NOTHING; // {key, rows, …} of the evaluation that is shown

  /** Evaluations: `set` is the state's name of one; `key` changes when it is repeated. */
  const offered = () =>
    systems.runs.flatMap((run) =>
      run.evaluations.map((evaluation) => {
        const set = `${run.name}/${evaluation.folder}`;
        return { set, key: set + JSON.stringify(evaluation), run, evaluation };
      }),
    );

  function options() {
    const groups = systems.runs
      .filter((run) => run.evaluations.length)
      .map((run) =>
        h(
          "optgroup",
          { label: run.name },
          run.evaluations.map(({ folder, test_set: set, label: how, scores: all }) => {
            const bleu = all[run.lowercase ? "bleu_lowercased" : "bleu"];
            return h(
              "option",
              { value: `${run.name}/${folder}` },
              `${run.name}: ${set}, ${how}${bleu === undefined ? "" : ` (${bleuName(run.lowercase)} ${bleu.toFixed(1)})`}`,
            );
          }),
        ),
      );
    choose.replaceChildren(...groups);
    choose.value = wanted()?.set;
  }

  /** The evaluation that the state names, or the first of the chosen run. */
  function wanted() {
    const all = offered();
    const { set, run } = state.get();
    return (
      all.find((one) => one.set === set) ?? all.find((one) => one.run === systems.runOf(run)) ?? all[0] ?? null
    );
  }

  async function load() {
    running.abort();
    const want = wanted();
    node.classList.toggle("none", !want);
    if (!want) {
      data = NOTHING;
      show();
      scores.textContent = "No run has been evaluated yet: endeavour evaluate run=NAME";
      return;
    }
    choose.value = want.set;
    node.classList.remove("failed");
    node.classList.toggle("stale", data.key !== want.key);
    if (data.key === want.key) {
      show();
      return;
    }
    const { signal } = (running = new AbortController());
    try {
      if (!loaded.has(want.key)) {
        const query = new URLSearchParams({ run: want.run.name, folder: want.evaluation.folder });
        loaded.set(want.key, await get(`/api/evaluation?${query}`, { signal }));
      }
      const { scores: means } = want.evaluation;
      data = { key: want.key, run: want.run.name, scores: means, ...loaded.get(want.key) };
      node.classList.remove("stale");
      show();
    } catch (error) {
      if (overtaken(error)) return;
      data = NOTHING; // another's lines do not stay under this name
      node.classList.replace("stale", "failed");
      show();
      report(error.message);
    }
  }

  function show() {
    const { filter, sort } = state.get();
    const rows = arranged(data.rows, filter, sort);
    if (input.value !== filter && document.activeElement !== input) input.value = filter;
    for (const button of flags) button.setAttribute("aria-pressed", has(filter, button.dataset.token));
    const mean = rows.reduce((sum, row) => sum + row.chrf, 0) / (rows.length || 1);
    count.textContent = rows.length
      ? `${thousands(rows.length)} of ${thousands(data.rows.length)} lines, mean chrF ${mean.toFixed(1)}`
      : "No line is like that.";
    scores.textContent = Object.entries(data.scores)
      .map(([name, value]) => `${name} ${value.toFixed(1)}`)
      .join(" · ");
    grid.show(rows, { sort: parseSort(sort), same: (a, b) => a.line === b.line });
    if (!rows.length) detail.replaceChildren();
    bars.show(histogram(rows, bars.stage.clientWidth || 300));
  }

  function showLine(row) {
    const fold = foldOf(systems.runOf(data.run));
    const part = (name, ...content) => [h("dt", {}, name), h("dd", {}, content)];
    detail.replaceChildren(
      h("h3", {}, `Line ${thousands(row.line)}`),
      h(
        "dl",
        {},
        part("Source", inLanguage(0, row.source)),
        part(
          "Translation",
          row.hypothesis ? inLanguage(1, marked(row.hypothesis, row.reference, { fold })) : "(empty)",
        ),
        part("Reference", inLanguage(1, marked(row.reference, row.hypothesis, { fold }))),
      ),
      h(
        "p",
        { class: "hint" },
        `chrF ${row.chrf.toFixed(1)}, length ${row.length_ratio.toFixed(2)} of the reference${row.flags.length ? `, ${faults(row)}` : ""}`,
      ),
      h("button", { class: "strong", onclick: () => open(row) }, "Open in Look"),
    );
  }

  function open(row) {
    const run = data.run === systems.default ? "" : data.run;
    state.set({ ...NEW_SENTENCE, q: row.source, ref: row.reference, v: "look", run }, { push: true });
    announce(`Line ${row.line} opened in Look`);
  }

  options();
  return {
    node,
    load,
    /** The runs have changed: some were evaluated, deleted or begun. */
    refresh() {
      options();
      if ((wanted()?.key ?? null) !== data.key) load();
    },
  };
}

const faults = ({ flags }) => flags.map((flag) => FLAGS[flag] ?? flag).join(", ");
