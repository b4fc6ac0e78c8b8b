"""Stopping a run by a signal: it is noted, and handled between two updates. Knows nothing of training."""

import signal
from collections.abc import Callable
from threading import current_thread, main_thread
from types import FrameType
from typing import Self

# Those that this system has: Windows has no SIGHUP and no SIGUSR1.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")


class Interrupted(BaseException):
    """A signal stopped the run; it is saved and can be resumed.

    Like KeyboardInterrupt it is not an `Exception`: it ends a whole sweep, not only one trial.
    """

    def __init__(self, signal_number: int, checkpoint: str) -> None:
        super().__init__(
            f"stopped by {signal.Signals(signal_number).name} after saving {checkpoint}; "
            "the same command, without training.restart, resumes the run"
        )
        self.exit_code = 128 + signal_number
        self._arguments = signal_number, checkpoint

    def __reduce__(self) -> tuple[type[Self], tuple[int, str]]:
        return type(self), self._arguments  # a sweep pickles it when a trial runs in another process


class StopSignal:
    """Notes SIGINT, SIGTERM, SIGHUP (of a terminal that closes) or SIGUSR1 (sent by schedulers); a second signal has
    its usual effect, but for SIGHUP, of which a terminal may send several.

    What is ignored, as SIGHUP by nohup, stays so; but for SIGINT, which shells ignore in background processes. In
    another thread than the main one, where Python lets nobody handle signals, it notes none.

    Args:
        noted: called when one comes.
    """

    def __init__(self, noted: Callable[[], None] = lambda: None) -> None:
        self.number = 0
        self._noted = noted
        self._usual: dict[int, object] = {}

    def __enter__(self) -> Self:
        names = NAMES if current_thread() is main_thread() else ()
        for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
            if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGINT:
                self._usual[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._usual.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, _: FrameType | None) -> None:
        self.number = number
        self._noted()
        self.__exit__()
        if number == getattr(signal, "SIGHUP", None):
            signal.signal(number, signal.SIG_IGN)  # until `__exit__` is called once more
