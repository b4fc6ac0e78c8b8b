/* The help dialog: what the page is, and its keys. Knows no state. */

import { h } from "./dom.js";
import { SHORTCUTS, pageKeys } from "./keys.js";

const ABOUT = [
  ["Look", "Which words the model attends to, and how sure it is of each."],
  ["Search", "How it finds a translation: every step, what was kept and what was pruned."],
  ["Runs", "Several systems side by side, evaluated test sets, and a training under way."],
  ["Learn", "The Transformer step by step, with this sentence's own numbers."],
];

/** Opens the dialog. Focus returns to where it was when the dialog closes. */
export function openHelp() {
  const dialog = document.getElementById("help");
  if (!dialog.childElementCount) {
    dialog.append(
      h(
        "header",
        {},
        h("h2", { id: "help-title" }, "How to use the playground"),
        h("button", { class: "quiet", onclick: () => dialog.close() }, "Close"),
      ),
      h(
        "p",
        {},
        "Type a sentence and it is translated as you type. Click a word of the translation for alternatives, ",
        "or type over it: the model goes on from there.",
      ),
      h(
        "dl",
        { class: "views" },
        ABOUT.map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text))),
      ),
      h("h3", {}, "Keys"),
      h(
        "label",
        {},
        h("input", {
          type: "checkbox",
          checked: pageKeys.on,
          onchange: ({ target }) => (pageKeys.on = target.checked),
        }),
        " single letters, digits and signs work anywhere on the page",
      ),
      h(
        "dl",
        {},
        SHORTCUTS.map(([keys, text]) =>
          h(
            "div",
            {},
            h(
              "dt",
              {},
              keys.split(" ").map((key) => (key === "–" ? " – " : h("kbd", {}, key))),
            ),
            h("dd", {}, text),
          ),
        ),
      ),
    );
  }
  dialog.showModal();
}
