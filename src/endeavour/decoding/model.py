"""What a search asks of a model: `Transformer` has it, and so has an ensemble of them."""

from typing import Any, Protocol

from torch import Tensor


class Cache(Protocol):
    """What a model remembers of a batch of beams between steps; see `model.attention.DecoderCache`."""

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis i of a sentence continues what was hypothesis parents[i]; parents are (batch, beam)."""
        ...

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only, in this order, a repeated one as often as it stands there."""
        ...


class Model(Protocol):
    """Memory, cache and states are the model's own affair: a search only hands them back.

    Shapes: batch = sentences; beam = hypotheses of one sentence.
    """

    training: bool

    @property
    def max_target_length(self) -> int | None:
        """Target positions there are, BOS included; None for no limit."""
        ...

    def encode(self, source: Tensor) -> Any:
        """Ids (batch, source), padded on the right, to the memory of them."""
        ...

    def start(self, memory: Any, *, beam_size: int) -> Cache:
        """A cache for `step`, with nothing decoded yet."""
        ...

    def step(self, tokens: Tensor, cache: Any) -> Any:
        """The newest ids (batch, beam) to the states there."""
        ...

    def project(self, states: Any) -> Tensor:
        """States to logits (batch, beam, vocabulary): a softmax of them gives the next token's probabilities."""
        ...
