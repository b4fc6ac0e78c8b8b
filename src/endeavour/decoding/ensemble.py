"""Several models that decode as one: the probability of the next token is the mean of theirs.

Knows models with the same pair of vocabularies; not where they come from. They may differ in everything else.
Probabilities are averaged, not their logarithms: a token that one model is sure of stays possible whatever the
others predict (Hansen & Salamon 1990, "Neural network ensembles"; in neural translation
since Sutskever et al. 2014, "Sequence to sequence learning with neural networks").

Shapes: batch = sentences; beam = hypotheses of one sentence.
"""

import math
from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from endeavour.model.decoder_step import DecoderCache
from endeavour.model.transformer import Memory, Transformer


class EnsembleCache:
    """The caches of all models, in their order."""

    def __init__(self, caches: list[DecoderCache]) -> None:
        self.caches = caches

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis i of a sentence continues what was hypothesis parents[i]; parents are (batch, beam)."""
        for cache in self.caches:
            cache.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only, in this order."""
        for cache in self.caches:
            cache.select(sentences)


class Ensemble(nn.Module):
    """A `decoding.model.Model` of Transformers with the same vocabularies, on one device."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        super().__init__()
        sizes = {len(model.output_weight) for model in models}
        assert len(sizes) == 1, "an ensemble needs models over one target vocabulary"
        self.models = nn.ModuleList(models)
        self.train(any(model.training for model in models))

    @property
    def device(self) -> torch.device:
        """Where all of them compute."""
        return next(iter(self._transformers)).device

    @property
    def max_target_length(self) -> int | None:
        """The limit of the model with the fewest positions; None if no model has a limit."""
        limits = [model.max_target_length for model in self._transformers]
        return min((limit for limit in limits if limit is not None), default=None)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Ids (batch, source) and (batch, target) to what `project` returns, (batch, target, target_vocabulary)."""
        return self.project([model.decode(target_in, model.encode(source)) for model in self._transformers])

    def encode(self, source: Tensor) -> list[Memory]:
        """Ids (batch, source) to the memory of each model."""
        return [model.encode(source) for model in self._transformers]

    def start(self, memory: list[Memory], *, beam_size: int) -> EnsembleCache:
        """An empty cache for `step`."""
        return EnsembleCache(
            [
                model.start(own, beam_size=beam_size)
                for model, own in zip(self._transformers, memory, strict=True)
            ]
        )

    def step(self, tokens: Tensor, cache: EnsembleCache) -> list[Tensor]:
        """The newest ids (batch, beam) to each model's states (batch, beam, its width)."""
        return [model.step(tokens, own) for model, own in zip(self._transformers, cache.caches, strict=True)]

    def project(self, states: list[Tensor]) -> Tensor:
        """Each model's states (..., its width) to the logarithm of the mean of their probabilities, float32.

        (..., target_vocabulary). A softmax does not change it, so that a search may use it as logits.
        """
        each = [
            model.project(own).float().log_softmax(dim=-1)
            for model, own in zip(self._transformers, states, strict=True)
        ]
        return torch.stack(each).logsumexp(dim=0) - math.log(len(each))

    @property
    def _transformers(self) -> Iterable[Transformer]:
        return cast(Iterable[Transformer], self.models)
