"""The pairs of a prepared training text whose source stands in another text.

Reads the Arrow files that `tables.save_tables` writes, without `datasets`, whose import takes seconds. A column is
compared at a time, so that only what is found becomes Python text.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from endeavour.data.files import Pair


def pairs_with_sources(folder: Path, sources: Iterable[str]) -> Iterator[Pair]:
    """The pairs in the table of `folder` whose source is one of these, in the order of the table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(sorted(set(sources)), pa.string())
    for path in sorted(folder.glob("data-*.arrow")):
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                known = pc.is_in(batch.column("source"), value_set=wanted)  # pyright: ignore[reportAttributeAccessIssue]
                found = batch.filter(known)
                columns = cast("dict[str, list[str]]", found.to_pydict())
                yield from zip(columns["source"], columns["target"], strict=True)
