"""One process at a time works in the folder of a run or a sweep: locks, and whether another process holds one.

Knows folders; not what is done in them.
"""

from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

from endeavour.errors import UserError
from endeavour.storage import GLANCE, file_lock, hidden_beside, write_errors


class FolderBusy(UserError):
    """Another process works there."""


def lock_folder(folder: Path, doing: str) -> AbstractContextManager[object]:
    """The lock of a folder, acquired, which lies beside it: to be released by `with`.

    Raises:
        FolderBusy: another process holds it.
    """
    with write_errors(folder, "output_folder"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            return file_lock(hidden_beside(folder, "lock")).acquire(timeout=GLANCE)
        except Timeout as error:
            raise FolderBusy(
                f"{folder} is being {doing} by another process: wait for it, or choose another name=…"
            ) from error


def is_held(folder: Path) -> bool:
    """Whether a process holds the lock of a folder, as far as this user may know."""
    path = hidden_beside(folder, "lock")
    try:
        from fcntl import LOCK_NB, LOCK_SH, flock
    except ModuleNotFoundError:  # on Windows
        return path.is_file() and not _can_be_held(path)
    try:
        with path.open("rb") as file:
            flock(file, LOCK_SH | LOCK_NB)  # shared: several may ask at a time
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _can_be_held(path: Path) -> bool:
    held = FileLock(path, timeout=0)
    try:
        held.acquire()
    except Timeout:
        return False
    except OSError:  # not by this user, which says nothing of others
        return True
    held.release()
    return True
