"""One thread that does all work with models, in turn: the page's requests first, then lines to be translated.

Lines of different requests that are for the same model and settings are translated together, a limited number at a
time, so that a long text does not keep the others waiting. Knows neither models nor HTTP.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# What is translated together ends after this many characters too: a few long lines are as much work as many.
JOINED_CHARACTERS = 8_000


class Cancelled(Exception):
    """Nobody waits for the result any more."""


class Busy(Exception):
    """As many requests wait as are allowed."""


class Job(Generic[T]):
    """A piece of work and its result to be.

    `work` is called with a function that it calls from time to time, and that raises `Cancelled` once nobody waits.
    """

    def __init__(self, work: Callable[[Callable[[], None]], T]) -> None:
        self.result: Future[T] = Future()
        self._work = work
        self._unwanted = threading.Event()

    def cancel(self) -> None:
        """Work that waits is not begun; work that is under way ends at its next step."""
        self._unwanted.set()
        self.result.cancel()

    def check(self) -> None:
        """Raises `Cancelled` if the job was cancelled."""
        if self._unwanted.is_set():
            raise Cancelled

    def run(self) -> None:
        """Does the work; whatever it raises is the result."""
        if not self.result.set_running_or_notify_cancel():
            return
        try:
            self.result.set_result(self._work(self.check))
        except BaseException as error:
            self.result.set_exception(error)


@dataclass(eq=False)
class Lines(Generic[T]):
    """Lines of one request; they may share a call with those of others that have the same `key`."""

    key: Hashable
    lines: Sequence[str]
    translated: list[T] = field(default_factory=lambda: [])
    result: "Future[list[T]]" = field(default_factory=lambda: Future())

    def cancel(self) -> None:
        """Lines that are not yet begun are left out."""
        self.result.cancel()

    @property
    def left(self) -> int:
        return len(self.lines) - len(self.translated)

    def next(self, count: int) -> Sequence[str]:
        """At most so many of those that are not yet translated."""
        return self.lines[len(self.translated) : len(self.translated) + count]


class Worker:
    """The thread, and what waits for it.

    Args:
        translate: lines with one key to their translations, as many; called in the thread.
        waiting: requests that may wait.
        joined_lines: lines that are translated together.
    """

    def __init__(
        self, translate: Callable[[Any, Sequence[str]], Sequence[Any]], *, waiting: int, joined_lines: int
    ) -> None:
        self._translate = translate
        self._most_waiting, self._joined_lines = waiting, joined_lines
        self._changed = threading.Condition()
        self._jobs: deque[Job[Any]] = deque()
        self._lines: deque[Lines[Any]] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="playground-worker", daemon=True)
        self._thread.start()

    def submit(self, request: Job[Any] | Lines[Any]) -> None:
        """Raises `Busy` where there is no room."""
        with self._changed:
            # Those that were cancelled are still in the queues, but take no time.
            if self.waiting >= self._most_waiting:
                raise Busy
            if isinstance(request, Job):
                self._jobs.append(request)
            else:
                self._lines.append(request)
            self._changed.notify()

    @property
    def waiting(self) -> int:
        """Requests that wait, without those that were cancelled."""
        with self._changed:
            return sum(not request.result.cancelled() for request in (*self._jobs, *self._lines))

    def close(self) -> None:
        """Waits for all that was submitted."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            work()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not (self._jobs or self._lines or self._closed):
                self._changed.wait()
            if self._jobs:
                return self._jobs.popleft().run
            if self._lines:
                return self._translate_some
            return None

    def _translate_some(self) -> None:
        """One call for the request that has waited longest, and for others with the same key."""
        with self._changed:
            shared = self._share()
        if not shared:
            return
        try:
            self._translate_shared(shared)
        except BaseException as error:
            if len(shared) == 1:
                self._finish(shared[0][0], error)
                return
            for request, count in shared:  # each by itself: the error may be that of one
                try:
                    self._translate_shared([(request, count)])
                except BaseException as own:
                    self._finish(request, own)

    def _translate_shared(self, shared: list[tuple[Lines[Any], int]]) -> None:
        lines = [line for request, count in shared for line in request.next(count)]
        translated = list(self._translate(shared[0][0].key, lines))
        assert len(translated) == len(lines)
        start = 0
        for request, count in shared:
            request.translated += translated[start : start + count]
            start += count
            if request.left:  # the others come first now, or a long text would keep them waiting
                with self._changed:
                    self._lines.remove(request)
                    self._lines.append(request)
            else:
                self._finish(request)

    def _share(self) -> list[tuple[Lines[Any], int]]:
        """The requests that share the next call, and of how many lines each."""
        self._lines = deque(request for request in self._lines if not request.result.cancelled())
        shared: list[tuple[Lines[Any], int]] = []
        lines, characters = self._joined_lines, JOINED_CHARACTERS
        for request in self._lines:
            if request.key != self._lines[0].key:
                continue
            count = 0
            for line in request.next(lines):
                if characters <= 0:
                    break
                characters -= len(line)
                count += 1
            lines -= count
            shared.append((request, count))
            if lines <= 0 or characters <= 0:
                break
        return shared

    def _finish(self, request: Lines[Any], error: BaseException | None = None) -> None:
        with self._changed:
            self._lines.remove(request)
        if not request.result.set_running_or_notify_cancel():
            return
        if error is None:
            request.result.set_result(request.translated)
        else:
            request.result.set_exception(error)
