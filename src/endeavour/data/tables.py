"""Tables of text pairs as Arrow files: written in batches, read back memory-mapped. Knows no cleaning and no ids."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import datasets
from datasets.arrow_writer import ArrowWriter

from endeavour.data.files import Pair

BATCH = 10_000  # pairs in memory at a time
_FEATURES = datasets.Features({"source": datasets.Value("string"), "target": datasets.Value("string")})


class TableWriter:
    """Writes one table with the columns source and target. Use as a context manager: complete once it is left."""

    def __init__(self, path: Path) -> None:
        self._writer = ArrowWriter(path=str(path), features=_FEATURES)
        self.rows = 0

    def append(self, pairs: Sequence[Pair]) -> None:
        if pairs:
            self._writer.write_batch(
                {"source": [source for source, _ in pairs], "target": [target for _, target in pairs]}
            )
            self.rows += len(pairs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.finalize()


class Table:
    """Reads what a `TableWriter` wrote, as often as asked, a batch in memory at a time."""

    def __init__(self, path: Path) -> None:
        self._rows = datasets.Dataset.from_file(str(path))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[list[Pair]]:
        for batch in self._rows.iter(BATCH):
            columns = cast("dict[str, list[str]]", batch)
            yield list(zip(columns["source"], columns["target"], strict=True))


def save_tables(paths: Sequence[Path], folder: Path) -> None:
    """Writes tables, one after the other, the way `datasets.load_from_disk` reads them."""
    parts = [datasets.Dataset.from_file(str(path)) for path in paths]
    datasets.concatenate_datasets(parts).save_to_disk(folder)


def read_tables(folder: Path) -> Iterator[list[Pair]]:
    """Reads what `save_tables` wrote, a batch in memory at a time."""
    for batch in cast(datasets.Dataset, datasets.load_from_disk(folder)).iter(BATCH):
        columns = cast("dict[str, list[str]]", batch)
        yield list(zip(columns["source"], columns["target"], strict=True))


def batches(pairs: Iterable[Pair], size: int) -> Iterator[list[Pair]]:
    """`pairs` in lists of `size`, the last one shorter."""
    iterator = iter(pairs)
    while batch := list(islice(iterator, size)):
        yield batch
