"""What an evaluation found: the lines, the scores, and the figures that follow from both.

Knows finished lines and scores; not what made them, and not how a report of them looks.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from endeavour.evaluation.metrics import (
    Score,
    bleu_key,
    check_counts,
    sentence_scores,
)
from endeavour.evaluation.overlap import Overlap
from endeavour.evaluation.rates import OutputRates, output_rates
from endeavour.evaluation.subsets import (
    LabelScore,
    LengthBucket,
    bleu_by_label,
    bleu_by_source_length,
    without_capitals,
)

EXAMPLES_EACH = 10  # of the best, the worst and random translations


@dataclass(frozen=True)
class Example:
    """One sentence of the sample: its line number (from 1), its texts and its sentence chrF2."""

    line: int
    source: str
    reference: str
    hypothesis: str
    chrf: float


@dataclass(frozen=True)
class PerturbedScores:
    """What became of an altered copy of the test set: in how many sources it differs, and its scores by metric."""

    altered: int
    scores: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """The translations of one test set and their scores.

    Attributes:
        scores: what `score_corpus` returns.
        lowercase: whether the model writes no capitals: then parts, sentences and rates ignore those of the lines.
        labels: of each sentence, by what they are: domain, document …
        overlap: with the training text; None where that is not at hand.
        perturbed: its altered copies, by how they were altered.
        decoding, model: settings to show (name, beam size, digest …).
        bootstrap_samples: of the intervals of BLEU by label.
        seed: draws these, and picks the random translations.

    Raises:
        UserError: the line counts differ, or there are no lines.
    """

    title: str
    sources: Sequence[str]
    hypotheses: Sequence[str]
    references: Sequence[str]
    scores: Mapping[str, Score]
    lowercase: bool = False
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    overlap: Overlap | None = None
    perturbed: Mapping[str, PerturbedScores] = field(default_factory=dict[str, PerturbedScores])
    decoding: Mapping[str, object]
    model: Mapping[str, object]
    bootstrap_samples: int
    seed: int

    def __post_init__(self) -> None:
        check_counts(sources=self.sources, hypotheses=self.hypotheses, references=self.references)

    @property
    def bleu_key(self) -> str:
        """The one of `scores` by which the model is to be judged."""
        return bleu_key(lowercase=self.lowercase)

    @property
    def _judged(self) -> tuple[Sequence[str], Sequence[str]]:
        """Hypotheses and references."""
        return self._as_read(self.hypotheses), self._as_read(self.references)

    def _as_read(self, lines: Sequence[str]) -> Sequence[str]:
        return without_capitals(lines) if self.lowercase else lines

    @cached_property
    def buckets(self) -> list[LengthBucket]:
        return bleu_by_source_length(self.sources, *self._judged)

    @cached_property
    def bleu_by_label(self) -> dict[str, list[LabelScore]]:
        """By what the labels are the scores of each."""
        return {
            kind: bleu_by_label(
                *self._judged, labels, bootstrap_samples=self.bootstrap_samples, seed=self.seed
            )
            for kind, labels in self.labels.items()
        }

    @cached_property
    def rates(self) -> dict[str, OutputRates]:
        """Of the outputs, and of the references, which show what is normal for the corpus."""
        sources, (hypotheses, references) = self._as_read(self.sources), self._judged
        return {
            "outputs": output_rates(sources, hypotheses, references),
            "references": output_rates(sources, references, references),
        }

    @cached_property
    def examples(self) -> dict[str, list[Example]]:
        """Up to EXAMPLES_EACH `best`, `worst` and `random` translations by sentence chrF2."""
        chrf = sentence_scores(*self._judged)
        columns = zip(self.sources, self.references, self.hypotheses, chrf, strict=True)
        return pick_examples([Example(row, *texts) for row, texts in enumerate(columns, 1)], seed=self.seed)

    def record(self) -> dict[str, Any]:
        """All figures, as plain values for JSON."""
        return {
            "title": self.title,
            "sentences": len(self.hypotheses),
            "scores": {key: asdict(score) for key, score in self.scores.items()},
            "bleu_by_source_length": [asdict(bucket) for bucket in self.buckets],
            "bleu_by_label": {
                kind: [asdict(score) for score in scores] for kind, scores in self.bleu_by_label.items()
            },
            "overlap": None if self.overlap is None else asdict(self.overlap),
            "perturbed": {name: asdict(copy) for name, copy in self.perturbed.items()},
            "output_rates": {name: asdict(rates) for name, rates in self.rates.items()},
            "decoding": dict(self.decoding),
            "model": dict(self.model),
            "seed": self.seed,
        }


def pick_examples(examples: Sequence[Example], *, seed: int) -> dict[str, list[Example]]:
    """Choose up to `EXAMPLES_EACH` `best`, `worst` and `random` translations, no line twice.

    Of equal scores the longer source comes first: a perfect `Yes.` shows little. The random ones depend on `seed`
    alone and keep the order of the corpus.
    """
    count = min(EXAMPLES_EACH, max(len(examples) // 3, 1))
    best = sorted(examples, key=lambda example: (-example.chrf, -len(example.source)))[:count]
    others = [example for example in examples if example not in best]
    worst = sorted(others, key=lambda example: (example.chrf, -len(example.source)))[:count]
    others = [example for example in others if example not in worst]
    chosen = random.Random(seed).sample(others, min(count, len(others)))
    return {"best": best, "worst": worst, "random": sorted(chosen, key=lambda example: example.line)}
