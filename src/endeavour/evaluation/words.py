"""Words of a line, how often they occur in the training text, and how well an output reproduces the rare ones.

Knows lines of text only, which are compared in their normal form, in which the training text is; not where that comes
from.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from endeavour.data.normalization import normalize
from endeavour.evaluation.subsets import RowGroup, group_rows

# Upper ends of the ranges of occurrences in the training text; the last range is open. 0: never seen.
FREQUENCY_EDGES = (0, 4, 99, 999)

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")


def words_of(line: str) -> list[str]:
    """The words of a line, cased, without punctuation; `well-known` and `don't` are one each."""
    return _WORD.findall(line)


@dataclass
class TrainingText:
    """What the training pairs hold: occurrences of the words of either side, and the target's characters."""

    source: Counter[str] = field(default_factory=Counter[str])
    target: Counter[str] = field(default_factory=Counter[str])
    target_characters: set[str] = field(default_factory=set[str])

    def add(self, pairs: Iterable[tuple[str, str]]) -> None:
        for source, target in pairs:
            self.source.update(words_of(source))
            self.target.update(words_of(target))
            self.target_characters.update(target)


@dataclass(frozen=True)
class WordBucket:
    """How well the outputs reproduce the words of one range of training occurrences; shares are 0–1."""

    lowest: int
    highest: int | None
    words: int  # in the references
    f1: float


def word_f1_by_frequency(
    hypotheses: Sequence[str], references: Sequence[str], occurrences: Counter[str]
) -> list[WordBucket]:
    """F1 of target words by how often the training text has them; ranges without a reference word are left out.

    As in compare-mt (Neubig et al. 2019, section 3.1, "word accuracy"): a sentence's matches of a word are the
    smaller of its counts in output and reference; precision is matches ÷ output words, recall matches ÷ reference
    words, summed over all words of the range, and F1 is their harmonic mean.
    """
    wanted, output, matched = Counter[str](), Counter[str](), Counter[str]()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        ours, theirs = (Counter(words_of(normalize(line))) for line in (hypothesis, reference))
        output.update(ours)
        wanted.update(theirs)
        matched.update(ours & theirs)
    words = list((wanted | output).keys())
    buckets: list[WordBucket] = []
    for low, high, rows in group_rows([occurrences[word] for word in words], FREQUENCY_EDGES):
        total = sum(wanted[words[row]] for row in rows)
        if not total:
            continue
        hits = sum(matched[words[row]] for row in rows)
        precision = hits / max(sum(output[words[row]] for row in rows), 1)
        recall = hits / total
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        buckets.append(WordBucket(low, high, total, f1))
    return buckets


def rows_by_rarest(lines: Sequence[str], occurrences: Counter[str]) -> list[RowGroup]:
    """By how often the training text has the rarest word of the line; 0 for a line without words."""
    words = (words_of(normalize(line)) for line in lines)
    return group_rows([min((occurrences[word] for word in row), default=0) for row in words], FREQUENCY_EDGES)
