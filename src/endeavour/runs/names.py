"""The names of runs as they are typed, one or several in one setting, and as folders of several are called.

Knows neither configs nor runs.
"""

import hashlib
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from endeavour.errors import UserError

PREFIX = "hf:"  # of the names of checkpoints from elsewhere
LONGEST_FOLDER = 240  # bytes of a folder's name: file systems allow 255, of which its lock needs some
LARGEST_SEED = 2**63 - 1  # that torch's generators take as well as numpy's


def run_name(key: str, name: str, output_folder: str) -> str:
    """A run's name, which may be typed with the output folder before it.

    Raises:
        UserError: it leads elsewhere, or is too long.
    """
    path = Path(_below(name, output_folder))
    if any(len(os.fsencode(part)) > LONGEST_FOLDER for part in path.parts):
        raise UserError(
            f"{key}={name[:20]}…: a run's name has at most {LONGEST_FOLDER} bytes; choose a shorter one"
        )
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise UserError(f"{key}={name!r} must name a folder below output_folder ({output_folder})")
    return str(path)


def model_name(key: str, name: str, output_folder: str) -> str:
    """The name of a run, or of a checkpoint from elsewhere, which is left as it is.

    Raises:
        UserError: it leads elsewhere, is too long, or no name that the checkpoint's run could have.
    """
    if not is_imported(name):
        return run_name(key, name, output_folder)
    if Path(name.removeprefix(PREFIX)).name in ("", ".."):
        raise UserError(
            f"{key}={name}: {PREFIX} stands before the name of a folder, or of a model that the hub has"
        )
    return name


def is_imported(name: str) -> bool:
    """Whether a name in a config is that of a checkpoint from elsewhere."""
    return name.startswith(PREFIX)


def _below(name: str, output_folder: str) -> str:
    path, folder = Path(name), Path(output_folder)
    if path.is_absolute():
        folder = folder.absolute()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else name


def names_in(key: str, text: str | None) -> list[str]:
    """The names in `a b`, `a,b` or `[a, b]`, where one with a space or comma is in quotes.

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


def normal_teachers(text: str, output_folder: str) -> str:
    """`teachers` as a run notes it, however it was typed."""
    words = names_in("teachers", text)
    if not words:
        raise UserError('teachers names no run: teachers="NAME 2", or null to train on the text alone')
    teachers = [_teacher(word, text, output_folder) for word in words]
    return " ".join(teacher if teacher.isdecimal() else f'"{teacher}"' for teacher in teachers)


def members_of(teacher: str) -> list[str]:
    """The seeds and names of runs in `1`, `a` or, where they translate as an ensemble, `1+2+a`."""
    return teacher.split("+")


def _teacher(word: str, text: str, output_folder: str) -> str:
    """One teacher of `text` as a run notes it."""
    members = []
    # The output folder, before the first of them, may have a + in its own name.
    for member in members_of(_below(word, output_folder)):
        if not member:
            raise UserError(f"teachers={text}: an ensemble is written NAME+NAME, without spaces")
        name = model_name("teachers", member, output_folder)
        if name.isdecimal() and not member.isdecimal():
            raise UserError(f"teachers={text}: {name} would be a seed; rename the run {member}")
        if name.isdecimal() and int(name) > LARGEST_SEED:
            raise UserError(f"teachers={text}: a seed is at most {LARGEST_SEED}")
        members.append(str(int(name)) if name.isdecimal() else name)
    return "+".join(members)


def quoted(name: str) -> str:
    """A name as `names_in` reads it back: in quotes where it holds a space or comma."""
    if not set(name) & set(" ,\t\n[]'\""):
        return name
    return f"'{name}'" if '"' in name else f'"{name}"'


def escaped(name: str) -> str:
    """A run's name, or a file's, as a part of a folder's: no two become the same, and none has a /, + or @."""
    return quote(name, safe=" ,=")


def joined_or_digest(parts: Sequence[str], between: str, what: str, longest: int) -> str:
    """A folder's name of these parts, or where that has more than `longest` bytes, of their number and a digest."""
    name = between.join(parts)
    if len(name.encode()) > longest:
        return f"{len(parts)}-{what}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return name
