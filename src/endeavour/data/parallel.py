"""One function over many batches, on all cores; the results come in order. Knows nothing of what is computed.

Processes of loky, which start without running the caller's program again, so that notebooks and scripts need no guard.
"""

import gc
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, TypeVar

from endeavour.errors import UserError

MOST = 16  # processes: one that reads text keeps no more of them busy
AHEAD = 2  # batches that wait for each of them
CALLER_SECONDS = 1.0  # between two looks at whether the caller is still there

Item = TypeVar("Item")
Result = TypeVar("Result")

_function: Callable[[Any], Any]  # in a process of its own


def map_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], *, alone: int
) -> Iterator[Result]:
    """What `function` makes of each of `items`, in their order.

    Args:
        function: gives the same in every process, to which it is sent once; may be a lambda.
        items: read as they are needed, by the calling process.
        alone: how many of them this process does itself, before it starts others, which takes them a second or two.

    Raises:
        UserError: one of the processes was killed, as a lack of memory does.
    """
    remaining = iter(items)
    yield from map(function, islice(remaining, alone))
    if (first := next(remaining, None)) is None:
        return
    # Imported here: without many items nobody should wait for it.
    import loky

    remaining = chain([first], remaining)
    processes = min(loky.cpu_count(), MOST)
    yield from map(function, remaining) if processes == 1 else _in_processes(function, remaining, processes)


def _in_processes(
    function: Callable[[Item], Result], items: Iterator[Item], processes: int
) -> Iterator[Result]:
    from loky.process_executor import TerminatedWorkerError

    with _started(function, processes) as submit:
        waiting: deque[Any] = deque()
        try:
            for item in items:
                waiting.append(submit(_call, item))
                if len(waiting) > AHEAD * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except TerminatedWorkerError as error:
            raise UserError(
                f"one of {processes} processes was killed, perhaps because memory ran out; with the environment "
                "variable LOKY_MAX_CPU_COUNT=1 there is one process alone"
            ) from error


@contextmanager
def _started(function: Callable[[Any], Any], processes: int) -> Generator[Callable[..., Any]]:
    """Yields how to hand them a call; they are gone once it is left, whatever they were doing."""
    from loky import ProcessPoolExecutor

    start = (function, os.getpid(), gc.get_threshold())
    executor = ProcessPoolExecutor(processes, initializer=_begin, initargs=start)
    try:
        yield executor.submit
    finally:
        executor.shutdown(kill_workers=True)


def _begin(function: Callable[[Any], Any], caller: int, threshold: tuple[int, int, int]) -> None:
    """In each of the processes: Ctrl-C is for the caller to heed, and none outlives it."""
    global _function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(*threshold)
    threading.Thread(target=_end_with, args=(caller,), daemon=True).start()
    _function = function


def _end_with(caller: int) -> None:
    """Ends this process when its caller was killed, for whose next call it would wait for ever."""
    while os.getppid() == caller:
        time.sleep(CALLER_SECONDS)
    os._exit(1)


def _call(item: Any) -> Any:
    return _function(item)
