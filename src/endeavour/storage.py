"""Files and folders that are on disk whole or not at all, and that are known by their content.

Knows nothing of what they hold.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from filelock import FileLock, Timeout
from safetensors import SafetensorError

from endeavour.errors import UserError

DIGESTS = "digests.json"  # in a folder that was published: the SHA-256 of every other file

# Seconds that a lock is waited for before another process is taken for its holder: whoever asks whether a run is
# locked holds the lock for an instant.
GLANCE = 0.5
# How systems and file systems say that they do not flush folders: Windows does not open one, others refuse the call.
NO_FOLDER_FLUSH = {errno.EACCES, errno.EINVAL, errno.EBADF, errno.ENOTSUP}
# What helps against an error of the disk, where neither permissions nor another place do.
REMEDIES = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space")
REMEDIES[errno.ENAMETOOLONG] = "choose a shorter name"
REMEDIES[errno.EFBIG] = (
    "lift the limit on the size of files (ulimit -f), or choose a file system that has none"
)
# Windows flushes only what is open for writing; elsewhere a file may forbid that to its owner.
_TO_FLUSH = os.O_RDWR if os.name == "nt" else os.O_RDONLY


def user_path(text: str | Path) -> Path:
    """The path that a user has named, in which a leading `~` stands for a home folder.

    Raises:
        UserError: nobody has that home folder.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UserError(f"{text}: ~ stands for a home folder, and there is none of that name") from error


def hidden_beside(path: Path, kind: str) -> Path:
    """Where what belongs to `path` for a time is kept: `.NAME.partial` and the like, beside it."""
    return path.with_name(f".{path.name}.{kind}")


def cache_folder() -> Path:
    """Of what can be made again, and holds for this machine: $ENDEAVOUR_CACHE, otherwise in the user's cache folder.

    Raises:
        RuntimeError: the user has no home.
    """
    if named := os.environ.get("ENDEAVOUR_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "endeavour"


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Writes this one file, or the names in this one folder, to the disk (fsync), a folder where that exists."""
    try:
        descriptor = os.open(path, _TO_FLUSH)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in NO_FOLDER_FLUSH or not path.is_dir():
            raise


def write_atomically(path: Path, text: str) -> None:
    """Writes UTF-8 with `\\n` line ends under another name, flushes, then renames: a reader never sees half a file."""
    with written_beside(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def written_beside(path: Path) -> Generator[Path]:
    """Yields the name of a file beside `path`, and gives it that place once the block has ended well.

    After an exception the file is left where it is, and so is the one at `path`.
    """
    partial = hidden_beside(path, "partial")
    yield partial
    flush(partial)
    partial.replace(path)


def write_json(path: Path, content: object) -> None:
    """Writes `content` atomically, indented, with characters beyond ASCII as they are."""
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        ValueError: the file is no JSON, not UTF-8, or holds something else than an object.
        OSError: it cannot be read.
    """
    content = json.loads(path.read_text("utf-8"))
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return cast(dict[str, Any], content)


def json_digest(content: object) -> str:
    """SHA-256, in hexadecimal, of plain JSON, in which the order of keys does not count."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that this program wrote, exactly as it wrote them.

    Only `\\n` ends a line, and nothing is stripped: U+2028, `\\r` or a byte order mark belong to the sentence.
    `data.text_files.text_lines` reads the files that users bring, with their line ends and compression.

    Raises:
        UserError: there is no such file, or it was altered since.
    """
    try:
        *lines, rest = path.read_bytes().decode().split("\n")
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from error
    if rest:
        raise UserError(f"{path}: altered since it was written (its last line does not end)")
    return lines


@contextmanager
def write_errors(folder: Path, key: str | None = None) -> Generator[None]:
    """Turns an `OSError` while `folder` is written into a `UserError` that names it, and the config's `key` for it
    where that can name another."""
    try:
        yield
    except OSError as error:
        # Elsewhere a run would not be found, and what is done of its data would be done again.
        elsewhere = f", or choose another {key}=…" if key else ""
        remedy = REMEDIES.get(error.errno or 0, f"make it writable{elsewhere}")
        raise UserError(f"{folder}: cannot be written ({error.strerror or error}); {remedy}") from error


@contextmanager
def safetensors_errors(path: Path) -> Generator[None]:
    """Raises as `OSError` what safetensors calls otherwise, while it writes `path`: that the disk takes no more."""
    try:
        yield
    except SafetensorError as error:
        number = re.search(r"(?:os error |code: )(\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def file_lock(path: Path) -> FileLock:
    """A lock by the file at `path`, to be acquired; another process that holds it is waited for.

    Raises:
        OSError: there is no such file, and none can be made.
    """
    if not path.exists():
        path.touch()  # where a file cannot be made, FileLock may take that for the doing of others, and wait for them
    return FileLock(path)


@contextmanager
def waiting_lock(made: Path, doing: str) -> Generator[None]:
    """Holds the lock beside what is `made`; where another process has it, says what that is `doing`, and waits.

    Of the processes of one training, which wait for each other, only the first says so.
    """
    lock = file_lock(hidden_beside(made, "lock"))
    try:
        held = lock.acquire(timeout=GLANCE)
    except Timeout:
        if os.environ.get("RANK", "0") == "0":
            print(f"waiting for another process, which is {doing}", file=sys.stderr, flush=True)
        held = lock.acquire()
    with held:
        yield


@contextmanager
def atomic_folder(folder: Path) -> Generator[Path]:
    """Yields an empty folder beside `folder`, and publishes it as `folder` once the block has ended well.

    After an exception nothing of it is left. Work that is to go on after an interruption fills a folder of its own
    and calls `publish`.
    """
    partial = hidden_beside(folder, "partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        publish(partial, folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)  # the disk may be full
        raise


def publish(partial: Path, folder: Path) -> None:
    """Adds digests to `partial`, flushes it and renames it to `folder`, which is never there half written.

    `folder` is what it was, or complete, or for an instant absent, its old self beside it.
    """
    files = sorted(path for path in partial.rglob("*") if path.is_file() and path != partial / DIGESTS)
    digests = {path.relative_to(partial).as_posix(): file_digest(path) for path in files}
    (partial / DIGESTS).write_text(json.dumps(digests, indent=1), "utf-8")
    for path in sorted((partial, *partial.rglob("*")), reverse=True):  # folders after their contents
        flush(path)
    # A folder cannot be replaced in one step: between the two renames its old self stands aside, complete.
    aside = hidden_beside(folder, "old")
    shutil.rmtree(aside, ignore_errors=True)
    if folder.exists():
        folder.rename(aside)
    partial.rename(folder)
    flush(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


def verify(folder: Path, remedy: str = "", *, digest_of: Callable[[Path], str] = file_digest) -> None:
    """Raises `UserError` for the first file of a published folder that is not what was written.

    Args:
        remedy: what the user can do, to end the message with.
        digest_of: SHA-256 of a file, in hexadecimal.
    """
    for name, digest in read_digests(folder, remedy).items():
        if not (folder / name).is_file() or digest_of(folder / name) != digest:
            raise UserError(
                f"{folder / name}: missing or altered since it was written (SHA-256 differs){_ending(remedy)}"
            )


def read_digests(folder: Path, remedy: str = "") -> dict[str, str]:
    """The SHA-256 of each file of a published folder, as noted in it. Raises `UserError` where that cannot be read."""
    try:
        return read_json_object(folder / DIGESTS)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder}: incomplete, {DIGESTS} cannot be read ({error}){_ending(remedy)}"
        ) from error


def _ending(remedy: str) -> str:
    return f"; {remedy}" if remedy else ""
