"""One layer taken apart: attention and feed-forward, each between what it reads and what it adds to the stream.

`attend` of `model.attention` does in one go what is here done one operation after the other; everything else is the
layer's own parts, called in the order of `EncoderLayer` and `DecoderLayer`. Knows layers and states; no tokens.

Shapes: queries, keys = lengths; heads × head_width = width; a batch dimension of 1 in front.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from endeavour.model.attention import merge_heads, split_heads
from endeavour.model.layers import Residual
from endeavour.model.positions import Rotation, rotate
from endeavour.model.transformer import DecoderLayer, EncoderLayer

Numbers = dict[str, Any]  # in JSON's types

DECIMALS = 4


@dataclass(frozen=True)
class Normed:
    """What a layer norm did: the mean and the deviation that it removed, (length,), and whether it came first."""

    first: bool
    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, residual: Residual, states: Tensor) -> "Normed":
        """The norm of states (1, length, width)."""
        variance, mean = torch.var_mean(states[0], dim=-1, correction=0)
        return cls(residual.norm_first, mean, (variance + residual.norm.eps).sqrt())

    def numbers(self, count: int) -> Numbers:
        return {
            "first": self.first,
            "mean": rounded(self.mean[:count]),
            "deviation": rounded(self.deviation[:count]),
        }


@dataclass(frozen=True)
class Attended:
    """One attention sublayer with all that is computed in it.

    `query`, `key` and `value` are (1, heads, length, head_width); `unturned` is the query before the rotation, if
    there is one. `scores` and `weights` are (1, heads, queries, keys), `visible` is (queries, keys). The others are
    states (1, queries, width): `stream` is what the residual connection holds, `entering` what the sublayer reads,
    `joined` the heads side by side, `result` what is added, `after` what the next sublayer finds.
    """

    norm: Normed
    stream: Tensor
    entering: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    unturned: Tensor | None
    scores: Tensor
    visible: Tensor
    weights: Tensor
    mixed: Tensor
    joined: Tensor
    result: Tensor
    after: Tensor

    def numbers(self, head: int, queries: int, components: int) -> Numbers:
        """Those of one head, and of all heads where they meet, for the first `queries`."""
        vectors = ("stream", "entering", "joined", "result", "after")
        return {
            **{name: rounded(getattr(self, name)[0, :queries, :components]) for name in vectors},
            "norm": self.norm.numbers(queries),
            "query": rounded(self.query[0, head, :queries]),
            "key": rounded(self.key[0, head]),
            "value": rounded(self.value[0, head]),
            "unturned": None if self.unturned is None else rounded(self.unturned[0, head]),
            "scores": rounded(self.scores[0, head, :queries]),
            "visible": self.visible[:queries].int().tolist(),
            "weights": rounded(self.weights[0, :, :queries]),
            "mixed": rounded(self.mixed[0, head, :queries]),
        }


def attended(
    layer: EncoderLayer | DecoderLayer, states: Tensor, *, mask: Tensor, rotation: Rotation | None
) -> Attended:
    """The self-attention of a layer. `mask` is added to the scores: it is broadcast over (1, heads, queries, keys)."""
    attention, residual = layer.self_attention, layer.attention_residual
    entering = _entering(residual, states)
    query, key, value = split_heads(attention.input(entering), 3, attention.num_heads)
    unturned = None
    if rotation is not None:
        unturned = query
        query, key = rotate(query, rotation), rotate(key, rotation)
    return _attended(residual, states, entering, (query, key, value), unturned, mask, attention.output)


def cross_attended(layer: DecoderLayer, states: Tensor, memory: Tensor, *, mask: Tensor) -> Attended:
    """The cross-attention of a decoder layer, from what its self-attention left, to the encoder's states."""
    attention, residual = layer.cross_attention, layer.cross_residual
    entering = _entering(residual, states)
    (query,) = split_heads(attention.query(entering), 1, attention.num_heads)
    key, value = attention.project_kv(memory)
    return _attended(residual, states, entering, (query, key, value), None, mask, attention.output)


def _attended(
    residual: Residual,
    states: Tensor,
    entering: Tensor,
    projected: tuple[Tensor, Tensor, Tensor],
    unturned: Tensor | None,
    mask: Tensor,
    output: torch.nn.Module,
) -> Attended:
    query, key, value = projected
    scores = query @ key.transpose(-2, -1)
    weights = (scores / query.shape[-1] ** 0.5 + mask).softmax(dim=-1)
    mixed = weights @ value
    joined = merge_heads(mixed)
    result = output(joined)
    total = states + result
    after = _after(residual, total)
    return Attended(
        norm=Normed.of(residual, states if residual.norm_first else total),
        stream=states,
        entering=entering,
        query=query,
        key=key,
        value=value,
        unturned=unturned,
        scores=scores,
        visible=(mask == 0).expand(scores.shape)[0, 0],
        weights=weights,
        mixed=mixed,
        joined=joined,
        result=result,
        after=after,
    )


def fed_forward(layer: EncoderLayer | DecoderLayer, states: Tensor, components: int) -> Numbers:
    """The feed-forward block of a layer, from what the last attention left, (queries, width)."""
    block, residual = layer.feed_forward, layer.feed_forward_residual
    entering = _entering(residual, states)
    inner = block.inner(entering)
    active = block.activation(inner.clone())  # relu writes into its argument
    result = block.outer(active)
    cut = components * active.shape[-1] // states.shape[-1]
    shown = {"stream": states, "entering": entering, "result": result}
    return {
        **{name: rounded(vectors[:, :components]) for name, vectors in shown.items()},
        # Of a gated block, the values to which the gates are applied come in the second half.
        "inner": [rounded(half[:, :cut]) for half in inner.chunk(block.inner.maps, dim=-1)],
        "active": rounded(active[:, :cut]),
        "share_active": rounded((active > 0).float().mean(dim=-1)),
    }


def _entering(residual: Residual, states: Tensor) -> Tensor:
    return residual.norm(states) if residual.norm_first else states


def _after(residual: Residual, total: Tensor) -> Tensor:
    return total if residual.norm_first else residual.norm(total)


def rounded(numbers: Tensor) -> Any:
    """Nested lists of numbers, rounded in double precision, in which four decimals print as four decimals."""
    return numbers.cpu().double().round(decimals=DECIMALS).tolist()
