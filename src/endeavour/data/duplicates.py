"""Which pairs occurred earlier, exactly or nearly: sorted arrays of 64-bit hashes, where texts take hundreds of bytes.

Two different texts of n collide with a probability of about n² / 2⁶⁵: 5e-7 for n = 4.5 million. Knows nothing of pairs
that are kept or dropped.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from endeavour.data.files import Pair
from endeavour.data.surface import Side
from endeavour.optional import require

Hashes = NDArray[np.uint64]

_BANDS = 5
_SEED = 42


class SeenHashes:
    """A set of hashes that remembers all it was asked for.

    It keeps ascending arrays, each at least twice as long as the next, so that each hash is sorted O(log n) times.
    """

    def __init__(self) -> None:
        self._arrays: list[Hashes] = []
        self._new: list[Hashes] = []

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """For each of `hashes` whether it occurred earlier, here or in another call; then remembers them all."""
        unique, first = np.unique(hashes, return_index=True)
        known = np.zeros(len(unique), bool)
        for array in self._arrays:
            known |= np.take(array, np.searchsorted(array, unique), mode="clip") == unique
        seen = np.ones(len(hashes), bool)
        seen[first[~known]] = False
        added = unique[~known]
        self._new.append(added)
        while self._arrays and len(self._arrays[-1]) < 2 * len(added):
            added = np.concatenate([self._arrays.pop(), added])
            added.sort()  # faster than to merge the two
        if len(added):
            self._arrays.append(added)
        return seen

    def drops(self, hashes: Hashes) -> NDArray[np.bool_]:
        """For each row of `hashes` whether one of them occurred earlier; then remembers them all."""
        return np.logical_or.reduce(self.add(hashes.ravel()).reshape(hashes.shape), axis=1)

    def take_new(self) -> Hashes:
        """The hashes that were added since this was last called."""
        new, self._new = self._new, []
        return np.concatenate([np.empty(0, np.uint64), *new])


def pair_hashes(pairs: Sequence[Pair]) -> Hashes:
    """One of each pair, of its text character by character; [pairs, 1]."""
    # No text in normal form holds a tab.
    return _hashes("\t".join(pair).encode() for pair in pairs).reshape(-1, 1)


def side_hashes(pairs: Sequence[Pair]) -> Hashes:
    """Two of each pair, of its source and of its target, which differ where the text is the same; [pairs, 2]."""
    return _hashes(text.encode() for source, target in pairs for text in (source, f"\t{target}")).reshape(
        -1, 2
    )


class NearHashes:
    """Five of each pair, of which pairs that share most of their words have one in common; [pairs, 5].

    MinHash (Broder 1997, "On the resemblance and containment of documents") over the set of the words of both sides,
    without case, punctuation and numbers; the signature is cut into bands, and pairs with an equal band are taken for
    near-duplicates (Leskovec et al. 2020, "Mining of Massive Datasets", section 3.4). Of pairs that have `similarity`,
    shared words by all words, two thirds are found; of those that share more, nearly all.

    Raises:
        UserError: rensa is not installed.
    """

    def __init__(self, similarity: float) -> None:
        self._minhash = require("rensa", "filter").RMinHash
        rows = max(1, round(math.log(1 / _BANDS) / math.log(similarity)))  # of a band
        # A weighted sum of 32-bit numbers, with random weights of 64 bits, is a hash of them (Carter and Wegman 1979).
        self._weights = np.random.default_rng(_SEED).integers(2**64, size=(_BANDS, rows), dtype=np.uint64)

    def __call__(self, pairs: Sequence[tuple[Side, Side]]) -> Hashes:
        signatures = self._minhash.digest_matrix_from_token_sets(
            [_words(*pair) for pair in pairs], self._weights.size, _SEED
        )
        numbers = np.array(signatures.to_rows(), np.uint64).reshape(-1, *self._weights.shape)
        return np.einsum("pbr,br->pb", numbers, self._weights)


def _words(source: Side, target: Side) -> list[str]:
    """Of both sides, apart from each other; of a pair without letters its text."""
    marked = [f">{word}" for word in target.letter_words]
    return [*source.letter_words, *marked] or [f"{source.text}\t{target.text}"]


def _hashes(texts: Iterable[bytes]) -> Hashes:
    return np.frombuffer(b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts), np.uint64)
