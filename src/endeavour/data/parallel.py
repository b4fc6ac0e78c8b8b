"""One function over many batches, on all usable cores; the results come in order. Knows nothing of what is computed.

Its processes are Python with nothing of the caller's program, so that scripts and notebooks need no guard as those of
multiprocessing do. They are spoken to through their standard streams, which end when either side is gone: none is
waited for in vain, and none outlives its caller. Pickles go nowhere else.
"""

import gc
import math
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from queue import SimpleQueue
from time import monotonic
from typing import Any, Self, TypeVar

from endeavour.errors import RunError

MOST = 16  # processes: the one that reads text keeps no more of them busy
AHEAD = 2  # batches that are read for each of them beforehand
SECONDS_ALONE = 2  # of work before others are started, which takes about one
RETRY = "start the same command again, or with the environment variable OMP_NUM_THREADS=1 to have one process"

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """As many as OpenMP would take."""
    # Further numbers are those of nested regions.
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """What `function` makes of each of `items`, in their order; of the first few in this process.

    Args:
        function: gives the same in every process, to which it is sent once.
        items: read as they are needed, by the calling process.

    Raises:
        RunError: one of the processes could not be started, or was killed.
    """
    processes = min(usable_cores(), MOST)
    end = monotonic() + SECONDS_ALONE if processes > 1 else math.inf
    remaining = iter(items)
    for item in remaining:
        if monotonic() >= end:
            break
        yield function(item)
    else:
        return
    remaining = chain([item], remaining)
    with _started(function, processes) as submit:
        waiting: deque[Future[Result]] = deque()
        for item in remaining:
            waiting.append(submit(item))
            if len(waiting) > AHEAD * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def _started(function: Callable[[Any], Any], count: int) -> Generator[Callable[[Any], "Future[Any]"]]:
    """Yields how to have a process call `function`; they are gone once it is left, whatever they were doing."""
    greeting = pickle.dumps((function, gc.get_threshold()))
    idle: SimpleQueue[_Process] = SimpleQueue()

    def call(item: Any) -> Any:
        process = idle.get()
        try:
            return process.call(item)
        finally:
            idle.put(process)

    with ExitStack() as stack:
        processes = [stack.enter_context(_Process(greeting)) for _ in range(count)]
        threads = stack.enter_context(ThreadPoolExecutor(count))  # one waits for each process
        for process in processes:
            stack.callback(process.kill)  # so that none is waited for
            idle.put(process)
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        yield partial(threads.submit, call)


class _Process:
    """A process of this module.

    Args:
        greeting: what `serve` reads first.
    """

    def __init__(self, greeting: bytes) -> None:
        self._greeting = greeting
        code = f"from {__name__} import serve; serve()"
        own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | own,
            )
        except OSError as error:
            raise RunError(f"no further process can be started ({error.strerror}); {RETRY}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def call(self, item: Any) -> Any:
        """What the function makes of `item`, or the error that it raises."""
        try:
            self._requests.write(self._greeting)
            self._greeting = b""
            pickle.dump(item, self._requests)
            self._requests.flush()
            error, result = pickle.load(self._answers)
        except (OSError, EOFError, pickle.UnpicklingError) as gone:
            raise RunError(f"a process was killed, perhaps because memory ran out; {RETRY}") from gone
        if error is not None:
            raise error
        return result

    def kill(self) -> None:
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        with suppress(BrokenPipeError), self._process:
            pass  # closes its streams and takes its status


def serve() -> None:
    """What each process does: reads a function, then what it is called with, until its caller is gone."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller to heed
    with suppress(EOFError, BrokenPipeError, pickle.UnpicklingError):
        function, threshold = pickle.load(requests)
        gc.set_threshold(*threshold)
        while True:
            item = pickle.load(requests)
            try:
                answer = None, function(item)
            except Exception as error:
                error.add_note(traceback.format_exc())
                answer = error, None
            pickle.dump(answer, answers)
            answers.flush()
    os._exit(0)  # without a last word to a stream that nobody reads
