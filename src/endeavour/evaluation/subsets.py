"""BLEU of subsets of a test set: of sentences of similar length, and of those that share a label.

Knows lines of text; not what a label means: it may be a domain, a document, or whatever a file says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU

from endeavour.evaluation.metrics import (
    BOOTSTRAP_BYTES,
    Metric,
    affordable,
    check_counts,
    length_ratio,
    sacrebleu_seed,
    score_with_interval,
)

# Upper ends in source words, after which an open bucket follows. Fixed, so that the reports of two runs can be laid
# side by side.
LENGTH_EDGES = (5, 10, 15, 20, 30, 40, 60)

FEW_FOR_INTERVAL = 30  # with fewer sentences a resample says little

_BLEU = Metric("BLEU", partial(BLEU, effective_order=True, force=True))


class RowGroup(NamedTuple):
    """The rows whose values are in a range: lowest and highest, both included (None: no upper end), and the rows."""

    low: int
    high: int | None
    rows: list[int]


@dataclass(frozen=True)
class LengthBucket:
    """The sentences with `shortest` to `longest` source words (whitespace-separated; None: no upper end).

    An empty sentence is in the first.
    """

    shortest: int
    longest: int | None
    sentences: int
    bleu: float
    length_ratio: float  # hypothesis words / reference words

    @property
    def label(self) -> str:
        """The range in words, such as `6–10` or `61+`."""
        return range_label(self.shortest, self.longest)


@dataclass(frozen=True)
class LabelScore:
    """The sentences of one label: BLEU (0–100) and its 95% interval, None where there are too few for one."""

    label: str
    sentences: int
    bleu: float
    low: float | None
    high: float | None


def bleu_by_source_length(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> list[LengthBucket]:
    """`part_bleu` of the sentences of similar source length; buckets without a sentence are left out.

    Raises UserError where the line counts differ or there are no lines.
    """
    check_counts(sources=sources, hypotheses=hypotheses, references=references)
    buckets: list[LengthBucket] = []
    for shortest, longest, rows in rows_by_length(sources):
        outputs, wanted = [hypotheses[row] for row in rows], [references[row] for row in rows]
        bleu, ratio = part_bleu(outputs, wanted), length_ratio(outputs, wanted)
        buckets.append(LengthBucket(shortest, longest, len(rows), bleu, ratio))
    return buckets


def rows_by_length(sources: Sequence[str]) -> list[RowGroup]:
    """By source words; an empty sentence is in the first group, which begins at 1."""
    groups = group_rows([len(source.split()) for source in sources], LENGTH_EDGES)
    return [RowGroup(max(low, 1), high, rows) for low, high, rows in groups]


def group_rows(values: Sequence[int], edges: Sequence[int]) -> list[RowGroup]:
    """The rows of `values` (each 0 or more) by range.

    `edges` are the rising upper ends; an open range (None) follows the last. Ranges without a row are left out.
    """
    groups: list[RowGroup] = []
    for low, high in zip([0, *(edge + 1 for edge in edges)], [*edges, None], strict=True):
        rows = [row for row, value in enumerate(values) if low <= value and (high is None or value <= high)]
        if rows:
            groups.append(RowGroup(low, high, rows))
    return groups


def range_label(low: int, high: int | None) -> str:
    """Both ends included, such as `6–10`, `5` or, without an upper end, `61+`."""
    if high is None:
        return f"{low}+"
    return str(low) if low == high else f"{low}–{high}"


def without_capitals(lines: Sequence[str]) -> list[str]:
    """Lines as sacreBLEU's lowercased BLEU sees them."""
    return [line.lower() for line in lines]


def part_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU (0–100) of some sentences of a corpus: n-gram orders for which none is long enough do not count
    (`effective_order`), else a few two-word sentences would score 0 even where every word is right."""
    return float(_BLEU.make().corpus_score(hypotheses, [references]).score)


def bleu_by_label(
    hypotheses: Sequence[str],
    references: Sequence[str],
    labels: Sequence[str],
    *,
    bootstrap_samples: int,
    seed: int,
) -> list[LabelScore]:
    """One score a label, that of most sentences first; of as many, the label that comes first in the test set."""
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    scores: list[LabelScore] = []
    for label, chosen in sorted(rows.items(), key=lambda entry: -len(entry[1])):
        outputs, wanted = [hypotheses[row] for row in chosen], [references[row] for row in chosen]
        if len(chosen) < FEW_FOR_INTERVAL:
            scores.append(LabelScore(label, len(chosen), part_bleu(outputs, wanted), None, None))
        else:
            samples = affordable(bootstrap_samples, len(chosen), size=BOOTSTRAP_BYTES)
            with sacrebleu_seed(seed):
                score = score_with_interval(_BLEU, outputs, wanted, samples=samples)
            scores.append(LabelScore(label, len(chosen), score.value, score.low, score.high))
    return scores
