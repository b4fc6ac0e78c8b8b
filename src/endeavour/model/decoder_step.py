"""One step of the decoder, with its state between steps: plain operators on weights that were looked up once.

For a sentence alone a step's products take no longer than what surrounds them. So the layers' maps and norms are not
called as modules here, nothing is made anew that can be kept, and keys and values are stored by one copy. What is
computed is what `DecoderLayer` computes in evaluation mode. Knows layers and their parts; not tokens or searches.

Shapes: batch = sentences; beam = hypotheses of one sentence, the length of the sequence in a step; slots = keys.
"""

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional

from endeavour.model.attention import (
    HIDDEN,
    CrossAttention,
    KeyValue,
    SelfAttention,
    attend,
    merge_heads,
    split_heads,
)
from endeavour.model.layers import Dropout, FeedForward, Residual, linear
from endeavour.model.positions import Rotation, rotate
from endeavour.native.functions import LANES
from endeavour.native.layer_step import LayerKernel, Norm, usable

# The cache grows by this many steps at a time. On a CPU torch copies bf16 tensors that are not contiguous before a
# product, and compiles a product for each new shape: keys that fill their memory need no copy and have few shapes.
STEPS_AT_A_TIME = 8
NO_DROPOUT = Dropout(0.0)


class SelfCache:
    """Keys and values of one self-attention, (2, batch, heads, slots, head_width), filled step by step.

    Slots are allocated for `STEPS_AT_A_TIME` steps; the unused ones are zeros, which the mask of `DecoderCache` hides.
    """

    def __init__(self) -> None:
        self.stored: Tensor | None = None
        self.used = 0

    def append(self, new: Tensor) -> Tensor:
        """Adds the keys and values of the newest tokens, (2, batch, heads, beam, head_width), and returns all slots."""
        stored, start = self.extend(new[0], new.shape[3])
        stored[:, :, :, start : self.used] = new
        return stored

    def extend(self, like: Tensor, beam: int) -> tuple[Tensor, int]:
        """All slots, with room for `beam` more, and where that begins; keys `like` (batch, heads, any, head_width)."""
        start, self.used = self.used, self.used + beam
        if self.stored is None or self.used > self.stored.shape[3]:
            batch, heads, _, head_width = like.shape
            more = like.new_zeros(2, batch, heads, STEPS_AT_A_TIME * beam, head_width)
            self.stored = more if self.stored is None else torch.cat([self.stored, more], dim=3)
        return self.stored, start

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only."""
        if self.stored is not None:
            self.stored = self.stored.index_select(1, sentences)


class LayerStep:
    """The step of one decoder layer for the sentences of one search.

    Args:
        attention, cross_attention, feed_forward: the layer's.
        residuals: around these three.
        cross: keys and values of the encoder's states.
    """

    def __init__(
        self,
        attention: SelfAttention,
        cross_attention: CrossAttention,
        feed_forward: FeedForward,
        residuals: Sequence[Residual],
        *,
        cross: KeyValue,
    ) -> None:
        self.own = SelfCache()
        self.cross = cross
        self._heads = attention.num_heads
        self._input, self._output = _map(attention.input), _map(attention.output)
        self._query, self._cross_output = _map(cross_attention.query), _map(cross_attention.output)
        self._inner, self._outer = _map(feed_forward.inner), _map(feed_forward.outer)
        self._activation = feed_forward.activation
        self._norms = [Norm(one.norm.weight, one.norm.bias, one.norm.eps) for one in residuals]
        self._norm_first = residuals[0].norm_first
        maps = (self._input, self._output, self._query, self._cross_output, self._inner, self._outer)
        self.kernel: LayerKernel | None = None
        """Computes the same for few rows, where it can."""
        norms = (part for norm in self._norms for part in (norm.weight, norm.bias))
        if cross.key.shape[3] % LANES == 0 and usable(*chain(*maps, norms)):
            self.kernel = LayerKernel(
                maps,
                self._norms,
                heads=self._heads,
                activation=feed_forward.activation_name,
                norm_first=self._norm_first,
            )

    def __call__(
        self, states: Tensor, *, mask: Tensor, memory_mask: Tensor | None, rotation: Rotation | None
    ) -> Tensor:
        """States (batch, beam, width) in and out; `mask` (batch, 1, beam, slots) shows each its own past."""
        if self.kernel is not None and self.kernel.takes(states):
            key, value = self.cross
            own, used = self.own.extend(key, states.shape[1])
            return self.kernel(
                states,
                own=own,
                used=used,
                key=key,
                value=value,
                mask=mask,
                memory_mask=memory_mask,
                rotation=rotation,
            )
        fused = split_heads(linear(self._enter(0, states), *self._input), 3, self._heads)
        if rotation is not None:
            fused = torch.cat([rotate(fused[:2], rotation), fused[2:]])
        key, value = self.own.append(fused[1:])
        attended = _attend(fused[0], key, value, mask)
        states = self._leave(0, states, linear(attended, *self._output))

        query = split_heads(linear(self._enter(1, states), *self._query), 1, self._heads)[0]
        attended = _attend(query, *self.cross, memory_mask)
        states = self._leave(1, states, linear(attended, *self._cross_output))

        inner = self._activation(linear(self._enter(2, states), *self._inner))
        return self._leave(2, states, linear(inner, *self._outer))

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only, in this order."""
        self.own.select(sentences)
        self.cross = KeyValue(*(part.index_select(0, sentences) for part in self.cross))

    def _enter(self, place: int, states: Tensor) -> Tensor:
        """What the sublayer reads."""
        return self._norm(place, states) if self._norm_first else states

    def _leave(self, place: int, states: Tensor, change: Tensor) -> Tensor:
        """The states after the sublayer."""
        states = states + change
        return states if self._norm_first else self._norm(place, states)

    def _norm(self, place: int, states: Tensor) -> Tensor:
        return functional.layer_norm(states, states.shape[-1:], *self._norms[place])


class DecoderCache:
    """A decoder's state between steps, for a batch of beams.

    All hypotheses of a sentence share one store of keys and values: each step adds one slot per beam position, and
    nothing is moved when the search reorders its beams. Instead the mask of the self-attention says which slots belong
    to the past of which hypothesis.
    """

    def __init__(self, layers: list[LayerStep], memory_mask: Tensor | None, *, beam_size: int) -> None:
        self.layers = layers
        self.memory_mask = memory_mask
        self.length = 0
        """Positions decoded so far."""
        key = layers[0].cross.key
        self.mask = key.new_empty(len(key), 1, beam_size, 0)
        """(batch, 1, beam, slots): 0 where a hypothesis sees a slot: as many as it has tokens."""
        hidden = key.new_full((beam_size, beam_size), HIDDEN)
        self.newest = hidden.fill_diagonal_(0.0)

    def advance(self, states: Tensor, rotation: Rotation | None) -> Tensor:
        """States (batch, beam, width) of the newest tokens through all layers; each sees its own past and itself."""
        beam, slots = self.mask.shape[2:]
        start, self.length = self.length * beam, self.length + 1
        if start == slots:
            self.mask = functional.pad(self.mask, (0, STEPS_AT_A_TIME * beam), value=HIDDEN)
        self.mask[..., start : start + beam] = self.newest
        for layer in self.layers:
            states = layer(states, mask=self.mask, memory_mask=self.memory_mask, rotation=rotation)
        return states

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis i of a sentence continues what was hypothesis parents[i]; parents are (batch, beam)."""
        if parents.shape[1] > 1:
            self.mask = self.mask.gather(2, parents[:, None, :, None].expand_as(self.mask))

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only, in this order; their indices are (kept,)."""
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask.index_select(0, sentences)
        self.mask = self.mask.index_select(0, sentences)
        for layer in self.layers:
            layer.select(sentences)


def _map(module: nn.Linear) -> tuple[Tensor, Tensor]:
    return module.weight, module.bias


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Heads (batch, heads, beam or keys, head_width) to (batch, beam, width)."""
    return merge_heads(attend(query, key, value, mask=mask, causal=False, dropout=NO_DROPOUT, record=None))
