"""Pairs with the scores that two models gave them, on disk, and which of them are worth training on.

Knows no models, and not where the pairs came from.
"""

import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from endeavour.data.cleaning import Step
from endeavour.data.files import Pair
from endeavour.storage import written_beside

COLUMNS = ("en", "de", "score", "en-de", "de-en")
_DECILES = 10


@dataclass(frozen=True)
class ScoredPair:
    """A pair in normal form, English and German, and its cross-entropies in nats a token, NaN if it was too long."""

    pair: Pair
    forward: float  # of the German side, given the English one
    backward: float

    @property
    def score(self) -> float:
        """Between 0 and 1: that both models find the pair probable, and equally so.

        Dual conditional cross-entropy (Junczys-Dowmunt 2018, "Dual Conditional Cross-Entropy Filtering of Noisy
        Parallel Corpora"): exp(-(|f - b| + (f + b) / 2)).
        """
        if math.isnan(self.forward + self.backward):
            return 0.0
        return math.exp(-(abs(self.forward - self.backward) + (self.forward + self.backward) / 2))


@dataclass(frozen=True)
class Selection:
    """What was kept: how many of all, the lowest score among them, and the step that dropped the others.

    Attributes:
        deciles: the score that each tenth of the pairs, the best first, ends with, and a pair of that score.
    """

    pairs: int
    kept: int
    lowest: float
    step: Step
    deciles: list[tuple[float, Pair]]


def write_scored(path: Path, rows: Iterable[ScoredPair]) -> None:
    """Writes TSV lines without a header."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            scores = (f"{row.score:.4g}", f"{row.forward:.4f}", f"{row.backward:.4f}")
            file.write("\t".join((*row.pair, *scores)) + "\n")


def join_scored(parts: Iterable[Path], path: Path) -> None:
    """Joins what `write_scored` wrote, under a header."""
    with path.open("wb") as file:
        file.write(("\t".join(COLUMNS) + "\n").encode())
        for part in parts:
            file.write(part.read_bytes())


def select_pairs(scored: Path, kept: Path, *, keep: float, min_score: float) -> Selection:
    """Writes the pairs worth training on to `kept`, whole or not at all, in the order of `scored` and like it.

    Args:
        scored: what `join_scored` wrote.
        keep: share of the pairs, the best, that are kept, unless …
        min_score: … their score is below this.
    """
    scores = np.array(array("d", (float(line.split("\t")[2]) for line in _lines(scored))))
    order = np.argsort(-scores, kind="stable")  # of pairs with the same score the first are kept
    best = order[: round(keep * len(scores))]
    chosen = np.zeros(len(scores), bool)
    chosen[best] = scores[best] >= min_score
    lowest = float(scores[chosen].min()) if chosen.any() else min_score
    step = Step(f"score below {lowest:g}")
    shown = _at_deciles(order)
    examples: dict[int, Pair] = {}
    with written_beside(kept) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(COLUMNS) + "\n")
        for number, line in enumerate(_lines(scored)):
            english, german, *_ = line.split("\t")
            if chosen[number]:
                file.write(line)
            else:
                step.drop((english, german))
            if number in shown:
                examples[number] = (english, german)
    deciles = [(float(scores[number]), examples[number]) for number in shown]
    return Selection(len(scores), int(chosen.sum()), lowest, step, deciles)


def _at_deciles(order: NDArray[np.intp]) -> list[int]:
    ends = (round(len(order) * tenth / _DECILES) - 1 for tenth in range(1, _DECILES + 1))
    return list(dict.fromkeys(int(order[end]) for end in ends if end >= 0))


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="\n") as file:
        next(file)
        yield from file
