"""Masked copies of sentences, which a model learns to restore before it learns to translate.

Text infilling (Lewis et al. 2020, "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation,
Translation, and Comprehension"), in both languages of the pairs (Liu et al. 2020, "Multilingual Denoising Pre-training
for Neural Machine Translation"). A copy depends on its sentence, its number and a seed alone. Knows no files and no
tokenizer.
"""

import random
from collections.abc import Sequence
from itertools import groupby
from math import factorial

from endeavour.data.files import Pair

MASK = "&"  # for each span; a character that any vocabulary spells in a piece or two
MASKED = 0.3  # of the words
MASKING = "masked copies, in place of the pairs"  # in reports
_MEAN = 3  # words of a span, of a Poisson distribution without its zero
_LENGTHS = range(1, 13)
_WEIGHTS = [_MEAN**length / factorial(length) for length in _LENGTHS]


def denoising_pairs(pairs: Sequence[Pair], copies: int, seed: int) -> list[Pair]:
    """(masked, whole) sentences: of both sides of each pair so many copies, or fewer where some are the same."""
    return [
        (masked, text)
        for pair in pairs
        for text in pair
        for masked in dict.fromkeys(
            _masked(text, random.Random(f"{seed} {number} {text}")) for number in range(copies)
        )
    ]


def _masked(text: str, draw: random.Random) -> str:
    words = text.split()
    wanted = max(1, round(MASKED * len(words)))
    hidden: set[int] = set()
    while words and len(hidden) < wanted:
        length = min(draw.choices(_LENGTHS, _WEIGHTS)[0], wanted - len(hidden))
        start = draw.randrange(len(words) - length + 1)
        hidden.update(range(start, start + length))
    spans = groupby(range(len(words)), hidden.__contains__)
    return " ".join(
        MASK if is_hidden else " ".join(words[n] for n in numbers) for is_hidden, numbers in spans
    )
