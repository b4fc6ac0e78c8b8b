"""The interface that a search needs of a model; `Transformer`, `Ensemble` and `GraphedModel` have it."""

from typing import Any, Protocol

from torch import Tensor


class Cache(Protocol):
    """A model's state between steps, for a batch of beams; see `model.decoder_step.DecoderCache`."""

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis i of a sentence continues what was hypothesis parents[i]; parents are (batch, beam)."""
        ...

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only, in this order; repeated ones are copied."""
        ...


class Model(Protocol):
    """Memory, cache and states are opaque to the search, which only passes them back.

    Shapes: batch = sentences; beam = hypotheses of one sentence.
    """

    @property
    def training(self) -> bool:
        """Whether there would be dropout."""
        ...

    @property
    def max_target_length(self) -> int | None:
        """Number of target positions, BOS included; None for no limit."""
        ...

    def encode(self, source: Tensor) -> Any:
        """Ids (batch, source), padded on the right, to the model's memory."""
        ...

    def start(self, memory: Any, *, beam_size: int) -> Cache:
        """A cache for `step`, with nothing decoded yet."""
        ...

    def step(self, tokens: Tensor, cache: Any) -> Any:
        """The newest ids (batch, beam) to their states."""
        ...

    def project(self, states: Any) -> Tensor:
        """States to logits (batch, beam, vocabulary): a softmax of them gives the next token's probabilities."""
        ...
