/* The systems that translate the same sentence, as a list: each with its translation, where it parts, and its score.
 *
 * Knows what each found; not how it was asked.
 */

import { marked, partingStep, wordAt } from "../diff.js";
import { bar, h } from "../dom.js";
import { decimal, percent } from "../format.js";
import { systemTitle } from "./systems.js";

/**
 * @param {{onPick: (position: number) => void, onRemove: (system: object) => void,
 *   languageOf: (name: string) => string, next: {focus: () => void}}} on
 *   `next` gets the focus when the last button here goes
 * @returns {{node: HTMLElement, show: (found: object[], other: number) => void}} `found`: {system, letter, hypothesis,
 *   milliseconds, error} of each, the page's first; `other`: which is compared with the first
 */
export function createSystemList({ onPick, onRemove, languageOf, next }) {
  const node = h("ol", { class: "systems" });

  function show(found, other) {
    const best = Math.max(...found.map(({ hypothesis }) => hypothesis?.score ?? -Infinity));
    const focused = node.contains(document.activeElement) ? document.activeElement : null;
    const position = [...node.children].findIndex((one) => one.contains(focused));
    node.replaceChildren(
      ...found.map((entry, i) => {
        const buttons = [
          i && entry.hypothesis && found.length > 2 ? pickButton(i, i === other) : null,
          i ? removeButton(entry.system) : null,
        ];
        const against = found[i ? 0 : other]?.hypothesis ?? entry.hypothesis;
        return row(entry, { main: !i, chosen: i === other, buttons, against, best });
      }),
    );
    if (!focused) return;
    const again = [...node.children[Math.min(position, found.length - 1)].querySelectorAll("button")];
    (again.find((button) => button.textContent === focused.textContent) ?? again[0] ?? next).focus();
  }

  const pickButton = (position, pressed) =>
    h(
      "button",
      { class: "quiet", "aria-pressed": String(pressed), onclick: () => onPick(position) },
      "Compare with A",
    );
  const removeButton = (system) =>
    h(
      "button",
      { class: "quiet", "aria-label": `Remove ${systemTitle(system)}`, onclick: () => onRemove(system) },
      "Remove",
    );

  function row(entry, { main, chosen, buttons, against, best }) {
    const { system, letter, hypothesis, error } = entry;
    return h(
      "li",
      { class: [chosen && "chosen"] },
      h("span", { class: "letter", "aria-hidden": "true" }, letter),
      h(
        "div",
        {},
        h("p", { class: "name" }, systemTitle(system), main ? " (the page’s)" : null, buttons),
        error
          ? h("p", { class: "problem" }, error)
          : h(
              "p",
              { class: "text", lang: languageOf(system.name) },
              hypothesis ? words(hypothesis, against) : "…",
            ),
        h("p", { class: "measures" }, hypothesis ? measures(entry, best) : null),
      ),
    );
  }
  return { node, show };
}

/** A translation with those words marked that the other has not, and the first of them once more. */
function words({ text, pieces }, against) {
  const step = partingStep(against.pieces, pieces);
  const first = step === null ? -1 : wordAt(pieces, step);
  return marked(text, against.text, {
    mark: (word, i) => h("mark", { class: i === first ? "first" : null }, word),
  });
}

function measures({ hypothesis: { score, log_probability: total }, milliseconds }, best) {
  return [
    bar(Math.exp(score - best)),
    h("span", {}, `score ${decimal(score, 3)}`),
    h("span", {}, `probability ${percent(Math.exp(total))}`),
    milliseconds ? h("span", {}, `${Math.round(milliseconds)} ms`) : null,
  ];
}
