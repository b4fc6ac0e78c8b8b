/* The formulas of the Learn view, in MathML, which browsers draw and screen readers speak.
 *
 * Knows the notation; not the numbers of any sentence, except for a few sizes of the model.
 */

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";

function m(name, ...children) {
  const element = document.createElementNS(NAMESPACE, name);
  element.append(...children);
  return element;
}

const i = (text) => m("mi", text);
const n = (value) => m("mn", String(value));
const o = (text) => m("mo", text);
const word = (text) => m("mtext", text.replaceAll(" ", "\u00a0")); // plain spaces at either end would be dropped
const row = (...children) => m("mrow", ...children);
const sub = (base, below) => m("msub", base, below);
const sup = (base, above) => m("msup", base, above);
const root = (inside) => m("msqrt", inside);
const over = (above, below) => m("mfrac", above, below);
const call = (name, ...inside) => row(word(name), o("("), ...inside, o(")"));

/** A vector or matrix: upright and bold. */
function bold(text) {
  const element = i(text);
  element.setAttribute("mathvariant", "normal");
  element.classList.add("bold");
  return element;
}

function formula(...children) {
  const math = m("math", row(...children));
  math.setAttribute("display", "block");
  return math;
}

const wave = (name, width) =>
  row(i(name), o("("), i("t"), o("/"), sup(n("10000"), row(n(2), i("i"), o("/"), n(width))), o(")"));

const POSITIONS = {
  sinusoidal: ({ width }) => [
    formula(sub(i("p"), row(i("t"), o(","), n(2), i("i"))), o("="), wave("sin", width)),
    formula(sub(i("p"), row(i("t"), o(","), n(2), i("i"), o("+"), n(1))), o("="), wave("cos", width)),
    formula(sub(bold("x"), i("t")), o("="), sub(bold("e"), i("t")), o("+"), sub(bold("p"), i("t"))),
  ],
  learned: () => [
    formula(sub(bold("x"), i("t")), o("="), sub(bold("e"), i("t")), o("+"), sub(bold("P"), i("t"))),
  ],
  rotary: ({ width, num_heads }) => [
    formula(
      sub(i("θ"), i("i")),
      o("="),
      i("t"),
      o("·"),
      sup(n("10000"), row(o("−"), n(2), i("i"), o("/"), n(width / num_heads))),
    ),
    formula(
      row(o("("), sub(i("a"), i("i")), o(","), sub(i("b"), i("i")), o(")")),
      o("↦"),
      row(
        o("("),
        sub(i("a"), i("i")),
        i("cos"),
        sub(i("θ"), i("i")),
        o("−"),
        sub(i("b"), i("i")),
        i("sin"),
        sub(i("θ"), i("i")),
        o(","),
      ),
    ),
    formula(
      sub(i("b"), i("i")),
      i("cos"),
      sub(i("θ"), i("i")),
      o("+"),
      sub(i("a"), i("i")),
      i("sin"),
      sub(i("θ"), i("i")),
      o(")"),
    ),
  ],
};

/** What enters a sublayer, or the last projection: the stream, which pre-norm models normalise first. */
const entering = ({ norm }) => (norm === "pre" ? call("norm", bold("x")) : bold("x"));

const linear = (result, from, map) =>
  row(bold(result), o("="), from, sub(bold("W"), i(map)), o("+"), sub(bold("b"), i(map)));

const ACTIVATIONS = {
  relu: (x) => call("max", n(0), o(","), x(), sub(bold("W"), n(1)), o("+"), sub(bold("b"), n(1))),
  gelu: (x) => call("gelu", x(), sub(bold("W"), n(1)), o("+"), sub(bold("b"), n(1))),
  silu: (x) => call("silu", x(), sub(bold("W"), n(1)), o("+"), sub(bold("b"), n(1))),
  swiglu: (x) => {
    const half = (map) => row(x(), sub(bold("W"), i(map)), o("+"), sub(bold("b"), i(map)));
    return row(o("("), call("silu", half("g")), o("⊙"), o("("), half("v"), o(")"), o(")"));
  },
};

const ofHead = (number) => sup(bold("h"), row(o("("), n(number), o(")")));

const scores = () => over(row(bold("Q"), sup(bold("K"), o("⊤"))), root(i("d")));

/** For each step a function from the model's description to its formulas. */
const FORMULAS = {
  pieces: () => [],
  embedding: ({ width }) => [
    formula(sub(bold("e"), i("t")), o("="), sub(bold("E"), sub(word("id"), i("t"))), o("·"), root(n(width))),
  ],
  positions: (model) => POSITIONS[model.positions](model),
  stream: ({ norm }) => [
    norm === "pre"
      ? formula(bold("x"), o("←"), bold("x"), o("+"), call("sublayer", call("norm", bold("x"))))
      : formula(bold("x"), o("←"), call("norm", bold("x"), o("+"), call("sublayer", bold("x")))),
  ],
  norm: () => [
    formula(
      call("norm", bold("x")),
      o("="),
      over(row(bold("x"), o("−"), i("μ")), i("σ")),
      o("⊙"),
      bold("g"),
      o("+"),
      bold("b"),
    ),
  ],
  project: (model, kind) => {
    const from = () => (kind === "cross" ? bold("m") : entering(model));
    return [
      formula(linear("q", entering(model), "Q")),
      formula(linear("k", from(), "K")),
      formula(linear("v", from(), "V")),
    ];
  },
  scores: () => [
    formula(sub(i("s"), row(i("t"), i("j"))), o("="), sub(bold("q"), i("t")), o("·"), sub(bold("k"), i("j"))),
  ],
  scale: ({ width, num_heads }) => [
    formula(scores(), o(","), i("d"), o("="), over(n(width), n(num_heads)), o("="), n(width / num_heads)),
  ],
  mask: (_, kind) => [
    formula(scores(), o("+"), bold("M")),
    formula(
      sub(i("M"), row(i("t"), i("j"))),
      o("="),
      o("−"),
      i("∞"),
      word(" where "),
      kind === "decoder" ? row(i("j"), o(">"), i("t")) : row(word("piece "), i("j"), word(" is <pad>")),
    ),
  ],
  softmax: () => [
    formula(
      sub(i("s"), row(i("t"), i("j"))),
      o("←"),
      over(sub(i("s"), row(i("t"), i("j"))), root(i("d"))),
      o("+"),
      sub(i("M"), row(i("t"), i("j"))),
    ),
    formula(
      sub(i("a"), row(i("t"), i("j"))),
      o("="),
      over(
        sup(i("e"), sub(i("s"), row(i("t"), i("j")))),
        row(sub(o("∑"), i("k")), sup(i("e"), sub(i("s"), row(i("t"), i("k"))))),
      ),
    ),
  ],
  mix: () => [
    formula(
      sub(bold("h"), i("t")),
      o("="),
      sub(o("∑"), i("j")),
      sub(i("a"), row(i("t"), i("j"))),
      sub(bold("v"), i("j")),
    ),
  ],
  heads: ({ num_heads }) => [
    formula(
      bold("y"),
      o("="),
      o("["),
      ofHead(1),
      o(";"),
      o("…"),
      o(";"),
      ofHead(num_heads),
      o("]"),
      sub(bold("W"), i("O")),
      o("+"),
      sub(bold("b"), i("O")),
    ),
  ],
  add: ({ norm }) => [
    norm === "pre"
      ? formula(bold("x"), o("←"), bold("x"), o("+"), bold("y"))
      : formula(bold("x"), o("←"), call("norm", bold("x"), o("+"), bold("y"))),
  ],
  feed_forward: (model) => [
    formula(bold("y"), o("="), ACTIVATIONS[model.activation](() => entering(model)), sub(bold("W"), n(2)), o("+"), sub(bold("b"), n(2))),
  ],
  stack: ({ encoder_layers, decoder_layers, norm }) => {
    const layers = row(
      sub(word("layer"), n(encoder_layers)),
      o("("),
      o("…"),
      sub(word("layer"), n(1)),
      o("("),
      bold("x"),
      o(")"),
      o("…"),
      o(")"),
    );
    return [
      formula(bold("m"), o("="), norm === "pre" ? call("norm", layers) : layers),
      formula(word(`likewise ${decoder_layers} in the decoder`)),
    ];
  },
  cross: () => [
    formula(
      call(
        "softmax",
        over(row(sub(bold("Q"), word("target")), sup(sub(bold("K"), word("source")), o("⊤"))), root(i("d"))),
      ),
      sub(bold("V"), word("source")),
    ),
  ],
  logits: (model) => [
    formula(
      sub(i("z"), i("w")),
      o("="),
      entering(model),
      o("·"),
      sub(bold(model.tie === "none" ? "W" : "E"), i("w")),
      word(" for each piece "),
      i("w"),
    ),
  ],
  probability: () => [
    formula(
      i("P"),
      o("("),
      i("w"),
      o(")"),
      o("="),
      over(sup(i("e"), sub(i("z"), i("w"))), row(sub(o("∑"), i("v")), sup(i("e"), sub(i("z"), i("v"))))),
    ),
  ],
  search: () => [
    formula(
      i("P"),
      o("("),
      word("translation"),
      o(")"),
      o("="),
      sub(o("∏"), i("t")),
      i("P"),
      o("("),
      sub(i("w"), i("t")),
      o("|"),
      word("source, "),
      sub(i("w"), row(o("<"), i("t"))),
      o(")"),
    ),
  ],
};

/** The formulas of a step, as elements. */
export const formulasOf = (step, model, kind) => FORMULAS[step](model, kind);
