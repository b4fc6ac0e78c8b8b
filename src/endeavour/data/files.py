"""Reading sentence pairs from files: line-aligned text, TSV, JSON lines (gzip of any), and Parquet.

Streams; the texts come out as they stand in the file. Knows nothing of corpora, cleaning or the network.
Every error names the file and the line.
"""

import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count, zip_longest
from pathlib import Path
from typing import Any, cast

from endeavour.errors import UserError, first_line

Pair = tuple[str, str]

# So many inside a line are line ends of another kind.
_RETURNS = 10
# In the headers of others, in small letters.
_NAMES_OF_SIDES = {"en", "english", "de", "german", "source", "src", "target", "tgt", "trg"}
# Two files of these would otherwise be read as English and German.
_MARKUP = {".sgm", ".sgml", ".xml", ".tmx", ".xliff", ".xlf", ".po"}
_NO_TEXT = {".tsv", ".jsonl", ".ndjson", ".parquet", ".json", ".csv", ".zip", ".xz", ".bz2", ".zst", *_MARKUP}


def kind_of(path: Path) -> str:
    """The suffix in lower case, without `.gz`, that decides how `path` is read: .tsv, .jsonl, .parquet, or others."""
    return Path(_plain(path)).suffix


def _plain(path: Path) -> str:
    """In lower case and without `.gz`."""
    return path.as_posix().lower().removesuffix(".gz")


@dataclass(frozen=True)
class _Columns:
    """Where the two texts of a record are, and by which keys a user says so."""

    names: Pair
    keys: str


def read_pairs(
    paths: Sequence[Path], *, english_column: str, german_column: str, section: str = ""
) -> Iterator[Pair]:
    """The (English, German) pairs of one split.

    Args:
        paths: pairs of line-aligned text files, the English one first, and `.tsv`, `.jsonl` and `.parquet`
            files; read one after the other.
        english_column, german_column: a name in the TSV header, a key of the JSON object or a Parquet column
            ("translation.en" reaches into a nested one), or "1", "2", … for a TSV file without a header.
        section: of the config, whose keys these are.

    Raises:
        UserError: a missing file, column or partner line, one column or file for both sides, invalid UTF-8, invalid
            JSON, damaged gzip.
    """
    names = english_column, german_column
    if english_column and len({int(name) if name.isdecimal() else name for name in names}) == 1:
        raise UserError(
            f"english_column and german_column are both {english_column!r}: a model would learn to copy"
        )
    for path in paths:
        require_file(path)
    prefix = section and f"{section}."
    columns = _Columns((english_column, german_column), f"{prefix}english_column and {prefix}german_column")
    return chain.from_iterable(_sources(paths, columns))


def _sources(paths: Sequence[Path], columns: _Columns) -> list[Iterator[Pair]]:
    """What reads each file of records, and each two line-aligned files."""
    records = {".tsv": _read_tsv, ".jsonl": _read_json_lines, ".parquet": _read_parquet}
    records[".ndjson"] = _read_json_lines
    sources: list[Iterator[Pair]] = []
    remaining = iter(paths)
    for path in remaining:
        if read_records := records.get(kind_of(path)):
            sources.append(read_records(path, columns))
            continue
        german = next(remaining, None)
        if german is None or {kind_of(path), kind_of(german)} & _NO_TEXT:
            names = ", ".join(str(path) for path in paths)
            raise UserError(
                f"{names}: a split is pairs of line-aligned text files, English first, and any number of .tsv, .jsonl "
                "and .parquet files"
            )
        if path.samefile(german):
            raise UserError(f"{path} stands for both sides: name the English file, then the German one")
        if _are_swapped(path, german):
            raise UserError(f"{path}, {german}: the English file comes first, then the German one")
        sources.append(_read_aligned(path, german))
    return sources


def _are_swapped(english: Path, german: Path) -> bool:
    """Whether their names say so: by their suffixes, or by the one part, between dots and slashes, that differs."""
    parts = [re.split(r"[./]", _plain(path)) for path in (english, german)]
    differing = [pair for pair in zip_longest(*parts) if pair[0] != pair[1]]
    said = [(parts[0][-1], parts[1][-1]), *(differing if len(differing) == 1 else [])]
    return any(first == "de" or second == "en" for first, second in said)


@contextmanager
def read_errors(path: Path) -> Generator[None]:
    """Turns an `OSError` while `path` is read into a `UserError` that names it."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error


def require_file(path: Path) -> None:
    """Raises `UserError` where `path` is not a readable file, or not one whose path can be written down in UTF-8."""
    if _has_surrogates(str(path)):
        raise UserError(f"{str(path)!r}: a name that is not UTF-8; rename it")
    with read_errors(path):
        mode = mode_of(path)
    if mode is None:
        raise UserError(f"{path}: no such file")
    if stat.S_ISDIR(mode):
        raise UserError(f"{path}: a folder, not a file")
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: not a regular file")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path}: its permissions forbid reading it; chmod u+r allows it")


def mode_of(path: Path) -> int | None:
    """`st_mode` of what is there; None if nothing is.

    Raises:
        OSError: nobody can tell, as of a name that is too long; since Python 3.14 `Path.exists` hides that.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file that a user brings, gzip or not, without line ends (LF or CRLF) and byte order mark.

    Raises:
        UserError: the file cannot be read, is damaged or not UTF-8, or lines in it end in CR alone.
    """
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with read_errors(path), opened(path, "rb") as file:
        for number in count(1):
            try:
                # Only LF ends a line: str.splitlines would also break at U+2028 and shift the alignment.
                line = file.readline()
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise UserError(
                    f"{path}:{number}: damaged gzip ({error}); copy it again, or, if it is plain text, rename it"
                ) from error
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{path}:{number}: invalid UTF-8 (byte {error.start + 1} of the line); convert the file"
                ) from error
            if not line:
                return
            text = text.removesuffix("\n").removesuffix("\r")
            if (returns := text.count("\r")) >= _RETURNS:
                raise UserError(
                    f"{path}:{number}: {returns:,} carriage returns within a line, as of a file whose lines end in CR "
                    "alone; convert them to LF (tr '\\r' '\\n')"
                )
            yield text


def aligned_lines(path: Path, count: int, of: str) -> list[str]:
    """The lines of a text file with one for each of `count` others, which `of` names.

    Raises:
        UserError: the file is not there, is damaged, or has another number of lines.
    """
    require_file(path)
    lines = list(text_lines(path))
    if len(lines) != count:
        raise UserError(
            f"{path} has {len(lines):,} lines for {count:,} {of}; line n of each must belong to the same sentence"
        )
    return lines


def _read_aligned(english: Path, german: Path) -> Iterator[Pair]:
    english_lines, german_lines = text_lines(english), text_lines(german)
    for number, (left, right) in enumerate(zip_longest(english_lines, german_lines), start=1):
        if left is None or right is None:
            shorter, longer = (english, german) if left is None else (german, english)
            total = number + sum(1 for _ in (german_lines if left is None else english_lines))
            raise UserError(
                f"{longer}:{number}: {shorter} ends at line {number - 1} and {longer} has {total} lines; "
                "line-aligned files must have the same number of lines"
            )
        yield left, right


def _read_tsv(path: Path, columns: _Columns) -> Iterator[Pair]:
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


def _read_json_lines(path: Path, columns: _Columns) -> Iterator[Pair]:
    for number, line in enumerate(text_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # a ValueError: a number of thousands of digits
            reason = getattr(error, "msg", error)  # without its "line 1", which is not that of the file
            raise UserError(f"{where}: not a JSON object ({reason}); correct or delete the line") from error
        yield _texts(record, columns, where)


def _read_parquet(path: Path, columns: _Columns) -> Iterator[Pair]:
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


def _texts(record: object, columns: _Columns, where: str) -> Pair:
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
    if _has_surrogates(value):
        raise UserError(
            f"{where}: column {column!r} holds a lone surrogate, which is not valid Unicode; "
            "correct or delete the line"
        )
    return value


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
