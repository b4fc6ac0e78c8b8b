/* One run's log as it grows: its lines by kind, asked for again and again until the run ends.
 *
 * Knows /api/log and what kinds of lines there are; a run that is resumed starts its log anew. No connection is held:
 * browsers open six to a server, for all windows together.
 */

import { get, overtaken } from "../api.js";

const PAUSE = 1000; // ms until the log is asked for what is new

const empty = () => ({
  train: [],
  validation: [],
  attention: [],
  samples: [],
  damaged: 0,
  ended: false,
  told: undefined, // by the listener: how many validations it has announced
});

/**
 * @param {string} run
 * @param {(log: object) => void} onChange
 * @returns {{run: string, train: object[], validation: object[], attention: object[], samples: object[],
 *   damaged: number, ended: boolean, lost: string | null, close: () => void}} `damaged` lines could not be read;
 *   `lost`: why the log cannot be asked for
 */
export function followLog(run, onChange) {
  const controller = new AbortController();
  const { signal } = controller;
  const log = { run, ...empty(), lost: null, close: () => controller.abort() };

  function take({ anew, lines, ended }) {
    if (anew) Object.assign(log, empty());
    for (const line of lines) {
      if (line === null) log.damaged++;
      else if (Array.isArray(log[line.kind])) log[line.kind].push(line);
    }
    const changed = lines.length || ended || log.lost;
    Object.assign(log, { ended, lost: null });
    if (changed) onChange(log);
  }

  async function follow() {
    let part = { after: "" };
    while (!signal.aborted && !log.ended) {
      try {
        part = await get(`/api/log?${new URLSearchParams({ run, after: part.after })}`, { signal });
        take(part);
        if (part.more) continue;
      } catch (error) {
        if (overtaken(error)) return;
        log.lost = error.message;
        onChange(log);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  follow();
  return log;
}
