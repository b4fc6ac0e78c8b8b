/* The runs that the server offers, by name and by checkpoint.
 *
 * Knows the answer of /api/runs; not what is done with a system.
 */

import { h } from "./dom.js";
import { thousands } from "./format.js";

const LANGUAGES = new Intl.DisplayNames("en", { type: "language" });
const compact = (count) =>
  new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 }).format(count);
const CHECKPOINT = /@\d+$/;
const FALLBACK = { beam_size: 5, length_penalty: 0.6 }; // of a run that has none, because it is gone

/** What the BLEU of a run is called: that of lowercased text is another than that of text with capitals. */
export const bleuName = (lowercase) => (lowercase ? "BLEU, lowercased," : "BLEU");

/** How words are compared with a run's translations: by one that writes no capitals, without them. */
export const foldOf = (run) => (run?.lowercase ? (word) => word.toLowerCase() : (word) => word);

/** @param {{default: string, runs: object[], damaged: string[]}} offered the answer of /api/runs */
export function createSystems(offered) {
  const listeners = [];
  const named = (wanted) => systems.runs.find(({ name }) => name === wanted) ?? null;
  function runOf(system) {
    const name = system || systems.default || "";
    return named(name) ?? named(name.replace(CHECKPOINT, "")); // a run's own name may hold the sign
  }
  const systems = {
    ...offered,
    /** Takes a later answer; returns whether it says something else. Then listeners get the runs of the last one. */
    update(fresh) {
      if (JSON.stringify(fresh) === JSON.stringify(offered)) return false;
      const before = systems.runs;
      Object.assign(systems, (offered = fresh));
      for (const listener of listeners) listener(before);
      return true;
    },
    subscribe(listener) {
      listeners.push(listener);
    },
    /** The run of a system, null if there is none of that name. */
    runOf,
    /** What changes when the name of a system stands for other weights than before. */
    weights(system) {
      const name = system || systems.default;
      return JSON.stringify([name, named(name)?.weights]); // of a checkpoint they stay the same
    },
    /** Beam size and length penalty that a system's run is configured with. */
    decoding: (system) => runOf(system)?.decoding ?? FALLBACK,
    /** The two languages of a system: [{code, name}, {code, name}]. */
    languages: (system) =>
      (runOf(system)?.direction ?? "en-de").split("-").map((code) => ({ code, name: LANGUAGES.of(code) })),
    /** A line about a system for people, and a longer one. */
    facts(system) {
      const run = runOf(system);
      if (!run) return ["", ""];
      const { model, name, bleu, lowercase } = run;
      const whole = name === (system || systems.default); // a checkpoint has other scores
      const joined = (sign, ...parts) => parts.filter(Boolean).join(sign);
      // Unknown until there are weights.
      const parameters = (format) => model.parameters !== null && `${format(model.parameters)} parameters`;
      return [
        joined(
          " · ",
          joined(", ", model.name, parameters(compact)),
          whole && bleu !== null && `${bleuName(lowercase)} ${bleu.toFixed(1)}`,
          run.training && "still training",
        ),
        joined(
          ", ",
          `${model.encoder_layers} encoder and ${model.decoder_layers} decoder layers`,
          `${model.num_heads} heads`,
          `width ${model.width}`,
          `${model.positions} positions`,
          `${model.norm}-norm`,
          parameters(thousands),
        ),
      ];
    },
    /** Options of a select element: each run, with its newest weights, and each of its checkpoints. */
    options: () =>
      systems.runs.map(({ name, checkpoints }) =>
        h(
          "optgroup",
          { label: name },
          h("option", { value: name }, name),
          checkpoints.map((update) =>
            h("option", { value: `${name}@${update}` }, `${name} @ ${thousands(update)} updates`),
          ),
        ),
      ),
  };
  return systems;
}
