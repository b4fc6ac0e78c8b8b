"""The pairs of a training text whose sources have the rarest words, for a second validation set unlike the rest.

Knows tables of clean pairs. Does not know who takes the pairs out, and what they are used for.
"""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from endeavour.data.duplicates import SeenHashes, side_hashes
from endeavour.data.files import Pair
from endeavour.data.surface import letter_runs
from endeavour.data.tables import read_tables
from endeavour.errors import UserError


def rarest_pairs(tables: Sequence[Path], count: int, key: Callable[[Pair], Pair]) -> list[Pair]:
    """The `count` pairs with the rarest words in their sources, the rarest first; of equals the earlier.

    A source is the rarer, the further the mean logarithm of its words' frequencies lies below that of all words, in
    standard errors: the sum of (log f(w) - μ) over its n different words, divided by σ √n, where f(w) is the number of
    sources that have the word, and μ and σ are mean and standard deviation of log f over the words of all sources. So
    neither short sentences, whose means scatter more, nor long ones, which have more words that may be rare, are
    preferred. Words are runs of letters without case; sources without letters are not taken.

    Pairs whose source or target stood in an earlier one do not count. So what teachers make of the text, which is added
    behind it, changes nothing: translations of sources, or sources for its targets.

    Args:
        key: what of a pair is compared with earlier ones.

    Raises:
        UserError: these would be more than half of the sources.
    """
    frequencies = Counter(word for pair in _distinct(tables, key) for word in _words(pair[0]))
    logarithms = {word: math.log(frequency) for word, frequency in frequencies.items()}
    total = max(frequencies.total(), 1)
    mean = math.fsum(frequencies[word] * value for word, value in logarithms.items()) / total
    squares = math.fsum(frequencies[word] * (value - mean) ** 2 for word, value in logarithms.items())
    deviation = math.sqrt(squares / total) or 1.0
    sources = 0

    def scored() -> Iterator[tuple[float, int, Pair]]:
        nonlocal sources
        for sources, pair in enumerate(_distinct(tables, key), start=1):
            if words := _words(pair[0]):
                above = math.fsum(logarithms[word] - mean for word in words)
                yield above / (deviation * math.sqrt(len(words))), sources, pair

    rarest = heapq.nsmallest(count, scored())
    if 2 * len(rarest) > sources or len(rarest) < count:
        raise UserError(
            f"corpus.held_out_rare={count}: the training text has {sources:,} different sources, of which at most half "
            "can be held out; choose a smaller number, or null"
        )
    return [pair for _, _, pair in rarest]


def _distinct(tables: Sequence[Path], key: Callable[[Pair], Pair]) -> Iterator[Pair]:
    """The pairs of which neither side stood in an earlier one, in order."""
    seen = SeenHashes()
    for table in tables:
        for pairs in read_tables(table):
            again = seen.drops(side_hashes(map(key, pairs)))
            seen.take_new()  # which nobody needs here, and which it would keep
            yield from (pair for pair, known in zip(pairs, again, strict=True) if not known)


def _words(text: str) -> set[str]:
    return set(letter_runs(text.casefold()))
