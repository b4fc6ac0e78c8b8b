"""A function in a process of its own, whose peak memory is then its own. Imports no torch: a child may need none."""

import multiprocessing
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

from endeavour.errors import UserError

P = ParamSpec("P")
T = TypeVar("T")


def in_fresh_process(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Calls a function of a module in a new Python, not a fork of this one, and returns its result.

    Raises:
        UserError: the process was killed, for instance because it ran out of memory; or whatever the function raised.
    """
    context = multiprocessing.get_context("spawn")
    # Ctrl-C reaches both; the child leaves it to this process, and so shows no traceback of its own.
    with ProcessPoolExecutor(
        1, mp_context=context, initializer=signal.signal, initargs=(signal.SIGINT, _pass_over)
    ) as pool:
        try:
            return pool.submit(function, *arguments, **keywords).result()
        except KeyboardInterrupt:
            for child in multiprocessing.active_children():
                child.terminate()
            raise
        except BrokenProcessPool as error:
            raise UserError(
                "a measuring process was killed, most likely because it ran out of memory: "
                "choose smaller bench.sizes, bench.tokens_per_batch or bench.scale_pairs"
            ) from error


def _pass_over(_number: int, _frame: FrameType | None) -> None:
    """Instead of SIG_IGN, which what the child starts would inherit."""


def peak_memory() -> int | None:
    """The most memory this process ever held, in bytes: its resident pages, libraries included; None on Windows."""
    status = Path("/proc/self/status")
    if status.is_file():
        # Not `ru_maxrss`: a process that was started by a larger one begins with the peak of that one.
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        from resource import RUSAGE_SELF, getrusage
    except ModuleNotFoundError:
        return None
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
