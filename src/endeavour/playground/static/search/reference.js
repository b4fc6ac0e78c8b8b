/* Any translation, scored: piece by piece, in comparison with what the search found, and where it left the beam.
 *
 * Knows the state's key ref and the search's answer about it.
 */

import { h } from "../dom.js";
import { strength } from "../look/strip.js";
import { decimal, ordinal, percent, pieceName } from "../format.js";

/**
 * @param {HTMLElement} root
 * @param {object} context
 */
export function createReference(root, { state, search }) {
  const field = h("input", {
    type: "text",
    id: "reference",
    autocomplete: "off",
    spellcheck: "false",
  });
  const verdict = h("p", { class: "verdict", "aria-live": "polite" });
  const pieces = h("ol", { class: "scored", "aria-label": "Pieces of the translation" });
  const clear = h(
    "button",
    {
      class: "quiet",
      onclick() {
        field.value = "";
        field.focus(); // this button goes
        state.set({ ref: "" }, { push: true });
      },
    },
    "Clear",
  );
  const submit = () =>
    field.value.trim() !== state.get().ref && state.set({ ref: field.value.trim() }, { push: true });
  const form = h(
    "form",
    { onsubmit: (event) => (event.preventDefault(), submit()) },
    h("label", { for: "reference" }, "Score a translation"),
    field,
    h("button", { type: "submit", class: "strong" }, "Score"),
    clear,
  );
  root.append(form, verdict, pieces);

  function update() {
    const { ref, q } = state.get();
    if (document.activeElement !== field) field.value = ref;
    const lang = (field.lang = document.getElementById("output").lang);
    clear.hidden = !ref;
    const { reference, hypotheses, done } = search.current;
    if (!ref || !q) {
      verdict.textContent =
        "Its score, its place among those that were found, and the step at which the search lost it.";
      pieces.replaceChildren();
    } else if (done && reference) {
      const { error, pieces: scored = [], left_at: step } = reference;
      verdict.replaceChildren(...(error ? [error] : judged(reference, hypotheses)));
      pieces.replaceChildren(...scored.map((piece, i) => scoredPiece(piece, lang, i + 1 === step)));
    }
  }
  return { update };
}

function judged({ score, log_probability: total, left_at: step, why }, hypotheses) {
  const better = hypotheses.filter((one) => one.score > score + 1e-5).length;
  const best = hypotheses[0]?.score ?? score;
  let place = `${ordinal(better + 1)} of all`;
  if (better === hypotheses.length) place = `behind all ${better} that were found`;
  else if (score > best + 1e-5) place = "better than all that were found";
  return [
    h("strong", {}, `Score ${decimal(score, 3)}`),
    ` · log-probability ${decimal(total, 3)} · ${place} (the best has ${decimal(best, 3)}). `,
    step === null ? `It was ${why}.` : `It left the beam at step ${step}: ${why}.`,
  ];
}

function scoredPiece({ piece, log_probability: value, surprisal, rank, alternatives }, lang, left) {
  const better = h("span", { lang }, pieceName(alternatives[0]?.piece ?? ""));
  const node = h(
    "li",
    { class: ["chip", left && "left"] },
    h("b", { lang }, pieceName(piece)),
    h("span", {}, percent(Math.exp(value))),
    h("small", {}, rank ? [`${ordinal(rank + 1)}, after `, better] : "1st"),
    left ? h("small", { class: "flag" }, "left the beam") : null,
  );
  node.style.setProperty("--surprisal", `${Math.round(100 * strength(surprisal))}%`);
  return node;
}
