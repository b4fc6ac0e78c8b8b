/* The formulas of the Learn view, in MathML, which browsers draw and screen readers speak.
 *
 * Knows the notation; not the numbers of any sentence, except for a few sizes of the model.
 *
 * Parts of a formula are elements, numbers, or strings of signs with spaces between them: in "*x_t = *e_t" the letters
 * x and e are bold, and t stands below each.
 */

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";

function m(name, ...children) {
  const element = document.createElementNS(NAMESPACE, name);
  element.append(...children);
  return element;
}

/** A number, an identifier or an operator. */
const atom = (text) => m(/^\d/.test(text) ? "mn" : /^[\p{L}∞]/u.test(text) ? "mi" : "mo", text);

/** A vector or matrix: upright and bold. */
function bold(text) {
  const element = m("mi", text);
  element.setAttribute("mathvariant", "normal");
  element.classList.add("bold");
  return element;
}

/** One sign of a string: bold after "*", with the characters after "_" below it. */
function sign(text) {
  const [, star, base, below] = /^(\*?)([^_]+)(?:_(.+))?$/.exec(text);
  const element = star ? bold(base) : atom(base);
  return below ? sub(element, [...below].join(" ")) : element;
}

/** A part as elements, and as one element. */
const opened = (part) => (part instanceof Element ? [part] : String(part).split(" ").map(sign));
const single = (part) => (opened(part).length === 1 ? opened(part)[0] : row(part));

const word = (text) => m("mtext", text.replaceAll(" ", "\u00a0")); // plain spaces at either end would be dropped
const row = (...parts) => m("mrow", ...parts.flatMap(opened));
const sub = (base, below) => m("msub", single(base), single(below));
const sup = (base, above) => m("msup", single(base), single(above));
const root = (inside) => m("msqrt", single(inside));
const over = (above, below) => m("mfrac", single(above), single(below));
const call = (name, ...inside) => row(word(name), "(", ...inside, ")");
const power = (exponent) => sup("e", exponent);

function formula(...parts) {
  const math = m("math", row(...parts));
  math.setAttribute("display", "block");
  return math;
}

const wave = (name, width) => row(name, "( t /", sup("10000", row("2 i /", width)), ")");

const POSITIONS = {
  sinusoidal: ({ width }) => [
    formula("p_t,2i =", wave("sin", width)),
    formula("p_t,2i+1 =", wave("cos", width)),
    formula("*x_t = *e_t + *p_t"),
  ],
  learned: () => [formula("*x_t = *e_t + *P_t")],
  rotary: ({ width, num_heads }) => [
    formula("θ_i = t ·", sup("10000", row("− 2 i /", width / num_heads))),
    formula(row("( a_i , b_i )"), "↦", row("( a_i cos θ_i − b_i sin θ_i ,")),
    formula("b_i cos θ_i + a_i sin θ_i )"),
  ],
};

/** What enters a sublayer, or the last projection: the stream, which pre-norm models normalise first. */
const entering = ({ norm }) => (norm === "pre" ? call("norm", "*x") : bold("x"));

/** What a linear map does to what stands before it. */
const affine = (map) => `*W_${map} + *b_${map}`;

const linear = (result, from, map) => formula(row(`*${result} =`, from, affine(map)));

const ACTIVATIONS = {
  relu: (x) => call("max", "0 ,", x(), affine(1)),
  gelu: (x) => call("gelu", x(), affine(1)),
  silu: (x) => call("silu", x(), affine(1)),
  swiglu: (x) => row("(", call("silu", row(x(), affine("g"))), "⊙ (", row(x(), affine("v")), ") )"),
};

const ofHead = (number) => sup("*h", row("(", number, ")"));

const scores = () => over(row("*Q", sup("*K", "⊤")), root("d"));

/** For each step a function from the model's description to its formulas. */
const FORMULAS = {
  pieces: () => [],
  embedding: ({ width }) => [formula("*e_t =", sub("*E", sub(word("id"), "t")), "·", root(width))],
  positions: (model) => POSITIONS[model.positions](model),
  stream: ({ norm }) => [
    norm === "pre"
      ? formula("*x ← *x +", call("sublayer", call("norm", "*x")))
      : formula("*x ←", call("norm", "*x +", call("sublayer", "*x"))),
  ],
  norm: () => [formula(call("norm", "*x"), "=", over("*x − μ", "σ"), "⊙ *g + *b")],
  project: (model, kind) => {
    const from = () => (kind === "cross" ? bold("m") : entering(model));
    return [linear("q", entering(model), "Q"), linear("k", from(), "K"), linear("v", from(), "V")];
  },
  scores: () => [formula("s_tj = *q_t · *k_j")],
  scale: ({ width, num_heads }) => [
    formula(scores(), ", d =", over(width, num_heads), "=", width / num_heads),
  ],
  mask: (_, kind) => [
    formula(scores(), "+ *M"),
    formula(
      "M_tj = − ∞",
      word(" where "),
      kind === "decoder" ? row("j > t") : row(word("piece "), "j", word(" is <pad>")),
    ),
  ],
  softmax: () => [
    formula("s_tj ←", over("s_tj", root("d")), "+ M_tj"),
    formula("a_tj =", over(power("s_tj"), row("∑_k", power("s_tk")))),
  ],
  mix: () => [formula("*h_t = ∑_j a_tj *v_j")],
  heads: ({ num_heads }) => [formula("*y = [", ofHead(1), "; … ;", ofHead(num_heads), "]", affine("O"))],
  add: ({ norm }) => [norm === "pre" ? formula("*x ← *x + *y") : formula("*x ←", call("norm", "*x + *y"))],
  feed_forward: (model) => {
    const inner = ACTIVATIONS[model.activation](() => entering(model));
    return [formula("*y =", inner, affine(2))];
  },
  stack: ({ encoder_layers, decoder_layers, norm }) => {
    const layer = (number) => sub(word("layer"), number);
    const layers = row(layer(encoder_layers), "( …", layer(1), "( *x ) … )");
    return [
      formula("*m =", norm === "pre" ? call("norm", layers) : layers),
      formula(word(`likewise ${decoder_layers} in the decoder`)),
    ];
  },
  cross: () => {
    const [q, k, v] = [sub("*Q", word("target")), sub("*K", word("source")), sub("*V", word("source"))];
    return [formula(call("softmax", over(row(q, sup(k, "⊤")), root("d"))), v)];
  },
  logits: (model) => {
    const rows = model.tie === "none" ? "*W_w" : "*E_w";
    return [formula("z_w =", entering(model), "·", rows, word(" for each piece "), "w")];
  },
  probability: () => [formula("P ( w ) =", over(power("z_w"), row("∑_v", power("z_v"))))],
  search: () => [formula("P (", word("translation"), ") = ∏_t P ( w_t |", word("source, "), "w_<t )")],
};

/** The formulas of a step, as elements. */
export const formulasOf = (step, model, kind) => FORMULAS[step](model, kind);
