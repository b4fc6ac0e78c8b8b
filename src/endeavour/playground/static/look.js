/* The Look view: what the model attends to while it reads and writes, and how sure it is of each word.
 *
 * Knows the chosen translation's analysis, attention and saliency; its parts, in look/, do not know each other.
 */

import { overtaken } from "./api.js";
import { h, onWidth, segments } from "./dom.js";
import { figure } from "./figure.js";
import { bits, decimal, percent } from "./format.js";
import { TURNS } from "./keys.js";
import { createHabits } from "./look/habits.js";
import { createHeads } from "./look/heads.js";
import { createLarge } from "./look/large.js";
import { chosenMap, entropy, headOf, layerOf } from "./look/maps.js";
import { createStrip, piecesTable, surprisalGraphic } from "./look/strip.js";
import { tableOf } from "./drawing.js";
import { report } from "./messages.js";

/** See app.js for what a view is handed and what it returns. */
export function mount(root, context) {
  const { state, search, results } = context;
  let numbers = null; // {analysis, attention, saliency} of what is shown
  let map = null;
  let kept = null; // what stays lit without a pointer: [row, column]
  let keptIn = null; // what its numbers count

  const joined = segments("Units", ["Pieces", "Words"], (i) => state.set({ words: i === 1 }));
  const summary = h("p", { class: "hint" });
  const pieces = figure({
    title: "How sure the model is",
    label: "Source and target, piece by piece",
    tools: [joined.node],
  });
  pieces.stage.removeAttribute("tabindex"); // its chips take the keyboard
  const strips = h("div", { class: "strips" });
  const strip = createStrip(strips, {
    onHover: (side, i) => light(...placeOf(side, i)),
    onChoose: (side, i) => keep(...placeOf(side, i)),
  });
  pieces.node.insertBefore(summary, pieces.stage);

  const overview = h("div", { class: "card overview" });
  const heads = createHeads(overview, (choice) => state.set(choice));
  const title = h("h3", { class: "title", "aria-live": "polite" });
  const spread = h("p", { class: "hint" });
  const halves = h("div", { class: "halves" });
  const large = createLarge(halves, { onHover: light, onChoose: keep });
  const habits = createHabits(halves);
  root.append(
    h("div", { class: "card" }, pieces.node),
    h(
      "div",
      { class: "look" },
      overview,
      h("div", { class: "card large" }, h("header", {}, title, spread), halves),
    ),
  );

  /** Where a chip stands in the map: [row, column], nulls where it does not. */
  function placeOf(side, i) {
    if (i === null || !map) return [null, null];
    const { rowSide, columnSide } = map.map;
    if (side === rowSide) return [i, null];
    return [null, side === columnSide ? i : null];
  }
  function keep(row, column) {
    kept = kept && kept[0] === row && kept[1] === column ? null : [row, column];
    light(row, column);
  }

  function light(row, column) {
    if (row === null && column === null && kept) [row, column] = kept;
    large.highlight(row, column);
    if (!map) return;
    const { rowSide, columnSide } = map.map;
    const weights = row === null ? null : map.values[row];
    // A row of the decoder looks back at what was written before, one place to the left; BOS has no chip.
    const side = columnSide === "written" ? "target" : columnSide;
    const shifted = columnSide === "written" ? weights?.slice(1) : weights;
    if (row !== null) strip.highlight(rowSide, row, side, shifted);
    else strip.highlight(side, columnSide === "written" && column !== null ? column - 1 : column, null, null);
  }

  async function load() {
    const asked = [
      results.analysis(),
      results.attention(),
      state.get().map === "saliency" ? results.saliency() : null,
    ];
    if (!asked[0]) return;
    root.classList.add("stale");
    try {
      const [analysis, attention, saliency] = await Promise.all(asked);
      if (asked[0] !== results.analysis()) return; // another translation was chosen meanwhile
      const fresh = numbers?.attention !== attention;
      numbers = { analysis, attention, saliency };
      if (fresh) heads.show(attention, `${state.get().q} → ${analysis.text}`);
      root.classList.remove("stale");
      draw(fresh);
    } catch (error) {
      if (!overtaken(error)) report(error.message);
    }
  }

  function draw(fresh) {
    const current = state.get();
    const { analysis, attention } = numbers;
    const saliency = current.map === "saliency" ? numbers.saliency : null;
    map = { ...chosenMap(current, attention, saliency), sentence: `${current.q} → ${analysis.text}` };
    const counted = [map.map.rowSide, map.map.columnSide, current.words].join();
    if (fresh || counted !== keptIn) kept = null;
    keptIn = counted;
    joined.press(current.words ? 1 : 0);
    strip.show(analysis, current.words);
    showSummary(analysis);
    pieces.show({
      graphic: strips,
      svg: () => surprisalGraphic(analysis, current.words),
      json: analysis,
      note: map.sentence,
      table: () => tableOf(...piecesTable(analysis), map.sentence),
      name: "Surprisal",
    });
    heads.mark(current.kind, layerOf(current, attention), headOf(current, attention), Boolean(saliency));
    title.textContent = map.title;
    const mean = entropy(map.values);
    const each = current.words ? "word" : "piece";
    spread.textContent = `Mean entropy ${bits(mean)}: each ${each} ${map.map.verb} about ${decimal(2 ** mean, 1)} places.`;
    large.show(map);
    habits.show(map);
    light(null, null);
  }

  function showSummary({ log_probability: total, score, perplexity }) {
    summary.textContent = [
      `The whole translation has the probability ${percent(Math.exp(total))}, score ${decimal(score)},`,
      `perplexity ${decimal(perplexity)} a piece. The stronger the colour, the more a piece surprised the model.`,
    ].join(" ");
  }

  /** `by` layers or heads onwards. */
  function turn(key, by) {
    const current = state.get();
    if (!numbers || current.map === "saliency") return;
    const layers = numbers.attention[current.kind];
    const order = key === "layer" ? layers.map((_, i) => i) : [...layers[0].map((_, i) => i), "avg"];
    const now = key === "layer" ? layerOf(current, numbers.attention) : headOf(current, numbers.attention);
    state.set({ [key]: order[(order.indexOf(now) + by + order.length) % order.length] });
  }

  onWidth(halves, () => map && draw(false));
  search.subscribe(({ done, stale, status }) => {
    if (stale || status === "idle") root.classList.add("stale");
    else if (done && state.get().v === "look") load();
  });

  return {
    update: (_, changed) =>
      ["v", "t", "kind", "layer", "head", "map", "words"].some((key) => changed.has(key)) && load(),
    key({ key }) {
      if (TURNS[key]) turn(...TURNS[key]);
      else if (key === "Escape" && kept) {
        kept = null;
        light(null, null);
      } else return false;
      return true;
    },
  };
}
