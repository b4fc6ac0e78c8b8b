/* What the Learn view tells: the steps in their order, each with its chapter, title and sentences.
 *
 * Knows words and the numbers they need; not how anything is drawn. A step's text is a function of the view (learn.js).
 */

import { brief, label, ordinal, percent, thousands } from "../format.js";

const ACTIVATION = {
  relu: "ReLU sets every negative number to 0",
  gelu: "GELU lets positive numbers pass and presses negative ones towards 0",
  silu: "SiLU lets positive numbers pass and presses negative ones towards 0",
  swiglu: "SwiGLU makes two such vectors, and multiplies one of them by a gate made of the other",
};
const quoted = (text) => `“${text}”`;
const counted = (padding) => (padding ? `; here ${padding} of them` : "");

const TEXTS = {
  pieces: (view) => [
    `A model reads neither letters nor words but pieces from a fixed list; this one has ${thousands(view.data.model.source_vocabulary)}. Frequent words are one piece, rarer ones are put together from several, if need be letter by letter.`,
    "Each piece is known by its number, its id. </s> ends the source, so that the model can tell that nothing follows; the translation begins with <s>, because the first word needs something to follow.",
  ],
  embedding: ({ data: { model }, labels, side, q }) => [
    `A table learnt in training has a row of ${model.width} numbers for each piece: its embedding. The id of ${quoted(labels[side][q])} picks its row. Pieces that are used alike have come to have similar rows.`,
    `The numbers are small, so they are multiplied by √${model.width}${model.positions === "rotary" ? "" : "; what is added next then does not drown them"}.` +
      (model.tie === "all"
        ? " This model uses one table for both languages, and once more at the end to choose the next piece."
        : ""),
  ],
  positions: ({ data: { model } }) =>
    ({
      sinusoidal: [
        "Attention sees a bag of pieces: it would not notice if they were shuffled. So each position gets a vector made of sine and cosine waves, and it is added to the embedding.",
        "Fast waves, on the left, tell neighbours apart; slow ones, on the right, tell the beginning from the end. Two positions at the same distance are always related in the same way, so that “two to the left” is easy to learn.",
      ],
      learned: [
        "Attention sees a bag of pieces: it would not notice if they were shuffled. So each position has a vector of its own, learnt in training like the embeddings, and it is added to the piece’s embedding.",
        `There are ${thousands(model.max_length)} of them: this model cannot read a longer sentence.`,
      ],
      rotary: [
        "Attention sees a bag of pieces: it would not notice if they were shuffled. In this model nothing is added; instead every self-attention turns its queries and keys. Pairs of their numbers are turned like the hands of clocks, some fast and some slow, the further the later a piece stands.",
        "When a query meets a key, the two turns partly cancel: what is left depends on how far apart the pieces are, not on where they stand.",
      ],
    })[model.positions],
  stream: ({ data, labels, q }) => [
    `From here on each piece has its own vector, and keeps it to the end. A layer never replaces it: its sublayers read it, compute something, and add that. Think of a stream with a lane for each piece${data.kind === "encoder" ? "" : " of the translation"}.`,
    data.layer === 0 && data.kind !== "cross"
      ? `This is the first layer, so what enters is the embedding${data.model.positions === "rotary" ? "" : " with its position"}.`
      : `What enters here is no longer only ${quoted(labels.queries[q])} and where it stands: all sublayers before have added what they found.`,
  ],
  norm: ({ data: { attention, model }, labels, q }) => [
    `Layer norm brings each vector to a standard size: the mean of its numbers is subtracted, then they are divided by their deviation. For ${quoted(labels.queries[q])} the mean is ${brief(attention.norm.mean[q])} and the deviation ${brief(attention.norm.deviation[q])}. A learnt gain and bias for each of the ${model.width} numbers follow.`,
    model.norm === "pre"
      ? "This model normalises before each sublayer (pre-norm): the sublayer always finds numbers of the same size, while the stream itself stays as it is."
      : "This model normalises after each sum (post-norm), as in the paper of 2017: it is the stream itself that is brought to size again.",
  ],
  project: ({ data: { kind, head, model, attention }, labels, q }) => [
    `Now one of the ${model.num_heads} heads. Three learnt matrices make three short vectors of ${attention.query[0].length} numbers: a query (what the piece looks for), a key (what it can be found by) and a value (what it hands over when found).`,
    kind === "cross"
      ? `In cross-attention the queries come from the translation, the keys and values from what the encoder made of the source. We follow the query of ${quoted(labels.queries[q])}, after which ${quoted(labels.output[q])} will be written.`
      : `Head ${head + 1} has matrices of its own; it will look for something else than the others. We follow the query of ${quoted(labels.queries[q])}.` +
        (attention.unturned ? " Queries and keys are shown after they were turned to their positions." : ""),
  ],
  scores: ({ data: { attention }, labels, q, k }) => [
    "Each query meets each key: their numbers are multiplied one by one, and the products are added up. The sum is large where the two vectors point the same way.",
    `Choose a square: below, ${quoted(labels.queries[q])} asks ${quoted(labels.keys[k])}, and the ${attention.query[0].length} products add up to ${brief(attention.scores[q][k])}.`,
  ],
  scale: ({ data: { attention } }) => [
    `The more numbers are added up, the larger scores become by chance. Divided by √${attention.query[0].length}, they are of about the same size in narrow and in wide heads.`,
    "Without that, the largest score would take nearly all of the weight in the next steps, and a head could hardly learn to change its mind.",
  ],
  mask: ({ data: { kind }, labels, real }) =>
    kind === "decoder"
      ? [
          "In training the decoder reads the whole translation at once, but each position must learn to say what comes next without seeing it. So all scores above the diagonal become −∞, which the softmax turns into a weight of exactly 0.",
          "When the model translates, there is no future yet: it writes one piece, appends it, and goes on.",
        ]
      : [
          `Sentences that are computed together are filled up to one length with <pad>${counted(labels.keys.length - real)}. Nobody may look at them: their scores become −∞, which the softmax turns into a weight of exactly 0.`,
          "All pieces of the sentence are visible from everywhere, left and right.",
        ],
  softmax: ({ data: { attention, head }, labels, q, k }) => [
    "The softmax turns scores into shares: e to the power of each score is positive, and dividing by the sum makes them add up to 100 %. A score that is higher by 1 gets 2.7 times the weight.",
    `Of what ${quoted(labels.queries[q])} takes in here, ${percent(attention.weights[head][q][k])} comes from ${quoted(labels.keys[k])}.`,
  ],
  mix: ({ labels, q }) => [
    `Each value, times its weight; all added up. That is the head’s answer for ${quoted(labels.queries[q])}: mostly the values of the pieces that it looks at.`,
    "This is the only place in the model where pieces learn of each other. Everything else treats each piece alone.",
  ],
  heads: ({ data: { model, attention } }) => [
    `All ${model.num_heads} heads of the layer do this at the same time, each with matrices of its own: one may look at the neighbour, another at the verb. Choose one.`,
    `Their answers, ${model.num_heads} × ${attention.query[0].length} = ${model.width} numbers, are put side by side, and one more matrix mixes them.`,
  ],
  add: ({ data: { model }, labels, q }) => [
    `What attention found is added to the stream: the vector of ${quoted(labels.queries[q])} is still there, now with something about its surroundings.`,
    model.norm === "pre"
      ? "Because the norm came before, nothing else happens: a straight path leads from the embedding to the end, and in training the corrections flow back along it."
      : "Then the sum is normalised: “Add & Norm”, as the next step shows.",
  ],
  feed_forward: ({ data: { model, feed_forward: block }, labels, q }) => [
    `Attention brought things together; now each piece works on its own. Its ${model.width} numbers become ${thousands(model.feed_forward)}, each of which answers to some pattern; ${ACTIVATION[model.activation]}; then they become ${model.width} again and are added to the stream.`,
    `For ${quoted(labels.queries[q])} ${percent(block.share_active[q])} of the inner numbers are above 0. A large part of a model’s knowledge lies in these matrices.`,
  ],
  stack: ({ data: { model } }) => [
    `The same sublayers, each time with other weights: ${model.encoder_layers} layers in the encoder, ${model.decoder_layers} in the decoder. ${model.norm === "pre" ? "The vectors grow longer, because every layer adds to them; a last norm follows." : "Each layer ends with a norm."}`,
    "One can ask what the decoder would say if it ended earlier. Below, vague guesses become the prediction, layer by layer.",
  ],
  cross: ({ data: { cross }, labels, target }) => [
    "Here the two sides meet. In every layer the decoder asks the encoder’s vectors of the source: queries from the translation, keys and values from the source. It is the same attention as above.",
    `To write ${quoted(labels.output[target])}, layer ${cross.layer + 1} looks where the lines lead; they show the mean of its heads. Often it is the word being translated.`,
  ],
  logits: ({ data: { model }, labels, target }) => [
    `After ${quoted(labels.target[target])} the decoder’s last vector is compared with ${thousands(model.target_vocabulary)} rows, one for each piece${model.tie === "none" ? "" : ", the same ones that were its embeddings"}: the dot product is the piece’s logit.`,
    "Most pieces get low logits; very few stand out.",
  ],
  probability: ({ data: { predictions }, target }) => {
    const { expected } = predictions[target];
    return [
      "A last softmax, over the whole vocabulary, turns logits into the probabilities of the next piece. If a piece is drawn by lot instead of searched for, a temperature can sharpen or flatten them first: logits are divided by it.",
      `${quoted(label(expected.piece))}, which stands in this translation, has ${percent(expected.probability)}${expected.rank === 1 ? ": it is the first choice." : `: it is the ${ordinal(expected.rank)} choice.`}`,
    ];
  },
  search: () => [
    "The chosen piece is appended, and the decoder begins again for the next position, until </s>. The probability of a translation is the product of those of its pieces.",
    "Always taking the best piece can lead away from the best sentence. Beam search therefore keeps several translations going at a time: the Search view shows them.",
  ],
};

const STEPS = [
  ["pieces", "From text to vectors", "Text becomes pieces"],
  ["embedding", "From text to vectors", "Each piece becomes a vector"],
  ["positions", "From text to vectors", "Where each piece stands"],
  ["stream", "Inside a layer", "The stream of vectors"],
  ["norm", "Inside a layer", "Brought to one size"],
  ["project", "One attention head", "Query, key and value"],
  ["scores", "One attention head", "Every query meets every key"],
  ["scale", "One attention head", "Divided by √d"],
  ["mask", "One attention head", "What must not be seen"],
  ["softmax", "One attention head", "Scores become weights"],
  ["mix", "One attention head", "The weighted sum of the values"],
  ["heads", "Inside a layer", "All heads side by side"],
  ["add", "Inside a layer", "Added to the stream"],
  ["feed_forward", "Inside a layer", "Each piece on its own"],
  ["stack", "The whole model", "Layer upon layer"],
  ["cross", "The whole model", "The decoder looks at the source"],
  ["logits", "The next piece", "A score for every piece"],
  ["probability", "The next piece", "Probabilities"],
  ["search", "The next piece", "From piece to piece"],
].map(([id, chapter, title]) => ({ id, chapter, title, text: TEXTS[id] }));

/** The steps as this model takes them: after a post-norm model's sum, the norm; before a pre-norm model's attention. */
export function stepsOf(model) {
  if (model.norm === "pre") return STEPS;
  const rest = STEPS.filter(({ id }) => id !== "norm");
  const after = rest.findIndex(({ id }) => id === "add") + 1;
  return [...rest.slice(0, after), STEPS.find(({ id }) => id === "norm"), ...rest.slice(after)];
}
