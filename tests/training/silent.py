"""A monitor that only writes the log, for the tests that run the loop."""

from collections.abc import Callable

from rich.console import Console

from endeavour.training.display import TrainingDisplay
from endeavour.training.log import MetricLog
from endeavour.training.monitor import Monitor
from endeavour.training.tracking import NoTracker


class SilentMonitor(Monitor):
    """Calls `after` with the number of each update that was made."""

    def __init__(self, log: MetricLog, after: Callable[[int], None] = lambda update: None) -> None:
        super().__init__(
            log=log,
            tracker=NoTracker(),
            display=TrainingDisplay(Console(quiet=True), total_updates=None, done=0),
        )
        self._after = after

    def updated(self, update: int) -> None:
        self._after(update)
