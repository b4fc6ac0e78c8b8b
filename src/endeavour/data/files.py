"""Reading sentence pairs from files: line-aligned text, TSV, JSON lines (gzip of any), and Parquet.

Streams; the texts come out as they stand in the file. Knows nothing of corpora, cleaning or the network.
Every error names the file and the line.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from endeavour.data.record_files import Columns, read_json_lines, read_parquet, read_tsv
from endeavour.data.text_files import require_file, text_lines
from endeavour.directions import Direction
from endeavour.errors import UserError
from endeavour.storage import user_path

Pair = tuple[str, str]

# Two files of these would otherwise be read as English and German.
_MARKUP = {".sgm", ".sgml", ".xml", ".tmx", ".xliff", ".xlf", ".po"}
_NO_TEXT = {".tsv", ".jsonl", ".ndjson", ".parquet", ".json", ".csv", ".zip", ".xz", ".bz2", ".zst", *_MARKUP}


def kind_of(path: Path) -> str:
    """The suffix in lower case, without `.gz`, that decides how `path` is read: .tsv, .jsonl, .parquet, or others."""
    return Path(_plain(path)).suffix


def _plain(path: Path) -> str:
    """In lower case and without `.gz`."""
    return path.as_posix().lower().removesuffix(".gz")


def directed(pairs: Iterable[Pair], direction: Direction) -> Iterator[Pair]:
    """(English, German) pairs as (source, target) pairs."""
    return iter(pairs) if direction == "en-de" else ((german, english) for english, german in pairs)


def read_pairs(
    paths: Sequence[str | Path], *, english_column: str, german_column: str, section: str = ""
) -> Iterator[Pair]:
    """The (English, German) pairs of one split.

    Args:
        paths: as a user names them: pairs of line-aligned text files, the English one first, and `.tsv`, `.jsonl`
            and `.parquet` files; read one after the other.
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
    files = [user_path(path) for path in paths]
    for path in files:
        require_file(path)
    prefix = section and f"{section}."
    columns = Columns((english_column, german_column), f"{prefix}english_column and {prefix}german_column")
    return chain.from_iterable(_sources(files, columns))


def _sources(paths: Sequence[Path], columns: Columns) -> list[Iterator[Pair]]:
    """What reads each file of records, and each two line-aligned files."""
    records = {
        ".tsv": read_tsv,
        ".jsonl": read_json_lines,
        ".ndjson": read_json_lines,
        ".parquet": read_parquet,
    }
    sources: list[Iterator[Pair]] = []
    remaining = iter(paths)
    for path in remaining:
        if read_records := records.get(kind_of(path)):
            sources.append(read_records(path, columns))
            continue
        if (kind := kind_of(path)) in _NO_TEXT:
            raise UserError(
                f"{path}: {kind} is not read; convert it to .tsv, .jsonl, .parquet or two text files"
            )
        german = next(remaining, None)
        if german is None or kind_of(german) in _NO_TEXT:
            names = ", ".join(str(path) for path in paths)
            raise UserError(
                f"{names}: {path} is the English half of two line-aligned text files; the German one has to follow it"
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
