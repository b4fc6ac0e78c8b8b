/* The steps of Learn as sections of one long page: texts, formulas, pictures, numbers, code; and which one is being read.
 *
 * Knows sections and scrolling; what is told and drawn comes from story.js and the drawing modules. Only pictures near
 * the window are drawn; the others wait until they come near.
 */

import { h, onWidth } from "../dom.js";
import { figure } from "../figure.js";
import { feedForward } from "./feed_forward.js";
import { mask, project, scores } from "./head.js";
import { heads } from "./heads.js";
import { add, norm, stream } from "./layer.js";
import { formulasOf } from "./math.js";
import { mix, softmax } from "./mix.js";
import { cross, logits, probability, search } from "./output.js";
import { positions } from "./positions.js";
import { scale } from "./scale.js";
import { stack } from "./stack.js";
import { embedding, pieces } from "./words.js";

const PICTURES = {
  pieces: [pieces, "Pieces and their ids"],
  embedding: [embedding, "From id to vector"],
  positions: [positions, "Positions"],
  stream: [stream, "The stream and its sublayers"],
  norm: [norm, "Layer norm of one vector"],
  project: [project, "Queries, keys, values"],
  scores: [scores, "Dot products"],
  scale: [scale, "Before and after the division"],
  mask: [mask, "Masked scores"],
  softmax: [softmax, "From scores to weights"],
  mix: [mix, "Weighted values"],
  heads: [heads, "The heads of this layer"],
  add: [add, "The sum"],
  feed_forward: [feedForward, "The feed-forward block"],
  stack: [stack, "Layer by layer"],
  cross: [cross, "Who looks where"],
  logits: [logits, "Logits"],
  probability: [probability, "The next piece"],
  search: [search, "The translation, piece by piece"],
};
const AHEAD = 600; // px around the window within which pictures are drawn
const ARRIVED = 120; // px: a step is being read once its top is less than this below the bar

/**
 * @param {{onStep: (id: string) => void,
 *   onKey: (event: KeyboardEvent, id: string) => boolean, extras: Record<string, Node>}} on `extras`: controls of single steps
 */
export function createPages({ onStep, onKey, extras }) {
  const choose = h("select", { "aria-label": "Step", onchange: () => go(choose.value) });
  const turn = (by) => {
    const next = sections[sections.findIndex(({ id }) => id === now) + by];
    if (next) go(next.id);
  };
  const back = h(
    "button",
    { class: "quiet", onclick: () => turn(-1), "aria-label": "Previous step" },
    "‹",
  );
  const on = h(
    "button",
    { class: "quiet", onclick: () => turn(1), "aria-label": "Next step" },
    "›",
  );
  const progress = h("span", { class: "progress", "aria-hidden": "true" });
  const bar = h("nav", { class: "reading", "aria-label": "Steps" }, back, choose, on, progress);
  const list = h("div", { class: "story" });
  const node = h("div", { class: "pages" }, bar, list);
  let sections = [];
  let now = null;
  let goal = null; // the step that the page is scrolling to
  let seen = null;

  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const section = sections.find((one) => one.node === target);
        if (!section) continue;
        section.near = isIntersecting;
        if (isIntersecting) draw(section);
      }
    },
    { rootMargin: `${AHEAD}px 0px` },
  );

  function build(steps) {
    near.disconnect();
    now = null;
    sections = steps.map((step, i) => createSection(step, i, { onKey, extra: extras[step.id] }));
    list.replaceChildren(...sections.map((section) => section.node));
    choose.replaceChildren(
      ...steps.map(({ id, title }, i) => h("option", { value: id }, `${i + 1}. ${title}`)),
    );
    for (const section of sections) near.observe(section.node);
  }

  function draw(section) {
    if (!section.stale || !seen || !list.clientWidth) return;
    section.stale = false;
    section.show(seen(section.width()));
  }

  function show(make) {
    seen = make;
    const view = make(0);
    for (const section of sections) {
      section.tell(view);
      section.stale = true;
      if (section.near || !section.drawn()) draw(section);
    }
  }

  /** Scrolls to a step. `quiet`: only if it is not the first; `unlessThere`: if it is not being read. */
  function go(id, { focus = false, quiet = false, unlessThere = false } = {}) {
    const section = sections.find((one) => one.id === id);
    if (!section || (unlessThere && (id === now || id === goal))) return;
    arrive(id);
    if (quiet && section === sections[0]) return;
    goal = id;
    const still = quiet || matchMedia("(prefers-reduced-motion: reduce)").matches;
    requestAnimationFrame(() =>
      section.node.scrollIntoView({ behavior: still ? "instant" : "smooth", block: "start" }),
    );
    if (focus) section.heading.focus({ preventScroll: true });
  }

  function arrive(id) {
    if (id === now) return;
    now = id;
    const position = sections.findIndex((one) => one.id === id);
    choose.value = id;
    back.setAttribute("aria-disabled", position === 0); // not disabled, which would lose the focus
    on.setAttribute("aria-disabled", position === sections.length - 1);
    progress.style.width = `${(100 * (position + 1)) / sections.length}%`;
    onStep(id);
  }

  /** The last step whose top has passed the bar. */
  function read() {
    if (!list.clientWidth || !sections.length) return;
    const line = bar.getBoundingClientRect().bottom + ARRIVED;
    const passed = sections.filter((section) => section.node.getBoundingClientRect().top < line);
    const end = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const section = end ? sections.at(-1) : (passed.at(-1) ?? sections[0]);
    if (goal && section.id !== goal && !end) return; // still on the way
    arrive(goal && end ? goal : section.id);
  }
  let waiting = false;
  addEventListener(
    "scroll",
    () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        read();
      });
    },
    { passive: true },
  );
  for (const name of ["wheel", "touchmove", "keydown", "scrollend"])
    addEventListener(name, () => (goal = null), { passive: true });

  onWidth(list, () => seen && show(seen));

  return {
    node,
    build,
    show,
    go,
    current: () => now,
  };
}

function createSection({ id, chapter, title, text }, number, { onKey, extra }) {
  const [picture, caption] = PICTURES[id];
  const heading = h("h2", { tabindex: -1 }, h("span", { class: "number" }, number + 1), title);
  const told = h("div", { class: "told" });
  const formulas = h("div", { class: "formulas", role: "group", "aria-label": "Formula" });
  const frame = figure({
    title: caption,
    label: `${caption}. Arrow keys follow another piece or key.`,
    onKey: (event) => onKey(event, id),
  });
  const code = h("details", { class: "code" }, h("summary", {}, "Code"));
  const node = h(
    "section",
    { class: "card step", "aria-label": title, "data-step": id },
    h("p", { class: "chapter" }, chapter),
    heading,
    h("div", { class: "prose" }, told, formulas),
    extra ? h("div", { class: "extra" }, extra) : null,
    frame.node,
    code,
  );
  let [done, formulated, coded] = [false, "", ""];

  return {
    id,
    node,
    heading,
    stale: true,
    near: false,
    drawn: () => done,
    width: () => frame.stage.clientWidth || node.clientWidth - 40,
    tell(view) {
      told.replaceChildren(...text(view).map((sentence) => h("p", {}, sentence)));
      const { model, kind } = view.data;
      const key = JSON.stringify([model, kind]);
      if (key !== formulated) formulas.replaceChildren(...formulasOf(id, model, kind));
      formulas.hidden = !formulas.childElementCount;
      formulated = key;
      const functions = view.data.code[id];
      if (JSON.stringify(functions) !== coded) fillCode(code, functions);
      coded = JSON.stringify(functions);
    },
    show(view) {
      done = true;
      frame.show({ ...picture(view), name: `${number + 1} ${title}` });
    },
  };
}

function fillCode(details, functions) {
  const summary = h(
    "summary",
    {},
    "Code: ",
    functions.map(({ file, function: name }, i) => [
      i ? ", " : "",
      h("code", {}, `${file.replace("src/endeavour/", "")} ${name}`),
    ]),
  );
  const listings = functions.map(({ file, line, source }) => [
    h("p", { class: "hint" }, `${file}, line ${line}`),
    h("pre", { tabindex: 0, role: "group", "aria-label": `${file}, line ${line}` }, h("code", {}, source)),
  ]);
  details.replaceChildren(summary, ...listings.flat());
}
