"""Where a command writes its lines: standard output, or a file that is none of those it reads. And standard input."""

import gzip
import os
import shutil
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO

from endeavour.errors import UserError
from endeavour.storage import user_path, written_beside

STANDARD_STREAM = "-"  # in place of a file's name


def open_output(name: str | None, stack: ExitStack, inputs: Sequence[str], *, standard_input: bool) -> TextIO:
    """Standard output (also for `-`) in UTF-8, or a file, closed with `stack`; one called `.gz` is gzipped.

    The file takes its place when all is written. What was written before an error stays beside it, and a note says so.

    Args:
        inputs: the files that are read.
        standard_input: whether standard input is read, which may be a file too.

    Raises:
        UserError: the file is read, so that its text would be lost, or it cannot be written; standard output is closed.
    """
    if name is None or name == STANDARD_STREAM:
        if sys.stdout is None:
            raise UserError("standard output is closed: name a file with output=…")
        # A captured one, in a test or a notebook, has no encoding to set.
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        return sys.stdout
    output = user_path(name)
    try:
        if output.exists() and (
            _is_one_of(output, inputs) or (standard_input and _is_standard_input(output))
        ):
            raise UserError(f"output={output} is the input itself, which would be lost: choose another file")
        gzipped = output.suffix.lower() == ".gz"
        # Nothing can take the place of a pipe or a device; /dev/stdout may lead to a file, but that is open already.
        in_place = output.is_relative_to("/dev") or (output.exists() and not output.is_file())
        opened = _open(output, gzipped) if in_place else _open_beside(output.resolve(), gzipped)
        return stack.enter_context(opened)
    except OSError as error:
        raise UserError(f"output={name} cannot be written ({error.strerror})") from error


def open_standard_input(errors: str) -> TextIO:
    """Standard input in UTF-8, whose lines end at `\\n` alone.

    Args:
        errors: what becomes of bytes that are not UTF-8, as `open` takes it.

    Raises:
        UserError: it is closed.
    """
    if sys.stdin is None:
        raise UserError("standard input is closed, and no other input is named")
    sys.stdin.reconfigure(encoding="utf-8", errors=errors, newline="\n")  # type: ignore[union-attr]
    return sys.stdin


def _open(path: Path, gzipped: bool) -> TextIO:
    return (gzip.open if gzipped else open)(path, "wt", encoding="utf-8")


@contextmanager
def _open_beside(output: Path, gzipped: bool) -> Generator[TextIO]:
    with written_beside(output) as partial, _ended_by_sigterm():
        partial.unlink(missing_ok=True)  # of an earlier attempt, which may be read-only
        file = _open(partial, gzipped)
        if output.exists():
            with suppress(OSError):  # on file systems without permissions
                shutil.copymode(output, partial)
        try:
            yield file
            file.close()
        except BaseException:
            begun = True
            # Both write what was left to be written, and the disk may be full; it may be closed already.
            with suppress(OSError, ValueError):
                begun = file.tell() > 0
            with suppress(OSError):
                file.close()
            if begun:
                print(f"note: what was written until then is in {partial}", file=sys.stderr)
            else:
                partial.unlink()
            raise


@contextmanager
def _ended_by_sigterm() -> Generator[None]:
    """What is open is closed, and said where it is, as after Ctrl-C; else the process would end at once."""

    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return

    def end(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _is_one_of(output: Path, inputs: Sequence[str]) -> bool:
    return any(output.samefile(user_path(one)) for one in inputs)


def _is_standard_input(output: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), output.stat())
    except (OSError, ValueError):  # not a file, as in a notebook
        return False
