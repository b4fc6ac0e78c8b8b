/* All heads at a glance: for each kind of attention a grid of small pictures, layers downwards and heads across, with
 * the mean of each layer's heads at its end and the entropy beneath each.
 *
 * Knows the answer of /api/attention; choosing one is reported. Pictures are canvases: a base model has 144 heads.
 */

import { h } from "../dom.js";
import { el, svg, tableOf, text } from "../drawing.js";
import { figure } from "../figure.js";
import { bits } from "../format.js";
import { modified } from "../keys.js";
import { average, entropy, KINDS } from "./maps.js";

const [SIDE, PITCH] = [52, 72]; // px in a file: a picture, and from one to the next

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
  const all = figure({ title: "All heads", label: "All heads of all layers" });
  all.stage.removeAttribute("tabindex"); // its pictures take the keyboard
  const kinds = h(
    "div",
    { class: "kinds" },
    Object.values(grids).map(({ node }) => node),
  );
  root.append(all.node, saliency);
  let drawn = [];

  function grid(kind) {
    const cells = h("div", { class: "heads", role: "toolbar", "aria-label": `${KINDS[kind].name}: heads` });
    cells.addEventListener("keydown", (event) => move(event, kind, cells));
    return { cells, node: h("section", {}, h("h4", {}, KINDS[kind].name), cells) };
  }

  function move(event, kind, cells) {
    const columns = Number(cells.dataset.columns);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (!step || modified(event)) return;
    event.preventDefault();
    const thumbs = [...cells.querySelectorAll("button")];
    thumbs[thumbs.indexOf(document.activeElement) + step]?.focus();
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
    drawn.push({ kind, layer, head, name, spread, canvas, values });
    return node;
  }

  function show(attention, sentence) {
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
        ...layers.flatMap((own, layer) => [
          h("span", { class: "layer", "aria-hidden": "true" }, layer + 1),
          ...own.map((values, head) => thumb(kind, layer, head, values)),
          thumb(kind, layer, "avg", average(own)),
        ]),
      );
    }
    all.show({
      graphic: kinds,
      svg: () => picture(drawn),
      table: () => table(drawn),
      json: attention,
      note: sentence,
    });
    paint(); // in the colour that they have on the page
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
      const thumbs = [...cells.querySelectorAll("button")];
      for (const node of thumbs) {
        const chosen = here && node.dataset.place === `${layer} ${head}`;
        node.setAttribute("aria-pressed", chosen);
        node.tabIndex = chosen ? 0 : -1;
      }
      if (!here && thumbs.length) thumbs[0].tabIndex = 0;
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

function table(drawn) {
  const rows = drawn.map(({ kind, layer, name, spread }) => [
    KINDS[kind].name,
    layer + 1,
    name,
    spread.toFixed(3),
  ]);
  return tableOf(rows, ["Attention", "Layer", "Head", "Entropy (bits)"]);
}

/** All pictures in one, for files. */
function picture(drawn) {
  let [x, y] = [0, -PITCH];
  const small = (left, top, content) => text(left, top, content, { kind: "heading", dy: 0 });
  const parts = drawn.map(({ kind, layer, head, name, spread, canvas }) => {
    [x, y] = head === 0 ? [24, y + PITCH + (layer ? 0 : 44)] : [x + PITCH, y];
    const place = { x, y, width: SIDE, height: SIDE };
    const pixels = { href: canvas.toDataURL(), preserveAspectRatio: "none", "image-rendering": "pixelated" };
    return [
      head === 0 && small(0, y + SIDE / 2, layer + 1),
      layer === 0 && head === 0 && text(0, y - 26, KINDS[kind].name, { kind: null, dy: 0 }),
      layer === 0 && small(x, y - 8, name),
      el("rect", { ...place, class: "frame", fill: "none" }),
      el("image", { ...place, ...pixels }),
      small(x, y + SIDE + 13, spread.toFixed(1)),
    ];
  });
  return svg(x + PITCH + 32, y + PITCH, parts);
}
