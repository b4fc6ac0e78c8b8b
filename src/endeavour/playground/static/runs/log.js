/* One run's log as it grows: its lines by kind, followed until the run ends.
 *
 * Knows /api/log and what kinds of lines there are; a run that is resumed starts its log anew. Tells its listener at most a
 * few times a second.
 */

import { events, overtaken } from "../api.js";

const PAUSE = 120; // ms between two drawings
const RETRY = 2000; // ms after the connection was lost

const empty = () => ({
  train: [],
  validation: [],
  attention: [],
  samples: [],
  damaged: 0,
  ended: false,
  lost: null,
  told: undefined, // by the listener: how many validations it has announced
});

/**
 * @param {string} run
 * @param {(log: object) => void} onChange
 * @returns {{run: string, train: object[], validation: object[], attention: object[], samples: object[],
 *   damaged: number, ended: boolean, lost: string | null, close: () => void}} `damaged` lines could not be read
 */
export function followLog(run, onChange) {
  const log = { run, ...empty() };
  const controller = new AbortController();
  let waiting = 0;

  function changed() {
    if (!waiting)
      waiting = setTimeout(() => {
        waiting = 0;
        if (!controller.signal.aborted) onChange(log);
      }, PAUSE);
  }

  function take(name, data) {
    if (name === "reset") Object.assign(log, empty());
    else if (name === "end") log.ended = true;
    else if (name === "damaged") log.damaged++;
    else if (name === "line" && Array.isArray(log[data.kind])) log[data.kind].push(data);
    changed();
  }

  async function follow() {
    while (!controller.signal.aborted && !log.ended) {
      try {
        await events(`/api/log?${new URLSearchParams({ run })}`, {
          signal: controller.signal,
          onEvent: take,
        });
        if (log.ended) return;
        log.lost = "the connection ended";
      } catch (error) {
        if (overtaken(error)) return;
        log.lost = error.message;
        if (error.status >= 400 && error.status < 500) break;
      }
      changed();
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
    changed();
  }

  follow();
  log.close = () => {
    controller.abort();
    clearTimeout(waiting);
  };
  return log;
}
