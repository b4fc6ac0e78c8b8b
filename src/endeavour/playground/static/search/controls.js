/* Beam size, length penalty, and the time of the search, which can be played.
 *
 * Knows the state's keys beam and lp; the time is the caller's.
 */

import { h } from "../dom.js";
import { NEW_SEARCH } from "../state.js";

const BEAMS = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20];
const TICK = 450; // ms a step when it is played

/** The two settings of the search, which change it as they are moved. */
export function createSettings({ state, systems }) {
  const beam = slider("Beam size", { min: 0, max: BEAMS.length - 1, step: 1 }, (i) =>
    state.set({ ...NEW_SEARCH, beam: BEAMS[i] }),
  );
  const penalty = slider("Length penalty α", { min: 0, max: 3, step: 0.05 }, (lp) =>
    state.set({ ...NEW_SEARCH, lp }),
  );
  const reset = h(
    "button",
    {
      class: "quiet",
      onclick() {
        beam.node.querySelector("input").focus(); // this button goes
        state.set({ ...NEW_SEARCH, beam: null, lp: null }, { push: true });
      },
    },
    "As the model was configured",
  );
  const node = h("div", { class: "settings" }, beam.node, penalty.node, reset);

  function update() {
    const { run, beam: chosenBeam, lp } = state.get();
    const own = systems.decoding(run);
    const size = chosenBeam ?? own.beam_size;
    beam.show(
      BEAMS.findLastIndex((one) => one <= size),
      String(size),
    );
    penalty.show(lp ?? own.length_penalty, String(lp ?? own.length_penalty));
    reset.hidden = size === own.beam_size && (lp ?? own.length_penalty) === own.length_penalty;
  }
  return { node, update };
}

function slider(name, range, onInput) {
  const input = h("input", { type: "range", ...range, oninput: () => onInput(Number(input.value)) });
  const value = h("output", {});
  const node = h("label", { class: "slider" }, h("span", {}, name), input, value);
  return {
    node,
    show(position, text) {
      if (document.activeElement !== input || Number(input.value) !== position) input.value = position;
      input.setAttribute("aria-valuetext", text);
      value.textContent = text;
    },
  };
}

/**
 * A slider over the steps of a search, with buttons to play it and to go step by step.
 *
 * @param {(time: number) => void} onTime
 * @returns {{node: HTMLElement, show: (time: number, last: number) => void, stop: () => void}}
 */
export function createTime(onTime) {
  let [time, last, timer] = [0, 0, 0];
  const button = (name, sign, action) =>
    h(
      "button",
      { class: "quiet sign", "aria-label": name, title: name, onclick: action },
      h("span", { "aria-hidden": "true" }, sign),
    );
  const input = h("input", {
    type: "range",
    min: 0,
    "aria-label": "Step of the search",
    oninput: () => (stop(), onTime(Number(input.value))),
  });
  const text = h("output", {});
  const play = button("Play", "\u25B6", () => (timer ? stop() : start()));
  const back = button("One step back", "\u2039", () => go(-1));
  const on = button("One step on", "\u203A", () => go(1));
  const node = h("div", { class: "time" }, play, back, input, on, text);

  function label(text, sign) {
    play.firstChild.textContent = sign;
    play.title = text;
    play.setAttribute("aria-label", text);
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    label("Play", "\u25B6");
  }
  function start() {
    if (time >= last) onTime(0);
    timer = setInterval(() => (time < last ? onTime(time + 1) : stop()), TICK);
    label("Pause", "\u275A\u275A");
  }
  function go(by) {
    stop();
    onTime(Math.min(last, Math.max(0, time + by)));
  }
  function show(now, end) {
    [time, last] = [now, end];
    input.max = end;
    input.value = now;
    input.setAttribute("aria-valuetext", `step ${now} of ${end}`);
    text.textContent = `step ${now} of ${end}`;
    back.setAttribute("aria-disabled", now <= 0); // not disabled, which would lose the focus
    on.setAttribute("aria-disabled", now >= end);
  }
  return { node, show, stop };
}
