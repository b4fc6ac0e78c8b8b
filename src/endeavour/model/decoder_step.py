"""One step of the decoder: its layers for the newest tokens alone, with what is kept from step to step.

For few rows a kernel in C computes a layer, where it can: a step's products take no longer than what torch does around
them. Knows layers and their parts; not tokens or searches.

Shapes: batch = sentences; beam = hypotheses of one sentence, the length of the sequence in a step; slots = keys.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional

from endeavour.model.attention import HIDDEN, CrossAttention, KeyValue, SelfAttention
from endeavour.model.layers import FeedForward, Residual
from endeavour.model.positions import Rotation
from endeavour.native.functions import LANES
from endeavour.native.layer_step import LayerKernel, Norm, usable

# The cache grows by this many steps at a time. On a CPU torch copies bf16 tensors that are not contiguous before a
# product, and compiles a product for each new shape: keys that fill their memory need no copy and have few shapes.
STEPS_AT_A_TIME = 8


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
        self._attention = attention
        self._cross_attention = cross_attention
        self._feed_forward = feed_forward
        self._residuals = residuals
        self.kernel = self._kernel()
        """Computes the same for few rows, where it can."""

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
        around_own, around_cross, around_feed_forward = self._residuals
        own_step = partial(self._attention.step, store=self.own.append, mask=mask, rotation=rotation)
        cross_step = partial(self._cross_attention.step, memory=self.cross, mask=memory_mask)
        states = around_cross(around_own(states, own_step), cross_step)
        return around_feed_forward(states, self._feed_forward)

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only, in this order."""
        self.own.select(sentences)
        self.cross = KeyValue(*(part.index_select(0, sentences) for part in self.cross))

    def _kernel(self) -> LayerKernel | None:
        linears = (
            self._attention.input,
            self._attention.output,
            self._cross_attention.query,
            self._cross_attention.output,
            self._feed_forward.inner,
            self._feed_forward.outer,
        )
        maps = [(linear.weight, linear.bias) for linear in linears]
        norms = [Norm(one.norm.weight, one.norm.bias, one.norm.eps) for one in self._residuals]
        of_norms = (part for norm in norms for part in (norm.weight, norm.bias))
        if self.cross.key.shape[3] % LANES or not usable(*chain(*maps, of_norms)):
            return None
        return LayerKernel(
            maps,
            norms,
            heads=self._attention.num_heads,
            activation=self._feed_forward.activation_name,
            norm_first=self._residuals[0].norm_first,
        )


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
