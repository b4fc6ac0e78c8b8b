"""A model whose decoder's steps are CUDA graphs, for batches of a shape that comes again.

Knows models, their caches and shapes; not searches.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from endeavour.cuda_graphs import Capture, CudaCapture, has_room
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ensemble import Ensemble, EnsembleCache
from endeavour.decoding.model import Model
from endeavour.model.decoder_step import DecoderCache
from endeavour.model.graphed_step import GraphedCache
from endeavour.model.transformer import Memory, Transformer
from endeavour.special import PAD

# Lengths are rounded up to a multiple of this, so that shapes come again.
TOKENS_AT_A_TIME = 8
# Shapes that have graphs at a time; the one that was not needed for the longest time makes room for another.
MOST_SHAPES = 64
REMEDY = "set decoding.cuda_graphs=false (validation_decoding.cuda_graphs while training)"


def search_model(
    model: Transformer | Ensemble, decoding: DecodingConfig, limit: Callable[[int], int]
) -> Model:
    """What a search with these settings is given: a `GraphedModel` on a GPU, where `cuda_graphs` asks for it."""
    graphed = decoding.cuda_graphs and model.device.type == "cuda"
    return GraphedModel(model, limit) if graphed else model


class GraphedModel:
    """A `decoding.model.Model` that captures a step when the second batch of a shape begins, and then replays it.

    It serves one search at a time.

    Args:
        model: in evaluation mode, with weights that stay where they are.
        limit: the most steps of a search by the length of its sources, both with EOS.
        capture: of CUDA, unless given.
    """

    def __init__(
        self,
        model: Transformer | Ensemble,
        limit: Callable[[int], int],
        capture: Capture[Tensor] | None = None,
    ) -> None:
        self._model: Any = model  # the memory, cache and states of either kind are passed back to it
        self._limit = limit
        self._device = model.device
        self._capture = capture or CudaCapture(self._device, remedy=REMEDY)
        self._seen: Counter[tuple[int, ...]] = Counter()
        self._graphed: OrderedDict[tuple[int, ...], list[GraphedCache]] = OrderedDict()
        self._full = False  # whether there was no room for a shape even without those of others

    @property
    def training(self) -> bool:
        """Whether the model is not in evaluation mode."""
        return self._model.training

    @property
    def max_target_length(self) -> int | None:
        """See `decoding.model.Model`."""
        return self._model.max_target_length

    def encode(self, source: Tensor) -> Memory | list[Memory]:
        """See `decoding.model.Model`; more PAD is added."""
        length = source.shape[1]
        more = min(_rounded(length), self.max_target_length or _rounded(length)) - length
        return self._model.encode(functional.pad(source, (0, max(0, more)), value=PAD))

    def start(self, memory: Memory | list[Memory], *, beam_size: int) -> DecoderCache | EnsembleCache:
        """See `decoding.model.Model`."""
        cache: DecoderCache | EnsembleCache = self._model.start(memory, beam_size=beam_size)
        if isinstance(cache, EnsembleCache):
            return EnsembleCache(self._replayed(cache.caches))
        return self._replayed([cache])[0]

    def step(self, tokens: Tensor, cache: DecoderCache | EnsembleCache) -> Tensor | list[Tensor]:
        """See `decoding.model.Model`."""
        return self._model.step(tokens, cache)

    def project(self, states: Tensor | list[Tensor]) -> Tensor:
        """See `decoding.model.Model`."""
        return self._model.project(states)

    def _replayed(self, caches: Sequence[DecoderCache]) -> list[DecoderCache]:
        """The new caches of a batch, or graphed ones in their place."""
        batch, _, beam, _ = caches[0].mask.shape
        source = caches[0].layers[0].cross.key.shape[2]
        rows = _rows(batch)
        shape = rows, beam, source, int(caches[0].memory_mask is not None)
        self._seen[shape] += 1
        graphed = self._graphed.pop(shape, None)
        if graphed is None:
            if self._seen[shape] == 1 or not self._make_room():
                return list(caches)
            steps = _rounded(self._limit(source))
            try:
                graphed = [
                    GraphedCache(cache, rows=rows, steps=steps, capture=self._capture) for cache in caches
                ]
            except torch.OutOfMemoryError:  # for all steps at once; the cache of a search grows with it
                return list(caches)
        self._graphed[shape] = graphed
        for fixed, new in zip(graphed, caches, strict=True):
            fixed.begin(new)
        return list(graphed)

    def _make_room(self) -> bool:
        """Whether there is room for one more shape, for which others are forgotten."""
        while not self._full and (len(self._graphed) == MOST_SHAPES or not has_room(self._device)):
            self._full = not self._graphed
            if self._graphed:
                self._graphed.popitem(last=False)
        return not self._full


def _rounded(length: int) -> int:
    """Up to a multiple of `TOKENS_AT_A_TIME`."""
    return -(-length // TOKENS_AT_A_TIME) * TOKENS_AT_A_TIME


def _rows(batch: int) -> int:
    """Up to three significant binary digits: 1 to 8, 10, 12, 14, 16, 20, … ."""
    unit = 1 << max(0, batch.bit_length() - 3)
    return -(-batch // unit) * unit
