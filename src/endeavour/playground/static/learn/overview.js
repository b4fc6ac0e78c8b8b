/* The map of the model: encoder on the left, decoder on the right, read from the bottom up; every block leads to its step.
 *
 * Knows the model's description and where blocks stand; not what the steps tell.
 */

import { roving, setRoving } from "../keys.js";
import { el, rect, stroke, text } from "../drawing.js";

const [WIDTH, COLUMN, LOW] = [296, 141, 26]; // px: the map, one side of it, a low block
const [ENCODER, DECODER] = [1, 154]; // left edges
const SUBLAYER = 32;
const LANE = COLUMN / 2 + 7; // where the stream runs, from a column's left edge

/**
 * @param {(step: string, kind: string | null) => void} onChoose
 * @returns {{node: SVGElement, show: (model: object) => void, mark: (step: string, kind: string, layer: number) => void}}
 */
export function createOverview(onChoose) {
  const node = el("svg", {
    class: "graphic map",
    role: "group",
    "aria-label": "Map of the model: each block leads to its step",
  });
  roving(node, "[role=button]", true);
  let blocks = [];

  function show(model) {
    const drawn = draw(model);
    blocks = drawn.blocks;
    const height = drawn.bottom + 4;
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height }))
      node.setAttribute(name, value);
    node.replaceChildren(...drawn.lines.flat(Infinity), ...blocks.map((block) => block.node));
    for (const { node: block, step, kind } of blocks) {
      block.addEventListener("click", () => onChoose(step, kind));
      block.addEventListener("keydown", (event) => {
        if (!["Enter", " "].includes(event.key)) return;
        event.preventDefault(); // a space would scroll
        event.stopPropagation(); // a key elsewhere ends the way to a step
        onChoose(step, kind);
      });
    }
    setRoving(
      blocks.map((block) => block.node),
      0,
    );
  }

  /** Lights the blocks of a step; of attention and what is around it, those of the chosen kind. */
  function mark(step, kind, layer) {
    const wanted = INSIDE.has(step) ? `attention ${kind}` : `${step} ${OF_SIDE.has(step) ? kind : ""}`.trim();
    let first = -1;
    blocks.forEach((block, i) => {
      const lit = block.marks.includes(wanted);
      block.node.classList.toggle("lit", lit);
      if (lit && first < 0) first = i;
      if (lit) block.node.setAttribute("aria-current", "step");
      else block.node.removeAttribute("aria-current");
    });
    if (!node.contains(document.activeElement))
      setRoving(
        blocks.map((block) => block.node),
        first,
      );
    for (const count of node.querySelectorAll("[data-side]")) {
      const own = count.dataset.side === (kind === "encoder" ? "encoder" : "decoder");
      count.textContent = own ? `${layer + 1} of ${count.dataset.layers}` : `× ${count.dataset.layers}`;
    }
  }

  return { node, show, mark };
}

const INSIDE = new Set(["project", "scores", "scale", "mask", "softmax", "mix", "heads"]);
const OF_SIDE = new Set(["norm", "add", "feed_forward"]);
const BOTH = (step) => ["encoder", "decoder", "cross"].map((kind) => `${step} ${kind}`);

/** From the top down, because that is how y is counted. */
function draw(model) {
  const blocks = [];
  const lines = [];
  const block = (options) => blocks.push(createBlock(options));
  const pre = model.norm === "pre";
  const unit = pre ? SUBLAYER + LOW + 36 : SUBLAYER + LOW + 20;
  const stackTop = 3 * (LOW + 10) + 8;
  const decoderHeight = 3 * unit + 30; // with a line for its name
  const encoderTop = stackTop + unit;
  const foot = stackTop + decoderHeight;

  lines.push(
    frame(ENCODER, encoderTop, decoderHeight - unit, "encoder", model.encoder_layers),
    frame(DECODER, stackTop, decoderHeight, "decoder", model.decoder_layers),
  );
  for (const x of [ENCODER, DECODER]) lines.push(stroke(`M${x + LANE} ${foot}v-30`, "arrow"));
  [
    ["search", "next piece"],
    ["probability", "softmax"],
    ["logits", model.tie === "none" ? "output matrix" : "embeddings, again"],
  ].forEach(([step, name], i) => {
    const y = i * (LOW + 10);
    block({ x: DECODER, y, height: LOW, name, step });
    lines.push(up(DECODER + LANE, i === 2 ? stackTop : y + LOW + 10, y + LOW));
  });
  const rows = [
    ["feed_forward", "feed-forward", "decoder"],
    ["attention", "cross-attention", "cross"],
    ["attention", "masked attention", "decoder"],
  ];
  rows.forEach(([step, name, kind], i) =>
    sublayer({ block, lines, x: DECODER, y: stackTop + 4 + i * unit, unit, pre, step, name, kind }),
  );
  [
    ["feed_forward", "feed-forward", "encoder"],
    ["attention", "self-attention", "encoder"],
  ].forEach(([step, name, kind], i) =>
    sublayer({ block, lines, x: ENCODER, y: encoderTop + 4 + i * unit, unit, pre, step, name, kind }),
  );

  const cross = stackTop + 4 + unit + (pre ? 30 : LOW + 10) + SUBLAYER / 2;
  const middle = ENCODER + LANE;
  lines.push(
    stroke(
      `M${middle} ${encoderTop}V${encoderTop - 22}a8 8 0 0 1 8 -8H${DECODER - 15}a8 8 0 0 1 8 8V${cross - 8}a8 8 0 0 0 8 8H${DECODER + 16}`,
      "arrow across",
    ),
  );
  lines.push(el("path", { class: "arrow-head across", d: `M${DECODER + 22} ${cross}l-7 -4v8z` }));
  block({
    x: ENCODER + 10,
    y: encoderTop - 42,
    width: 104,
    height: LOW,
    name: "cross",
    step: "cross",
    written: "the source, read",
  });

  [
    [ENCODER, "source"],
    [DECODER, "translation so far"],
  ].forEach(([x, name]) => {
    [
      [model.positions === "rotary" ? "turned in attention" : "+ positions", "positions"],
      ["embedding", "embedding"],
      [name, "pieces"],
    ].forEach(([written, step], i) => {
      const y = foot + 14 + i * (LOW + 10);
      const side = x === ENCODER ? "encoder" : "decoder";
      block({ x, y, height: LOW, name: `${written}, ${side}`, step, written });
      lines.push(up(x + LANE, y, y - (i ? 10 : 14)));
    });
  });
  return { blocks: blocks.sort((a, b) => b.y - a.y), lines, bottom: foot + 14 + 3 * (LOW + 10) - 10 };
}

function sublayer({ block, lines, x, y, unit, pre, step, name, kind }) {
  const [left, width] = [x + 18, COLUMN - 22];
  const middle = left + width / 2;
  const marks =
    step === "attention"
      ? [`attention ${kind}`, ...(kind === "cross" ? ["cross"] : [])]
      : BOTH(step).filter((mark) => (kind === "encoder") === mark.endsWith("encoder"));
  const inner = step === "attention" ? "project" : step;
  const end = y + unit;
  if (pre) {
    // The stream goes round the norm and the sublayer, whose result is added to it.
    lines.push(
      stroke(`M${middle} ${end}V${y + 22}`, "arrow"),
      up(middle, y + 12, y - 4),
      stroke(
        `M${middle} ${end - 4}H${x + 18}a6 6 0 0 1 -6 -6V${y + 18}a6 6 0 0 1 6 -6H${middle - 10}`,
        "arrow",
      ),
    );
    block({
      x: middle - 13,
      y,
      width: 26,
      height: 24,
      name: `add, ${name}`,
      step: "add",
      kind,
      written: "+",
      marks: [`add ${kind}`],
      round: true,
    });
    block({ x: left, y: y + 30, width, height: SUBLAYER, name, step: inner, kind, marks });
    block({
      x: left,
      y: y + 30 + SUBLAYER,
      width,
      height: LOW - 2,
      name: `norm before ${name}`,
      step: step === "attention" ? "norm" : "feed_forward",
      kind,
      written: "norm",
      marks: step === "attention" ? [`norm ${kind}`] : [],
      low: true,
    });
  } else {
    lines.push(
      up(middle, end, y - 4),
      stroke(
        `M${middle} ${end - 4}H${x + 18}a6 6 0 0 1 -6 -6V${y + LOW / 2 + 6}a6 6 0 0 1 6 -6H${left - 2}`,
        "arrow",
      ),
    );
    block({
      x: left,
      y,
      width,
      height: LOW,
      name: `add and norm after ${name}`,
      step: "add",
      kind,
      written: "add & norm",
      marks: [`add ${kind}`, `norm ${kind}`],
      low: true,
    });
    block({ x: left, y: y + LOW + 6, width, height: SUBLAYER, name, step: inner, kind, marks });
  }
}

const up = (x, from, to) => [
  stroke(`M${x} ${from}V${to + 5}`, "arrow"),
  el("path", { class: "arrow-head", d: `M${x} ${to}l-3.5 6h7z` }),
];

const frame = (x, y, height, side, layers) => [
  rect(x, y, COLUMN, height, { class: "stack", rx: 10 }),
  text(x + 12, y + height - 9, side, { kind: "heading", dy: 0 }),
  text(x + COLUMN - 10, y + height - 9, `× ${layers}`, {
    anchor: "end",
    kind: "heading",
    dy: 0,
    "data-side": side,
    "data-layers": layers,
  }),
];

function createBlock({
  x,
  y,
  width = COLUMN,
  height,
  name,
  step,
  kind = null,
  written = name,
  marks = [step],
  round = false,
  low = false,
}) {
  const shape = rect(x, y, width, height, { rx: round ? 12 : 7, class: "shape" });
  const label = text(x + width / 2, y + height / 2, written, { anchor: "middle", kind: null });
  const node = el(
    "g",
    { class: low ? "block low" : "block", role: "button", tabindex: -1, "aria-label": name },
    shape,
    label,
  );
  return { node, step, kind, marks, y };
}
