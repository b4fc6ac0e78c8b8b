"""Which pairs occurred earlier, exactly or nearly: sorted arrays of hashes, five bytes each, where texts take hundreds.

Of n different texts about n² / 2⁴⁷ are taken for an earlier one: none of a million, 18 of fifty million. Knows nothing
of pairs that are kept or dropped.
"""

import hashlib
import math
import mmap
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from endeavour.data.files import Pair
from endeavour.data.surface import Side
from endeavour.optional import require

Hashes = NDArray[np.uint64]
Number = TypeVar("Number", np.uint32, np.uint8)

_BANDS = 5
_SEED = 42
_SHELF_BITS = 6
_SHELF_BEGINS = np.arange(1, 2**_SHELF_BITS, dtype=np.uint64) << np.uint64(64 - _SHELF_BITS)


class SeenHashes:
    """A set of hashes that remembers of all it was asked for the first 46 bits.

    Its shelves are sorted one by one, so that little memory is needed beside what they hold.
    """

    def __init__(self) -> None:
        self._shelves = [_Shelf() for _ in range(2**_SHELF_BITS)]
        self._new: list[Hashes] = []

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """For each of `hashes` whether it occurred earlier, here or in another call; then remembers them all."""
        unique, first = np.unique(hashes, return_index=True)
        shelved = np.split(unique, np.searchsorted(unique, _SHELF_BEGINS))
        known = np.concatenate([shelf.add(part) for shelf, part in zip(self._shelves, shelved, strict=True)])
        seen = np.ones(len(hashes), bool)
        seen[first[~known]] = False
        self._new.append(unique[~known])
        return seen

    def drops(self, hashes: Hashes) -> NDArray[np.bool_]:
        """For each row of `hashes` whether one of them occurred earlier; then remembers them all."""
        return np.logical_or.reduce(self.add(hashes.ravel()).reshape(hashes.shape), axis=1)

    def take_new(self) -> Hashes:
        """The hashes that were added since this was last called."""
        new, self._new = self._new, []
        return np.concatenate([np.empty(0, np.uint64), *new])


class _Shelf:
    """The hashes that begin with the same `_SHELF_BITS`, of which the next 40 are kept: 32 in one array and 8 beside.

    It keeps ascending arrays, each at least twice as long as the next, so that each hash is sorted O(log n) times.
    """

    def __init__(self) -> None:
        self._arrays: list[tuple[NDArray[np.uint32], NDArray[np.uint8]]] = []

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """For each of the ascending `hashes` whether it occurred in an earlier call; then remembers them all."""
        keys = hashes << np.uint64(_SHELF_BITS) >> np.uint64(24)
        known = np.zeros(len(keys), bool)
        for array in self._arrays:
            known |= _contains(*array, *_cut(keys))
        added = keys[~known]
        while self._arrays and len(self._arrays[-1][0]) < 2 * len(added):
            begin, end = self._arrays.pop()
            added = np.concatenate([begin.astype(np.uint64) << np.uint64(8) | end, added])
            added.sort()  # faster than to merge the two
        if len(added):
            begin, end = _cut(added)
            self._arrays.append((_mapped(begin), _mapped(end)))
        return known


def _cut(keys: Hashes) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """The first 32 of 40 bits, and the last 8."""
    return (keys >> np.uint64(8)).astype(np.uint32), keys.astype(np.uint8)


def _mapped(array: NDArray[Number]) -> NDArray[Number]:
    """`array` in pages of its own, which go back to the system with it; the heap would keep gaps of a third of all."""
    copy = np.frombuffer(mmap.mmap(-1, array.nbytes), array.dtype)
    copy[:] = array
    return copy


def _contains(
    begins: NDArray[np.uint32],
    ends: NDArray[np.uint8],
    wanted: NDArray[np.uint32],
    wanted_ends: NDArray[np.uint8],
) -> NDArray[np.bool_]:
    """Which of the wanted keys are among those of ascending arrays, of which several may begin with the same bits."""
    found = np.zeros(len(wanted), bool)
    rows, places = np.arange(len(wanted)), np.searchsorted(begins, wanted)
    while len(rows):  # not yet found, and perhaps at their places
        inside = places < len(begins)
        rows, places = rows[inside], places[inside]
        same = begins[places] == wanted[rows]
        rows, places = rows[same], places[same]
        equal = ends[places] == wanted_ends[rows]
        found[rows[equal]] = True
        rows, places = rows[~equal], places[~equal] + 1
    return found


def pair_hashes(pairs: Sequence[Pair]) -> Hashes:
    """One of each pair, of its text character by character; [pairs, 1]."""
    # No text in normal form holds a tab.
    return _hashes("\t".join(pair).encode() for pair in pairs).reshape(-1, 1)


def side_hashes(pairs: Iterable[Pair]) -> Hashes:
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
