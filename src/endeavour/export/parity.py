"""Is an exported model the same model? Both translate the same sentences, and our model judges the differences.

Knows two engines, our model, and ids; of text only what BLEU needs.

Two searches may differ without a fault in either, so identical translations are counted, not demanded. What a
float format must show is that both models give the same probability, to the references and to what the exported
one translates: then every difference is a tie, or one search found what the other missed, and the counts say
which.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from endeavour.decoding.engine import Engine, Hypothesis, limit_of
from endeavour.decoding.length_penalty import length_penalty
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.scoring import log_probabilities
from endeavour.evaluation.metrics import corpus_bleu

# Nats a token. Sums of float32 in another order differ by some 1e-6, a wrong weight by far more.
TOLERANCE = 1e-3
TURNS = 10  # in which two engines are timed


class ExportedEngine(Engine, Protocol):
    """An engine that also scores given translations."""

    @property
    def compute_type(self) -> str:
        """The type of the numbers it computes with, which need not be that of the weights on disk."""
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """Log-probability of each target (ids without BOS and EOS) and of EOS after it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Parity:
    """The comparison, sentence by sentence; `ties + ours_better + theirs_better = sentences - identical`."""

    sentences: int
    identical: int
    ties: int
    """Other words, but our model scores both the same, within the tolerance."""
    ours_better: int
    """By our model's score the exported one's search missed something."""
    theirs_better: int
    largest_difference: float
    """Of log-probabilities, in nats a token, EOS counted: of the references, and of the exported model's
    translations except for those that a limit may have cut."""
    bleu_pytorch: float
    bleu_exported: float
    speed: float
    """Sentences a second over those of PyTorch, measured in turns."""
    compute_type: str

    @property
    def same_model(self) -> bool:
        """The probabilities agree: what a float format has to show."""
        return self.largest_difference <= TOLERANCE

    @property
    def bleu_difference(self) -> float:
        return self.bleu_exported - self.bleu_pytorch


def measure_parity(
    pytorch: PyTorchEngine,
    exported: ExportedEngine,
    *,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    references: Sequence[str],
    decode: Callable[[list[list[int]]], list[str]],
    excluded: Sequence[int],
) -> Parity:
    """Translates `sources` with both engines and compares the best translations.

    Args:
        pytorch: our search in fp32 over the model that was exported, which is in evaluation mode and judges.
        exported: the other engine, with the same settings.
        sources: ids, ending in EOS.
        targets: ids of the references, without BOS and EOS.
        references: untouched lines, or in small letters for a model that writes only those.
        decode: target ids to text.
        excluded: ids that the exported model's log-probabilities count as impossible.
    """
    model, decoding = pytorch.model, pytorch.decoding
    assert decoding.precision == "fp32", "it would be judged by a rounded copy"
    (ours, seconds), (theirs, their_seconds) = _searched(pytorch, exported, sources)

    def judge(ids: Sequence[Sequence[int]], excluded: Sequence[int] = ()) -> list[float]:
        return log_probabilities(model, sources, ids, excluded=excluded, device=model.device)

    own = [found.ids for found in theirs]
    reported = [found.log_probability for found in theirs]
    # One as long as its limit may have been cut, and the probability of its end is not known.
    limits = [limit_of(decoding, len(source) - 1, positions=exported.longest) for source in sources]
    whole = [len(ids) < limit for ids, limit in zip(own, limits, strict=True)]
    differences = _differences(judge(targets), exported.score(sources, targets), targets)
    own_differences = _differences(judge(own, excluded), reported, own)
    differences += [value for value, counts in zip(own_differences, whole, strict=True) if counts]
    kinds = [
        _kind(mine, other, score, alpha=decoding.length_penalty)
        for mine, other, score in zip(ours, theirs, judge(own), strict=True)
    ]
    texts = [decode([found.ids for found in hypotheses]) for hypotheses in (ours, theirs)]
    return Parity(
        sentences=len(sources),
        identical=kinds.count("identical"),
        ties=kinds.count("tie"),
        ours_better=kinds.count("ours"),
        theirs_better=kinds.count("theirs"),
        # A NaN on either side is a difference, and max() could ignore it.
        largest_difference=max(value if math.isfinite(value) else math.inf for value in differences),
        bleu_pytorch=corpus_bleu(texts[0], references),
        bleu_exported=corpus_bleu(texts[1], references),
        speed=seconds / their_seconds,
        compute_type=exported.compute_type,
    )


def _searched(
    first: Engine, second: Engine, sources: Sequence[Sequence[int]]
) -> tuple[tuple[list[Hypothesis], float], tuple[list[Hypothesis], float]]:
    """The best translations by either engine, and the seconds that each took.

    They take turns, so that whatever else the machine does slows both. A turn has sentences of like length, which share
    batches as they would if all were given at once.
    """
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    size = max(1, math.ceil(len(order) / TURNS))
    found: tuple[dict[int, Hypothesis], dict[int, Hypothesis]] = ({}, {})
    seconds = [0.0, 0.0]
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        for number, engine in enumerate((first, second)):
            begin = time.perf_counter()
            answers = engine.search([sources[row] for row in rows])
            seconds[number] += time.perf_counter() - begin
            found[number].update((row, answer[0]) for row, answer in zip(rows, answers, strict=True))
    ours, theirs = ([each[row] for row in range(len(sources))] for each in found)
    return (ours, seconds[0]), (theirs, seconds[1])


def _differences(ours: list[float], theirs: list[float], ids: Sequence[Sequence[int]]) -> list[float]:
    """Of log-probabilities, in nats a token, EOS counted."""
    return [abs(mine - their) / (len(row) + 1) for mine, their, row in zip(ours, theirs, ids, strict=True)]


def _kind(ours: Hypothesis, theirs: Hypothesis, log_probability: float, *, alpha: float) -> str:
    """Of a pair of translations; `log_probability` is what our model gives to theirs."""
    if ours.ids == theirs.ids:
        return "identical"
    difference = log_probability / length_penalty(len(theirs.ids) + 1, alpha) - ours.score
    if abs(difference) <= TOLERANCE:
        return "tie"
    return "ours" if difference < 0 else "theirs"
