/* All heads at a glance: for each kind of attention a grid of small pictures, layers downwards and heads across, with
 * the mean of each layer's heads at its end and the entropy beneath each.
 *
 * Knows the answer of /api/attention; choosing one is reported. Pictures are canvases: a base model has 144 heads.
 */

import { h } from "../dom.js";
import { bits } from "../format.js";
import { average, entropy, KINDS } from "./maps.js";

/**
 * @param {HTMLElement} root
 * @param {(choice: {map: string, kind?: string, layer?: number, head?: number | "avg"}) => void} onChoose
 */
export function createHeads(root, onChoose) {
  const grids = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, grid(kind)]));
  const saliency = h(
    "button",
    { class: "plain saliency", onclick: () => onChoose({ map: "saliency" }) },
    h("b", {}, "Gradient saliency"),
    h("small", {}, "which source words a target word depends on"),
  );
  root.append(...Object.values(grids).map(({ node }) => node), saliency);
  let drawn = [];

  function grid(kind) {
    const cells = h("div", { class: "heads", role: "toolbar", "aria-label": `${KINDS[kind].name}: heads` });
    cells.addEventListener("keydown", (event) => move(event, kind, cells));
    return { cells, node: h("section", {}, h("h4", {}, KINDS[kind].name), cells) };
  }

  function move(event, kind, cells) {
    const columns = Number(cells.dataset.columns);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const all = [...cells.querySelectorAll("button")];
    all[all.indexOf(document.activeElement) + step]?.focus();
  }

  function thumb(kind, layer, head, values) {
    const spread = entropy(values);
    const name = head === "avg" ? "mean of all heads" : `head ${head + 1}`;
    const canvas = h("canvas", { width: values[0].length, height: values.length });
    const choose = () => onChoose({ map: "attention", kind, layer, head });
    const node = h(
      "button",
      {
        class: "thumb",
        tabindex: -1,
        "data-place": `${layer} ${head}`,
        onclick: choose,
        "aria-label": `Layer ${layer + 1}, ${name}, entropy ${bits(spread)}`,
        title: `layer ${layer + 1}, ${name}\nentropy ${bits(spread)}`,
      },
      canvas,
      h("small", { "aria-hidden": "true" }, spread.toFixed(1)),
    );
    drawn.push({ canvas, values });
    return node;
  }

  function show(attention) {
    drawn = [];
    for (const [kind, { cells }] of Object.entries(grids)) {
      const layers = attention[kind];
      const heads = layers[0].length;
      cells.dataset.columns = heads + 1;
      cells.style.setProperty("--columns", heads + 1);
      const corner = h("span", { class: "column" });
      const names = layers[0].map((_, i) => h("span", { class: "column", "aria-hidden": "true" }, i + 1));
      cells.replaceChildren(
        corner,
        ...names,
        h("span", { class: "column", "aria-hidden": "true" }, "mean"),
        ...layers.flatMap((all, layer) => [
          h("span", { class: "layer", "aria-hidden": "true" }, layer + 1),
          ...all.map((values, head) => thumb(kind, layer, head, values)),
          thumb(kind, layer, "avg", average(all)),
        ]),
      );
    }
    paint();
  }

  function paint() {
    if (!drawn.length) return;
    const colour = getComputedStyle(drawn[0].canvas)
      .color.match(/[\d.]+/g)
      .slice(0, 3)
      .map(Number);
    for (const { canvas, values } of drawn) draw(canvas, values, colour);
  }
  addEventListener("themechange", paint);

  /** Marks what the large picture shows; the marked one of each kind is in the tab order. */
  function mark(kind, layer, head, isSaliency) {
    saliency.setAttribute("aria-pressed", isSaliency);
    for (const [name, { cells }] of Object.entries(grids)) {
      const here = name === kind && !isSaliency;
      const all = [...cells.querySelectorAll("button")];
      for (const node of all) {
        const chosen = here && node.dataset.place === `${layer} ${head}`;
        node.setAttribute("aria-pressed", chosen);
        node.tabIndex = chosen ? 0 : -1;
      }
      if (!here && all.length) all[0].tabIndex = 0;
    }
  }
  return { show, mark };
}

function draw(canvas, values, [red, green, blue]) {
  const image = new ImageData(canvas.width, canvas.height);
  values.forEach((row, i) =>
    row.forEach((value, j) =>
      image.data.set([red, green, blue, Math.round(255 * Math.min(1, value))], 4 * (i * canvas.width + j)),
    ),
  );
  canvas.getContext("2d").putImageData(image, 0, 0);
}
