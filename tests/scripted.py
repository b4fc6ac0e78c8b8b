"""A model whose every probability a test writes down, so that a search's result can be worked out by hand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from endeavour.special import EOS

VOCABULARY = 7
WORD, OTHER = EOS + 1, EOS + 2
# Probabilities of some tokens; what is missing from 1 goes to a token that no test asks for.
Step = dict[int, float]
REST = VOCABULARY - 1


@dataclass
class Cache:
    """The sentences in work, (batch), and how many steps were made."""

    rows: Tensor
    steps: int = 0

    def reorder(self, parents: Tensor) -> None:
        assert parents.shape[0] == len(self.rows)

    def select(self, sentences: Tensor) -> None:
        self.rows = self.rows[sentences]


@dataclass
class Scripted:
    """A `decoding.model.Model`: a sentence's next token depends on its place alone.

    `scripts[n]` are the steps of sentence n; its last one is repeated. `seen` gathers (batch, beam) of each step.
    """

    scripts: Sequence[Sequence[Step]]
    max_target_length: int | None = None
    training: bool = False
    seen: list[tuple[int, int]] = field(default_factory=list)

    def encode(self, source: Tensor) -> Tensor:
        return torch.arange(len(source))

    def start(self, memory: Tensor, *, beam_size: int) -> Cache:
        return Cache(memory)

    def step(self, tokens: Tensor, cache: Cache) -> Tensor:
        self.seen.append((tokens.shape[0], tokens.shape[1]))
        rows = [self._logits(row, cache.steps) for row in cache.rows.tolist()]
        cache.steps += 1
        return torch.tensor(rows)[:, None].expand(-1, tokens.shape[1], -1)

    def project(self, states: Tensor) -> Tensor:
        return states.clone()

    def _logits(self, row: int, step: int) -> list[float]:
        script = self.scripts[row]
        chances = dict(script[min(step, len(script) - 1)])
        chances[REST] = chances.get(REST, 0.0) + 1.0 - sum(chances.values())
        return [math.log(max(chances.get(token, 0.0), 1e-30)) for token in range(VOCABULARY)]


def sources(count: int, tokens: int = 1) -> Tensor:
    """`count` sentences of `tokens` words."""
    return torch.tensor([[WORD] * tokens + [EOS]] * count)
