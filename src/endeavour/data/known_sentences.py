"""The pairs of a prepared training text whose source stands in another text.

Reads the Arrow files that `tables.save_tables` writes, without `datasets`, whose import takes seconds. A column is
compared at a time, so that only what is found becomes Python text.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from endeavour.data.files import Pair


def small_letters(lines: Sequence[str]) -> list[str]:
    """In small letters, each by itself, as `pairs_with_sources` makes them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.utf8_lower(pa.array(lines, pa.string())).to_pylist()  # pyright: ignore[reportAttributeAccessIssue]


def pairs_with_sources(folder: Path, sources: Iterable[str], *, lowercase: bool) -> Iterator[Pair]:
    """The pairs in the table of `folder` whose source is one of these, in the order of the table.

    With `lowercase` all of it is taken, and given, in small letters; so are `sources` to be.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(sorted(set(sources)), pa.string())
    for path in sorted(folder.glob("data-*.arrow")):
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                columns = [batch.column("source"), batch.column("target")]
                if lowercase:
                    columns = list(map(pc.utf8_lower, columns))  # pyright: ignore[reportAttributeAccessIssue]
                known = pc.is_in(columns[0], value_set=wanted)  # pyright: ignore[reportAttributeAccessIssue]
                yield from zip(*(column.filter(known).to_pylist() for column in columns), strict=True)
