"""One sentence pair on its way through the model, each number on it by name: what the Learn view shows.

Calls the model's own parts one after the other, in the order of `model.transformer`. `learn_layers` takes one layer
apart, `learn_vocabulary` compares vectors with all pieces, and `learn_code` knows which function does which step.

Knows the model and ids; not the page, nor how texts become ids.

Shapes: source, target = pieces of one sentence, on a batch dimension of 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from endeavour.errors import UserError
from endeavour.model.attention import causal_mask, padding_mask
from endeavour.model.transformer import AttentionKind, DecoderLayer, EncoderLayer, Transformer
from endeavour.playground.learn_code import code_of
from endeavour.playground.learn_layers import (
    Attended,
    Numbers,
    attended,
    cross_attended,
    fed_forward,
    rounded,
)
from endeavour.playground.learn_vocabulary import Pieces, named_pieces, neighbours, predictions, top_by_layer
from endeavour.special import BOS, EOS, PAD

LONGEST = 64  # pieces on either side; nobody can read the pictures of longer sentences
# PADs after the source, as in a batch with a longer sentence, so that the mask has something to hide.
PADDING = 2
MOST_NUMBERS = 115_000  # in one answer, which with names makes about 1 MB
FEWEST_COMPONENTS = 16


@dataclass(frozen=True)
class Way:
    """One side of the model: what is looked up for its ids, and the states after 0, 1, … layers."""

    ids: Tensor
    """(1, length)"""
    rows: Tensor
    """Of the embedding's matrix, (1, length, width)."""
    positions: Tensor | None
    """Vectors that are added, (length, width); None for rotary positions."""
    stream: list[Tensor]
    """Each (1, length, width)."""


class Passed(NamedTuple):
    """What a sentence pair becomes in the model: both sides, the encoded source, and the mask that hides its PADs."""

    encoder: Way
    decoder: Way
    memory: Tensor
    mask: Tensor


@torch.no_grad()
def learn(
    model: Transformer,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    *,
    kind: AttentionKind,
    layer: int,
    head: int,
    pieces: tuple[Pieces, Pieces],
) -> Numbers:
    """All that the Learn view shows of one sentence pair.

    Args:
        model: in evaluation mode.
        source_ids: ending in EOS.
        target_ids: without BOS and EOS.
        kind, layer, head: the attention that is taken apart; layer and head are counted from 0.
        pieces: of source and target.

    Returns:
        JSON. `components` says how many numbers of each vector of the model's width it holds: all of them, unless that
        would be too much to send.

    Raises:
        UserError: there is no such layer or head, or a sentence has more than `LONGEST` pieces.
    """
    _check(model, max(len(source_ids), len(target_ids) + 1), kind, layer, head)
    count, device = len(source_ids), model.device
    source = torch.tensor([[*source_ids, *[PAD] * _padding(model, count)]], device=device)
    target_in = torch.tensor([[BOS, *target_ids]], device=device)
    mask = padding_mask(source, model.output_weight.dtype)

    encoder = _encoder_way(model, source, mask)
    memory = model.encoder_norm(encoder.stream[-1])
    decoder = _decoder_way(model, target_in, memory, mask)
    final = model.decoder_norm(decoder.stream[-1])

    passed = Passed(encoder, decoder, memory, mask)
    part, last = _take_apart(model, passed, kind, layer)
    components = _components(model, count, target_in.shape[1], kind)
    queries = count if kind == "encoder" else target_in.shape[1]
    cross_layer, cross = layer, last
    if kind == "encoder":
        cross_layer = len(model.decoder) - 1
        cross, _ = _take_apart(model, passed, "cross", cross_layer)
    return {
        "kind": kind,
        "layer": layer,
        "head": head,
        "components": components,
        "model": _description(model),
        "tokens": {
            "source": named_pieces(source_ids, pieces[0]),
            "target_in": named_pieces([BOS, *target_ids], pieces[1]),
            "target_out": named_pieces([*target_ids, EOS], pieces[1]),
        },
        "embedding": {
            "source": _embedding_numbers(encoder, count, components)
            | {"neighbours": neighbours(model.embeddings[0].weight, source_ids, pieces[0])},
            "target": _embedding_numbers(decoder, target_in.shape[1], components)
            | {"neighbours": neighbours(model.embeddings[1].weight, [BOS, *target_ids], pieces[1])},
        },
        "rotation": _rotation_numbers(model, max(count, target_in.shape[1])),
        "attention": part.numbers(head, queries, components),
        "feed_forward": fed_forward(_layer_of(model, kind, layer), last.after[0, :queries], components),
        "stack": {
            "encoder": [rounded(states[0, :count].norm(dim=-1)) for states in encoder.stream],
            "decoder": [rounded(states[0].norm(dim=-1)) for states in decoder.stream],
            "top": top_by_layer(model, decoder.stream, pieces[1]),
        },
        "cross": {"layer": cross_layer, "weights": rounded(cross.weights[0, :, :, :count])},
        "final": rounded(final[0, :, :components]),
        "predictions": predictions(model.project(final)[0], [*target_ids, EOS], pieces[1]),
        "code": code_of(model.config, kind),
    }


def _check(model: Transformer, longest: int, kind: AttentionKind, layer: int, head: int) -> None:
    layers = len(model.encoder if kind == "encoder" else model.decoder)
    if longest > LONGEST:
        raise UserError(
            f"up to {LONGEST} pieces a side can be shown, and this pair has {longest}: take a shorter one"
        )
    if not 0 <= layer < layers:
        raise UserError(f"layer={layer}: {kind} layers are 0 to {layers - 1}")
    if not 0 <= head < model.config.num_heads:
        raise UserError(f"head={head}: heads are 0 to {model.config.num_heads - 1}")


def _padding(model: Transformer, count: int) -> int:
    """How many PADs are appended: none beyond the learned positions."""
    if model.config.positions != "learned":
        return PADDING
    return max(0, min(PADDING, model.config.max_length - count))


def _encoder_way(model: Transformer, source: Tensor, mask: Tensor) -> Way:
    way = _embedded(model, source, model.embeddings[0], model.source_positions)
    rotation = model.rotation(0, source.shape[1])
    for layer in model.encoder:
        way.stream.append(layer(way.stream[-1], mask=mask, rotation=rotation))
    return way


def _decoder_way(model: Transformer, target_in: Tensor, memory: Tensor, mask: Tensor) -> Way:
    way = _embedded(model, target_in, model.embeddings[1], model.target_positions)
    rotation = model.rotation(0, target_in.shape[1])
    for module in model.decoder:
        layer = cast(DecoderLayer, module)
        way.stream.append(layer(way.stream[-1], memory, memory_mask=mask, rotation=rotation))
    return way


def _embedded(model: Transformer, ids: Tensor, embedding: nn.Embedding, positions: nn.Module | None) -> Way:
    """The way before the first layer."""
    rows = embedding(ids)
    states = rows * model.config.width**0.5
    vectors: Tensor | None = None if positions is None else positions(0, ids.shape[1])
    return Way(ids, rows, vectors, [states if vectors is None else states + vectors])


def _take_apart(
    model: Transformer, passed: Passed, kind: AttentionKind, layer: int
) -> tuple[Attended, Attended]:
    """The attention of this kind and layer, in all heads, and the last one of the layer."""
    chosen = _layer_of(model, kind, layer)
    way = passed.encoder if kind == "encoder" else passed.decoder
    rotation = model.rotation(0, way.ids.shape[1])
    if isinstance(chosen, EncoderLayer):
        own = attended(chosen, way.stream[layer], mask=passed.mask, rotation=rotation)
        return own, own
    states = way.stream[layer]
    hidden = causal_mask(states.shape[1], states.dtype, states.device)
    own = attended(chosen, states, mask=hidden, rotation=rotation)
    across = cross_attended(chosen, own.after, passed.memory, mask=passed.mask)
    return across if kind == "cross" else own, across


def _layer_of(model: Transformer, kind: AttentionKind, layer: int) -> EncoderLayer | DecoderLayer:
    return cast(EncoderLayer | DecoderLayer, (model.encoder if kind == "encoder" else model.decoder)[layer])


def _components(model: Transformer, source: int, target: int, kind: AttentionKind) -> int:
    """How many numbers of each vector fit into an answer of `MOST_NUMBERS`."""
    config = model.config
    queries = source if kind == "encoder" else target
    keys = target if kind == "decoder" else source + PADDING
    matrices = config.num_heads * (queries * keys + target * source) + 3 * queries * keys
    inner = 2 * config.feed_forward / config.width
    vectors = 3 * source + 4 * target + queries * (8 + inner)
    fitting = int((MOST_NUMBERS - matrices) / vectors)
    return min(config.width, max(FEWEST_COMPONENTS, fitting))


def _embedding_numbers(way: Way, count: int, components: int) -> Numbers:
    positions = None if way.positions is None else rounded(way.positions[:count, :components])
    return {
        "rows": rounded(way.rows[0, :count, :components]),
        "positions": positions,
        "states": rounded(way.stream[0][0, :count, :components]),
    }


def _rotation_numbers(model: Transformer, length: int) -> Numbers | None:
    """Of each pair that a head turns, (length, half); its second half has the sines with their own sign."""
    rotation = model.rotation(0, length)
    if rotation is None:
        return None
    cosine, sine = (table.chunk(2, dim=-1)[1] for table in rotation)
    return {"cosine": rounded(cosine), "sine": rounded(sine)}


def _description(model: Transformer) -> Numbers:
    config = model.config
    names = ("width", "encoder_layers", "decoder_layers", "num_heads", "feed_forward", "max_length")
    choices = ("activation", "norm", "positions", "tie")
    return {
        **{name: getattr(config, name) for name in (*names, *choices)},
        "source_vocabulary": model.embeddings[0].num_embeddings,
        "target_vocabulary": len(model.output_weight),
    }
