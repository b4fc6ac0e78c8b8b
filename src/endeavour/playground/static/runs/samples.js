/* Sample translations of one validation: what a training writes by now, beside the references.
 *
 * Knows a line of the log; not which one is chosen.
 */

import { marked } from "../diff.js";
import { h, scrollRegion } from "../dom.js";
import { thousands } from "../format.js";

const MOST = 6; // pairs

/** @returns {{node: HTMLElement, show: (line: object | undefined, languages: {code: string}[],
 *   fold: (word: string) => string) => void}} `fold`: what of a word is compared */
export function createSamples() {
  const rows = h("tbody");
  const title = h("h3");
  const node = scrollRegion(
    "samples",
    "Sample translations",
    title,
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...["source", "translation", "reference"].map((name) => h("th", { scope: "col" }, name)))),
      rows,
    ),
    h("p", { class: "hint" }, "Underlined: words that the reference does not have there."),
  );

  function show(line, languages, fold) {
    node.hidden = !line;
    if (!line) return;
    title.textContent = `Sample translations, update ${thousands(line.update)}`;
    const [{ code: from }, { code: to }] = languages;
    const cell = (lang, text) => h("td", { lang }, text);
    rows.replaceChildren(
      ...line.samples
        .slice(0, MOST)
        .map(([source, translation, reference]) =>
          h("tr", {}, cell(from, source), cell(to, marked(translation, reference, { mark, fold })), cell(to, reference)),
        ),
    );
  }

  return { node, show };
}

const mark = (word) => h("u", {}, word);
