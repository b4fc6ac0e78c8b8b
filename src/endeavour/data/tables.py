"""Tables of text pairs as Arrow files: written in batches, read back memory-mapped. Knows no cleaning and no ids."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import cast

import datasets
import pyarrow as pa

from endeavour.data.files import Pair

BATCH = 10_000  # pairs in memory at a time
_SCHEMA = pa.schema({"source": pa.string(), "target": pa.string()})


def new_table(path: Path) -> pa.RecordBatchStreamWriter:
    """For `write`; a context manager: the table is complete once it is left."""
    return pa.ipc.new_stream(str(path), _SCHEMA)


def write(table: pa.RecordBatchStreamWriter, pairs: Sequence[Pair]) -> None:
    columns = [[source for source, _ in pairs], [target for _, target in pairs]]
    table.write_batch(pa.record_batch(columns, schema=_SCHEMA))


def save_tables(paths: Sequence[Path], folder: Path) -> None:
    """Writes tables, one after the other, the way `datasets.load_from_disk` reads them."""
    datasets.disable_progress_bars()  # the caller shows the progress
    datasets.concatenate_datasets([_open(path) for path in paths]).save_to_disk(folder)


def read_tables(path: Path) -> Iterator[list[Pair]]:
    """The pairs of one table, or of a folder of `save_tables`, a batch in memory at a time."""
    for batch in _open(path).iter(BATCH):
        columns = cast("dict[str, list[str]]", batch)
        yield list(zip(columns["source"], columns["target"], strict=True))


def count_rows(path: Path) -> int:
    return len(_open(path))


def _open(path: Path) -> datasets.Dataset:
    if path.is_dir():
        return cast(datasets.Dataset, datasets.load_from_disk(path))
    return datasets.Dataset.from_file(str(path))


def batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """`pairs` in lists of `BATCH`, the last one shorter."""
    iterator = iter(pairs)
    while batch := list(islice(iterator, BATCH)):
        yield batch
