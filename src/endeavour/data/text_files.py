"""Text files that a user brings: whether they can be read, and their lines. Every error names the file and the line."""

import gzip
import os
import stat
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from endeavour.errors import UserError

# So many inside a line are line ends of another kind.
_RETURNS = 10


@contextmanager
def read_errors(path: Path) -> Generator[None]:
    """Turns an `OSError` while `path` is read into a `UserError` that names it."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error


def require_file(path: Path) -> None:
    """Raises `UserError` where `path` is not a readable file, or not one whose path can be written down in UTF-8."""
    if has_surrogates(str(path)):
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
                    f"{path}:{number}: invalid UTF-8 (byte {error.start + 1} of the line); convert the file, "
                    "`iconv -f WINDOWS-1252 -t UTF-8`, say, or from UTF-16"
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


def has_surrogates(text: str) -> bool:
    """Whether it holds halves of characters, which UTF-8 cannot write."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
