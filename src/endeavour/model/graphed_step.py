"""One step of the decoder as a CUDA graph: all its tensors stay where they are, and one call repeats its launches.

On a GPU the layers of a small batch are computed faster than Python launches their kernels one by one. What is computed
is what `decoder_step` computes. Knows its caches; not tokens or searches.

Shapes: as in `decoder_step`; rows = sentences that there is room for, at least those of the batch.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from endeavour.cuda_graphs import Capture
from endeavour.model.attention import HIDDEN, KeyValue
from endeavour.model.decoder_step import DecoderCache, SelfCache
from endeavour.model.positions import Rotation


class FixedSelfCache(SelfCache):
    """Keys and values of one self-attention, with room for all steps.

    Args:
        stored: (2, rows, heads, slots, head_width).
        slots: those of the newest tokens, (beam).
    """

    def __init__(self, stored: Tensor, slots: Tensor) -> None:
        super().__init__()
        self._fixed = self.stored = stored
        self._slots = slots

    def append(self, new: Tensor) -> Tensor:
        """Stores the keys and values of the newest tokens, (2, rows, heads, beam, head_width); returns all slots."""
        return self._fixed.index_copy_(3, self._slots, new)


class _Graph(NamedTuple):
    """A replay, the states (rows, beam, width) that it changes, and the rotation of one position that it reads."""

    replay: Callable[[], None]
    states: Tensor
    rotation: Rotation | None


class GraphedCache(DecoderCache):
    """A `DecoderCache` for one search after the other over batches of one shape; its first step is captured.

    Args:
        like: a new cache of that shape; `begin` says of which search.
        rows: sentences that there is room for.
        steps: positions that there is room for.
    """

    def __init__(self, like: DecoderCache, *, rows: int, steps: int, capture: Capture[Tensor]) -> None:
        beam = like.mask.shape[2]
        layers = [copy.copy(layer) for layer in like.layers]
        super().__init__(layers, like.memory_mask, beam_size=beam)
        if like.memory_mask is not None:
            self.memory_mask = _with_rows(like.memory_mask, rows)
        key = layers[0].cross.key
        self.mask = key.new_empty(rows, 1, beam, steps * beam)
        self._seen = self.newest.expand(rows, 1, beam, beam)
        self._first_slots = torch.arange(beam, device=key.device)
        self._slots = self._first_slots.clone()
        self._stored: list[Tensor] = []
        for layer in layers:
            layer.cross = KeyValue(*(_with_rows(part, rows) for part in layer.cross))
            heads, _, head_width = layer.cross.key.shape[1:]
            self._stored.append(key.new_empty(2, rows, heads, steps * beam, head_width))
            layer.own = FixedSelfCache(self._stored[-1], self._slots)
            layer.kernel = None  # of a CPU, where tests record steps too
        self._capture = capture
        self._graph: _Graph | None = None

    def begin(self, cache: DecoderCache) -> None:
        """Becomes a copy of a new cache of the same shape."""
        for fixed, new in zip(_of_sources(self), _of_sources(cache), strict=True):
            fixed[: len(new)].copy_(new)
        # Nothing is decoded yet. What is hidden has a weight of 0, and must be a number for that.
        self.length = 0
        self.mask.fill_(HIDDEN)
        self._slots.copy_(self._first_slots)
        for stored in self._stored:
            stored.zero_()

    def advance(self, states: Tensor, rotation: Rotation | None) -> Tensor:
        """See `DecoderCache`; what is returned holds until the next step."""
        if self._graph is None:
            self._graph = self._captured(states, rotation)
        assert self.length < self.mask.shape[3] // self.mask.shape[2], "more steps than there is room for"
        graph = self._graph
        graph.states[: len(states)].copy_(states)
        for fixed, new in zip(graph.rotation or (), rotation or (), strict=True):
            fixed.copy_(new)
        graph.replay()
        self.length += 1
        return graph.states[: len(states)]

    def reorder(self, parents: Tensor) -> None:
        """See `DecoderCache`."""
        if parents.shape[1] > 1:
            mask = self.mask[: len(parents)]
            mask.copy_(mask.gather(2, parents[:, None, :, None].expand_as(mask)))

    def select(self, sentences: Tensor) -> None:
        """See `DecoderCache`."""
        own = [part for stored in self._stored for part in stored]
        for fixed in (self.mask, *_of_sources(self), *own):
            fixed[: len(sentences)].copy_(fixed.index_select(0, sentences))

    def _captured(self, states: Tensor, rotation: Rotation | None) -> _Graph:
        changed = _with_rows(states, len(self.mask))
        turned = None if rotation is None else Rotation(*(part.clone() for part in rotation))

        def compute() -> Tensor:
            self.mask.index_copy_(3, self._slots, self._seen)
            result = changed
            for layer in self.layers:
                result = layer(result, mask=self.mask, memory_mask=self.memory_mask, rotation=turned)
            self._slots.add_(len(self._slots))
            return changed.copy_(result)  # since what a recording allocates, others may use

        return _Graph(*self._capture(compute), turned)


def _of_sources(cache: DecoderCache) -> list[Tensor]:
    """What is known of the sources, with the sentences as first dimension."""
    parts = [part for layer in cache.layers for part in layer.cross]
    return parts if cache.memory_mask is None else [*parts, cache.memory_mask]


def _with_rows(tensor: Tensor, rows: int) -> Tensor:
    """Zeros with another first dimension."""
    return tensor.new_zeros(rows, *tensor.shape[1:])
