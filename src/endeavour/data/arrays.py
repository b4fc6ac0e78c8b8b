"""Ragged rows of numbers in flat `.npy` files, appended and joined, one part in memory at a time. Knows no text."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import DTypeLike


class _GrowingArray:
    """A one-dimensional `.npy` file whose length is written last.

    NumPy pads the header so that the growing axis can be rewritten in place (`numpy.lib.format`, "version
    1.0").
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._file: BinaryIO = path.open("wb")
        self._length = 0
        self._write_header()
        self._header_bytes = self._file.tell()

    def append(self, values: "np.ndarray[tuple[int], np.dtype[np.generic]]") -> None:
        self._file.write(values.astype(self._dtype, copy=False).tobytes())
        self._length += len(values)

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        assert self._file.tell() == self._header_bytes
        self._file.close()

    def _write_header(self) -> None:
        np.lib.format.write_array_header_1_0(
            self._file,
            {
                "descr": np.lib.format.dtype_to_descr(self._dtype),
                "fortran_order": False,
                "shape": (self._length,),
            },
        )


class RaggedWriter:
    """Writes `<prefix>.ids.npy` (all rows, flat) and `<prefix>.offsets.npy` (int64, rows + 1).

    Row i is `ids[offsets[i]:offsets[i + 1]]`. Use as a context manager; the files are complete once it is left.
    """

    def __init__(self, prefix: Path, *, vocabulary_size: int) -> None:
        dtype = np.uint16 if vocabulary_size <= np.iinfo(np.uint16).max + 1 else np.uint32
        self._ids = _GrowingArray(prefix.with_name(prefix.name + ".ids.npy"), dtype)
        self._offsets = _GrowingArray(prefix.with_name(prefix.name + ".offsets.npy"), np.int64)
        self._offsets.append(np.zeros(1, np.int64))
        self.rows = 0
        self.total = 0

    def append(self, rows: Sequence[Sequence[int]], *, end: int) -> None:
        """Appends `rows`, each followed by the id `end`."""
        if not rows:
            return
        lengths = np.fromiter((len(row) + 1 for row in rows), np.int64, len(rows))
        offsets = self.total + np.cumsum(lengths)
        self._ids.append(np.array([number for row in rows for number in (*row, end)]))
        self._offsets.append(offsets)
        self.rows += len(rows)
        self.total = int(offsets[-1])

    def extend(self, prefix: Path) -> None:
        """Appends all rows that another writer wrote as `<prefix>.ids.npy` and `<prefix>.offsets.npy`."""
        offsets = np.load(prefix.with_name(prefix.name + ".offsets.npy"))
        self._ids.append(np.load(prefix.with_name(prefix.name + ".ids.npy")))
        self._offsets.append(self.total + offsets[1:])
        self.rows += len(offsets) - 1
        self.total += int(offsets[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ids.close()
        self._offsets.close()
