"""Token ids of one prepared split, memory-mapped: rows are read when a batch needs them.

Knows the arrays' layout (`arrays.RaggedWriter` wrote them); not text, batches or models.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint16] | NDArray[np.uint32]


class RaggedArray:
    """Rows of different lengths in one flat file. Row i ends in EOS and holds no BOS."""

    def __init__(self, ids: Ids, offsets: NDArray[np.int64]) -> None:
        self._ids = ids
        self._offsets = offsets
        # 32 bits: the one array that training holds in memory for each side.
        self.lengths: NDArray[np.int32] = np.diff(offsets).astype(np.int32)

    @classmethod
    def open(cls, folder: Path, prefix: str) -> "RaggedArray":
        """Maps `<prefix>.ids.npy` and `<prefix>.offsets.npy` below `folder`."""
        return cls(
            np.load(folder / f"{prefix}.ids.npy", mmap_mode="r"),
            np.load(folder / f"{prefix}.offsets.npy", mmap_mode="r"),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> Ids:
        return self._ids[self._offsets[row] : self._offsets[row + 1]]


class ParallelDataset:
    """The two sides of one split, row by row each other's translation."""

    def __init__(self, source: RaggedArray, target: RaggedArray) -> None:
        assert len(source) == len(target)
        self.source = source
        self.target = target

    @classmethod
    def open(cls, folder: Path, split: str) -> "ParallelDataset":
        return cls(
            RaggedArray.open(folder, f"{split}.source"),
            RaggedArray.open(folder, f"{split}.target"),
        )

    def __len__(self) -> int:
        return len(self.source)
