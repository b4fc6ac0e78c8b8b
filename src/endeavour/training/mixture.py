"""Which pairs an epoch holds where the training split has parts: shares by weight, drawn anew in each stage.

A pure function of seed, stage and epoch. Knows how many pairs the parts have; not their lengths, batches or text.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from endeavour.errors import UserError
from endeavour.settings import STRICT


@dataclass(kw_only=True, config=STRICT)
class Stage:
    """A stretch of the updates of a training, and the weights of the parts in it."""

    until: PositiveInt | None  # its last update
    weights: dict[str, NonNegativeFloat]  # of a part that is not named 0

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if not any(self.weights.values()):
            raise ValueError("training.mixture: no part has a positive weight in one of the stages")
        return self

    def pairs(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """How many pairs of each part one epoch holds.

        Together as many as the parts with a positive weight have, in proportion to the weights; what is left over after
        rounding down goes to the largest fractions.

        Args:
            sizes: of each part its number of pairs.

        Raises:
            UserError: a part with a positive weight would have no pair.
        """
        weights = np.array([self.weights.get(part, 0.0) for part in sizes])
        total = sum(size for size, weight in zip(sizes.values(), weights, strict=True) if weight)
        exact = total * (weights / weights.sum())
        counts = np.floor(exact).astype(np.int64)
        counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
        for part, weight, count in zip(sizes, weights, counts, strict=True):
            if weight and not count:
                raise UserError(
                    f"training.mixture: the weight {weight:g} gives {part} not one of the {total:,} pairs of an epoch; "
                    "raise it or set it to 0"
                )
        return dict(zip(sizes, counts.tolist(), strict=True))


class Mixture:
    """The pairs of each epoch of each stage, as row numbers.

    Args:
        sizes: of each part its number of pairs, in the order of their rows.
    """

    def __init__(self, stages: Sequence[Stage], sizes: Mapping[str, int], seed: int) -> None:
        self._stages = stages
        self._seed = seed
        self._sizes = list(sizes.values())
        self._begins = [0, *accumulate(self._sizes)]
        self._counts = [list(stage.pairs(sizes).values()) for stage in stages]

    def stage_after(self, update: int) -> int:
        """The number of the stage that the update after `update` belongs to."""
        return next(
            number for number, stage in enumerate(self._stages) if stage.until is None or update < stage.until
        )

    def rows(self, stage: int, epoch: int) -> NDArray[np.int64]:
        """The pairs of an epoch, of which the stage's first is 0, part by part.

        From each part they continue a stream of permutations of it, so that within a stage every pair of a part is
        drawn as often as every other, or once more.
        """
        drawn = [
            self._begins[part] + self._stretch(stage, part, epoch * count, count)
            for part, count in enumerate(self._counts[stage])
            if count
        ]
        return np.concatenate(drawn)

    def _stretch(self, stage: int, part: int, begin: int, count: int) -> NDArray[np.int64]:
        size = self._sizes[part]
        numbers = range(begin // size, -(-(begin + count) // size))
        # The last number keeps these seeds apart from those of `epoch_batches`.
        permutations = [
            np.random.default_rng((self._seed, stage, part, number, 1)).permutation(size)
            for number in numbers
        ]
        return np.concatenate(permutations)[begin - numbers[0] * size :][:count]
