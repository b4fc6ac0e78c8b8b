"""Files of records: TSV, JSON lines and Parquet. Of each record the texts of two columns are read, streaming.

Every error names the file and the line.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

from endeavour.data.text_files import has_surrogates, text_lines
from endeavour.errors import UserError, first_line

# In the headers of others, in small letters.
_NAMES_OF_SIDES = {"en", "english", "de", "german", "source", "src", "target", "tgt", "trg"}


@dataclass(frozen=True)
class Columns:
    """Where the two texts of a record are, and by which keys a user says so."""

    names: tuple[str, str]
    keys: str


def read_tsv(path: Path, columns: Columns) -> Iterator[tuple[str, str]]:
    lines = enumerate(text_lines(path), start=1)
    width = None
    if all(column.isdecimal() and int(column) > 0 for column in columns.names):
        first, second = (int(column) - 1 for column in columns.names)
    else:
        header = next(lines, (1, ""))[1].split("\t")
        for column in columns.names:
            if column not in header:
                raise UserError(
                    f"{path}:1: no column {column!r} in the header {header}; set {columns.keys}, "
                    "to 1 and 2 for a file without a header"
                )
            if header.count(column) > 1:
                raise UserError(f"{path}:1: {header.count(column)} columns are called {column!r}; rename one")
        first, second = (header.index(column) for column in columns.names)
        width = len(header)
    for number, line in lines:
        fields = line.split("\t")
        # Without a header lines may have more columns than are read, but all of them as many.
        width = width or max(len(fields), first + 1, second + 1)
        if len(fields) != width:
            many = "columns are separated by tabs, and a sentence must not hold one"
            remedy = many if len(fields) > width else "correct or delete the line"
            raise UserError(f"{path}:{number}: the line has {len(fields)} columns, not {width}; {remedy}")
        pair = fields[first], fields[second]
        # Where columns have names, the first line was read above.
        if number == 1 and {text.strip().lower() for text in pair} <= _NAMES_OF_SIDES:
            raise UserError(
                f"{path}:1: {pair} is a header, not a pair; delete the line, or give every .tsv file one and set "
                f"{columns.keys} to names"
            )
        yield pair


def read_json_lines(path: Path, columns: Columns) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # a ValueError: a number of thousands of digits
            reason = getattr(error, "msg", error)  # without its "line 1", which is not that of the file
            raise UserError(f"{where}: not a JSON object ({reason}); correct or delete the line") from error
        yield _texts(record, columns, where)


def read_parquet(path: Path, columns: Columns) -> Iterator[tuple[str, str]]:
    # Imported here: a prepare with nothing to do, or other files, needs none of it.
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            for column in columns.names:
                _require_column(file.schema_arrow, column, columns.keys, path)
            # Of the other columns Python may not be able to hold what is in them.
            batches = file.iter_batches(columns=list(columns.names))
            rows = chain.from_iterable(batch.to_pylist() for batch in batches)
            for number, row in enumerate(rows, start=1):
                where = f"{path}, row {number}"
                yield _texts(row, columns, where)
    except UserError:
        raise
    except (OSError, ValueError, ArrowException) as error:
        raise UserError(
            f"{path}: not a readable Parquet file ({first_line(error)}); download or copy it again"
        ) from error


def _require_column(fields: Iterable[Any], column: str, keys: str, path: Path) -> None:
    """Raises `UserError` where `column` is not among the fields of the Parquet file at `path`."""
    from pyarrow import StructType

    for key in column.split("."):
        kinds = {field.name: field.type for field in fields}
        if key not in kinds:
            raise UserError(f"{path}: {_no_column(column, sorted(kinds), keys)}")
        fields = kinds[key] if isinstance(kinds[key], StructType) else ()


def _no_column(column: str, found: object, keys: str) -> str:
    mixed = ", and give .tsv files beside it a header line" if column.isdecimal() else ""
    return f"no column {column!r} (found: {found}); set {keys}{mixed}"


def _texts(record: object, columns: Columns, where: str) -> tuple[str, str]:
    """Both texts of a decoded record."""
    english, german = columns.names
    return _text(record, english, columns.keys, where), _text(record, german, columns.keys, where)


def _text(record: object, column: str, keys: str, where: str) -> str:
    """The text in `column`, of which a dot reaches into a nested object."""
    value: Any = record
    for key in column.split("."):
        if not isinstance(value, dict) or key not in value:
            found = sorted(cast("dict[str, Any]", value)) if isinstance(value, dict) else type(value).__name__
            raise UserError(f"{where}: {_no_column(column, found, keys)}, or correct the line")
        value = cast("dict[str, Any]", value)[key]
    if not isinstance(value, str):
        shown = f"{value!r:.40}"
        raise UserError(f"{where}: column {column!r} holds {shown}, not text; correct or delete the line")
    if has_surrogates(value):
        raise UserError(
            f"{where}: column {column!r} holds a lone surrogate, which is not valid Unicode; "
            "correct or delete the line"
        )
    return value
