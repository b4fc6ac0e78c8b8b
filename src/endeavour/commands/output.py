"""Where a command writes its lines: standard output, or a file that is none of those it reads."""

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from endeavour.errors import UserError


def open_output(
    name: str | None, stack: ExitStack, inputs: Sequence[str], *, standard_input: bool = False
) -> TextIO:
    """Standard output in UTF-8, or the file of that name, which is emptied and closed with `stack`.

    Args:
        inputs: the files that are read.
        standard_input: whether standard input is read, which may be a file too.

    Raises:
        UserError: the file is read, so that its text would be lost, or it cannot be written.
    """
    if name is None:
        if hasattr(
            sys.stdout, "reconfigure"
        ):  # a captured one, in a test or a notebook, has no encoding to set
            sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        return sys.stdout
    output = Path(name).expanduser()
    try:
        if output.exists() and (
            _is_one_of(output, inputs) or (standard_input and _is_standard_input(output))
        ):
            raise UserError(f"output={output} is the input itself, which would be lost: choose another file")
        return stack.enter_context(output.open("w", encoding="utf-8"))
    except OSError as error:
        raise UserError(f"output={name} cannot be written ({error.strerror})") from error


def _is_one_of(output: Path, inputs: Sequence[str]) -> bool:
    return any(output.samefile(Path(one).expanduser()) for one in inputs)


def _is_standard_input(output: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), output.stat())
    except (OSError, ValueError):  # not a file, as in a notebook
        return False
