"""Token ids of prepared splits: saved part by part, joined, and read memory-mapped when a batch needs a row.

One side of a split is two files: `<prefix>.ids.npy`, its rows one after the other (uint16 or uint32), and
`<prefix>.offsets.npy` (int64, rows + 1). Row i is `ids[offsets[i]:offsets[i + 1]]`; it ends in EOS and holds no BOS.
Knows no text, batches or models.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from endeavour.special import EOS

Ids = NDArray[np.uint16] | NDArray[np.uint32]


@dataclass(frozen=True)
class Rows:
    """Rows of ids one after the other, each with its EOS, and how long each is."""

    ids: Ids
    lengths: NDArray[np.int32]


def flat(rows: Sequence[Sequence[int]], *, vocabulary_size: int) -> Rows:
    """`rows`, each followed by EOS."""
    ids = array("I")
    for row in rows:
        ids.extend(row)
        ids.append(EOS)
    joined: Ids = np.array(ids, np.uint16) if vocabulary_size <= 2**16 else np.array(ids, np.uint32)
    return Rows(joined, np.array([len(row) + 1 for row in rows], np.int32))


def save_rows(prefix: Path, rows: Sequence[Rows]) -> None:
    """Saves the rows of at least one batch, in order."""
    lengths = np.concatenate([batch.lengths for batch in rows])
    np.save(f"{prefix}.ids.npy", np.concatenate([batch.ids for batch in rows]))
    np.save(f"{prefix}.offsets.npy", np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def join_rows(parts: Sequence[Path], prefix: Path) -> None:
    """Saves the rows of at least one part, in order; holds the ids of one part in memory at a time."""
    lengths = np.concatenate(
        [RaggedArray(part).lengths for part in parts]
    )  # none stays open: there may be thousands
    offsets = np.zeros(1 + len(lengths), np.int64)
    np.cumsum(lengths, out=offsets[1:])
    np.save(f"{prefix}.offsets.npy", offsets)
    with Path(f"{prefix}.ids.npy").open("wb") as file:
        descr = npy.dtype_to_descr(RaggedArray(parts[0]).ids.dtype)
        npy.write_array_header_1_0(
            file, {"descr": descr, "fortran_order": False, "shape": (int(offsets[-1]),)}
        )
        for part in parts:
            np.load(f"{part}.ids.npy").tofile(file)


class RaggedArray:
    """Rows of different lengths, mapped from their two files."""

    def __init__(self, prefix: Path) -> None:
        self.ids: Ids = np.load(f"{prefix}.ids.npy", mmap_mode="r")
        self._offsets: NDArray[np.int64] = np.load(f"{prefix}.offsets.npy", mmap_mode="r")
        # 32 bits: the one array that training holds in memory for each side.
        self.lengths: NDArray[np.int32] = np.empty(len(self._offsets) - 1, np.int32)
        np.subtract(self._offsets[1:], self._offsets[:-1], out=self.lengths, casting="unsafe")

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> Ids:
        return self.ids[self._offsets[row] : self._offsets[row + 1]]

    def joined(self, rows: NDArray[np.integer]) -> Ids:
        """The ids of at least one row after another, read at once: row by row takes several times as long."""
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths, dtype=np.int64)
        # Where each row begins in the file, less where it begins in the result.
        shifts = self._offsets[rows] - (ends - lengths)
        return self.ids[np.repeat(shifts, lengths) + np.arange(ends[-1])]


class ParallelDataset:
    """The two sides of one split, row by row each other's translation.

    Args:
        parts: of each part of the split its number of rows, in their order; empty where it has none.
    """

    def __init__(
        self, source: RaggedArray, target: RaggedArray, parts: Mapping[str, int] | None = None
    ) -> None:
        assert len(source) == len(target)
        self.source = source
        self.target = target
        self.parts = parts or {}

    @classmethod
    def open(cls, folder: Path, split: str, parts: Mapping[str, int] | None = None) -> "ParallelDataset":
        return cls(RaggedArray(folder / f"{split}.source"), RaggedArray(folder / f"{split}.target"), parts)

    @property
    def counts(self) -> dict[str, int]:
        """`pairs`, `source_tokens`, `target_tokens`, and `longer_tokens`, of the longer side of each pair; with EOS."""
        source, target = self.source.lengths, self.target.lengths
        return {
            "pairs": len(self),
            "source_tokens": int(source.sum()),
            "target_tokens": int(target.sum()),
            "longer_tokens": int(np.maximum(source, target).sum()),
        }

    def __len__(self) -> int:
        return len(self.source)
