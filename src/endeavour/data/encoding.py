"""Batches of text to rows of ids, for a training split with the altered copies behind their pairs.

Knows tokenizers and limits on length; no files, and not where the text comes from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from endeavour.data.augmentation import Augmenter
from endeavour.data.cleaning import CleaningConfig, LengthCleaner, Step
from endeavour.data.dataset import Rows, flat
from endeavour.data.files import Pair
from endeavour.data.protection import protect_training_pair
from endeavour.data.tokenizer import Tokenizers, encode_normal_pairs, encode_pairs


@dataclass(frozen=True)
class Encoded:
    """What became of a batch of clean training pairs.

    Attributes:
        met: how many there were.
        pairs: those whose length is within the limits, in order.
        rows: the ids of these and of their copies, each copy behind its pair, of source and target.
        steps: what was done to the others by each limit on length, and the copies that each perturbation added.
    """

    met: int
    pairs: list[Pair]
    rows: tuple[Rows, Rows]
    steps: list[Step]


class TrainingEncoder:
    """Encodes pairs in normal form, without those that are too long, and adds copies. Remembers nothing."""

    def __init__(self, tokenizers: Tokenizers, cleaning: CleaningConfig, augmenter: Augmenter) -> None:
        self._tokenizers = tokenizers
        self._cleaning = cleaning
        self._augmenter = augmenter

    def __call__(self, pairs: Sequence[Pair]) -> Encoded:
        lengths = LengthCleaner(self._cleaning, tag=len(self._tokenizers[0].tag))
        encoded = zip(
            pairs, *encode_normal_pairs(self._tokenizers, pairs, protect_training_pair), strict=True
        )
        kept = [
            (pair, (source, target))
            for pair, source, target in encoded
            if lengths.keep(pair, len(source), len(target))
        ]
        genuine = [pair for pair, _ in kept]
        copies, counted = self._augmenter.encoded_copies(genuine, self._tokenizers)
        rows = [row for number, (_, own) in enumerate(kept) for row in (own, *copies.get(number, []))]
        return Encoded(len(pairs), genuine, _flat(rows, self._tokenizers), [*lengths.steps, *counted])


def flat_pairs(pairs: Sequence[Pair], tokenizers: Tokenizers) -> tuple[Rows, Rows]:
    """The ids of pairs in normal form, of source and target: all of them, as validation and test are encoded."""
    return _flat(list(zip(*encode_pairs(tokenizers, pairs), strict=True)), tokenizers)


def _flat(rows: Sequence[tuple[list[int], list[int]]], tokenizers: Tokenizers) -> tuple[Rows, Rows]:
    source, target = tokenizers
    return (
        flat([row for row, _ in rows], vocabulary_size=source.vocabulary_size),
        flat([row for _, row in rows], vocabulary_size=target.vocabulary_size),
    )
