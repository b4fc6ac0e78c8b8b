"""The errors that are expected: what a user can fix, and what goes wrong around a run. All others are our own bugs."""

from collections.abc import Generator
from contextlib import contextmanager

# What torch and the C library say when they run out of memory; on a CPU torch has no class of its own for it.
_NO_MEMORY = ("can't allocate memory", "not enough memory", "Cannot allocate memory")


class UserError(ValueError):
    """Something in the user's input, config or files is wrong.

    The message is shown as it is, without a traceback, and the process ends with exit code 2: it says in one
    or two lines what is wrong, where (key, file, line), and what to do.
    """


class RunError(RuntimeError):
    """Something around the run has failed: another of its processes, a disk.

    Shown like a `UserError`, with exit code 1: the same command may well succeed later.
    """


def first_line(error: BaseException) -> str:
    """What an error says first, or else its kind."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def kind_and_first_line(error: BaseException) -> str:
    """The kind of an error that may be any, and what it says first."""
    kind, said = type(error).__name__, first_line(error)
    return kind if said == kind else f"{kind}: {said}"


@contextmanager
def named_memory_error(what: str, remedy: str) -> Generator[None]:
    """Turns a lack of memory, on a GPU or the host, into a `UserError` that names what was computed."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        # By its name: those who need no torch import this too.
        refused = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
        if refused or any(words in str(error) for words in _NO_MEMORY):
            raise UserError(f"out of memory on {what}\n{remedy}") from error
        raise
