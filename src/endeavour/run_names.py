"""The names of runs as they are typed: one, or several in one setting; knows no config and no run."""

import shlex
from pathlib import Path

from endeavour.errors import UserError


def run_name(key: str, name: str, output_folder: str) -> str:
    """A run's name, which may be typed with the output folder before it. Raises `UserError` if it leads elsewhere."""
    path = Path(name)
    if path.is_relative_to(output_folder):
        path = path.relative_to(output_folder)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise UserError(f"{key}={name!r} must name a folder below output_folder ({output_folder})")
    return str(path)


def names_in(key: str, text: str | None) -> list[str]:
    """The names in `a b`, `a,b` or `[a, b]`, of which one with a space or comma in it stands in quotes.

    Raises:
        UserError: a quote is not closed; `key` is what the text is the value of.
    """
    words = (text or "").strip()
    if words.startswith("[") and words.endswith("]"):
        words = words[1:-1]
    reader = shlex.shlex(words, posix=True)
    reader.whitespace, reader.whitespace_split, reader.commenters, reader.escape = " ,\t\n", True, "", ""
    try:
        return list(reader)
    except ValueError as error:
        raise UserError(f"{key}={text}: a quote that is not closed") from error


def teachers_in(text: str, output_folder: str) -> str:
    """`teachers` as a run notes it, however it was typed."""
    words = names_in("teachers", text)
    names = [run_name("teachers", word, output_folder) for word in words]
    if not names:
        raise UserError('teachers names no run: teachers="NAME 2", or null to train on the text alone')
    for word, name in zip(words, names, strict=True):
        if name.isdecimal() and not word.isdecimal():
            raise UserError(f"teachers={text}: {name} would be a seed; rename the run {word}")
    return " ".join(str(int(name)) if name.isdecimal() else f'"{name}"' for name in names)
