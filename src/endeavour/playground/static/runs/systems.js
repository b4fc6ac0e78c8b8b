/* The systems that are compared, as the state's key `w` writes them: further runs or checkpoints, each with its own beam
 * size if it is not to decode as it was configured.
 *
 * Knows names and the key's form; not what a system translates.
 */

import { thousands } from "../format.js";

const NONE = "-"; // chosen by hand: no further system

/** A name as it may stand in the list: without the list's own signs. */
const escaped = (name) =>
  encodeURIComponent(name).replace(/[~.]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);

/** `w` as [{name, beam}]; beam is null where it is the run's own. */
export function parseSystems(w) {
  if (!w || w === NONE) return [];
  return w.split(",").flatMap((entry) => {
    const [name, beam] = entry.split("~");
    try {
      return [{ name: decodeURIComponent(name), beam: Number(beam) > 0 ? Math.round(Number(beam)) : null }];
    } catch {
      return []; // an address cut off within an escape
    }
  });
}

/** The inverse of `parseSystems`. */
export const printSystems = (systems) =>
  systems.map(({ name, beam }) => escaped(name) + (beam ? `~${beam}` : "")).join(",") || NONE;

/** What is compared with a system when nobody has chosen: its first checkpoint, or itself with a beam of 1. */
export function suggested(main, systems) {
  const run = systems.runOf(main);
  if (!run) return [];
  const [first] = run.checkpoints;
  const early = first === undefined ? null : `${run.name}@${first}`;
  if (early && early !== main) return [{ name: early, beam: null }];
  return systems.decoding(main).beam_size > 1 ? [{ name: main || run.name, beam: 1 }] : [];
}

/** A system's name for people. */
export function systemTitle({ name, beam }) {
  const [, run, update] = /^(.*?)(?:@(\d+))?$/s.exec(name);
  return [
    run,
    update && `@ ${thousands(Number(update))} updates`,
    beam && (beam === 1 ? "greedy" : `beam ${beam}`),
  ]
    .filter(Boolean)
    .join(" ");
}

/** The same system, decoded the same way. */
export const sameSystem = (a, b) => a.name === b.name && a.beam === b.beam;
