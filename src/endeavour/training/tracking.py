"""Where the metrics of a run go besides its own log: what a tracker is told, and that it cannot end a training.

Knows metrics by name; not where they come from, and not the programs that take them: those are in `trackers`.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass as plain_dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from endeavour.errors import kind_and_first_line
from endeavour.redaction import redact
from endeavour.settings import STRICT

Sample = tuple[str, str, str]  # source, hypothesis, reference


@dataclass(kw_only=True, config=STRICT)
class TrackingConfig:
    """Values and their meaning: conf/tracking/*.yaml."""

    tracker: Literal["none", "wandb", "tensorboard", "mlflow", "trackio"]
    online: bool
    project: str
    group: str | None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.online and self.tracker in ("none", "tensorboard"):
            raise ValueError(f"tracking.online=true: tracking.tracker={self.tracker} knows no server")
        return self


@plain_dataclass(frozen=True)
class TrackedRun:
    """What a tracker is told of the run that it is opened for.

    Attributes:
        config: shown as the run's config.
        folder: where it may write files of this run.
        root: where it may write files that all runs share.
        update: after which the run goes on: what a tracker has of later ones is repeated.
    """

    name: str
    config: Mapping[str, Any]
    folder: Path
    root: Path
    update: int


class Tracker(Protocol):
    """One run of a tracker. `id` is the ID by which a run that is resumed continues there."""

    id: str | None

    def log(self, metrics: Mapping[str, float], update: int) -> None: ...

    def log_samples(self, samples: Sequence[Sample], update: int) -> None:
        """Adds a table of (source, hypothesis, reference)."""
        ...

    def finish(self) -> None: ...


class NoTracker:
    """Keeps the ID of a run that was tracked before, and does nothing else."""

    def __init__(self, run_id: str | None = None) -> None:
        self.id = run_id

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        pass

    def log_samples(self, samples: Sequence[Sample], update: int) -> None:
        pass

    def finish(self) -> None:
        pass


class GuardedTracker:
    """A tracker that cannot end a training: the first exception is noted, and from then on it is left alone.

    Its ID says whose it is, as `name:id`: another tracker, with which the run may be resumed, does not look for it.

    Args:
        open_it: opens the tracker of this `name`, given the ID of the run to continue, or None for a new one.
        tracking_id: of a run that was tracked before, by whichever tracker; it stays where opening fails.
        note: shows a line.
    """

    def __init__(
        self,
        name: str,
        open_it: Callable[[str | None], Tracker],
        tracking_id: str | None,
        note: Callable[[str], None],
    ) -> None:
        self.id = tracking_id
        self._note = note
        self._tracker: Tracker = NoTracker()
        before, _, run_id = (tracking_id or "").partition(":")
        with self._guarded():
            self._tracker = open_it(run_id if before == name else None)
            self.id = f"{name}:{self._tracker.id}"

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        with self._guarded():
            self._tracker.log(metrics, update)

    def log_samples(self, samples: Sequence[Sample], update: int) -> None:
        with self._guarded():
            self._tracker.log_samples(samples, update)

    def finish(self) -> None:
        with self._guarded():
            self._close()

    @contextmanager
    def _guarded(self) -> Generator[None]:
        try:
            yield
        except (Exception, SystemExit) as error:
            self._note(redact(f"note: tracking stops, training goes on ({kind_and_first_line(error)})"))
            with suppress(
                Exception, SystemExit
            ):  # left open, it would take what the next run of this process logs
                self._close()

    def _close(self) -> None:
        tracker, self._tracker = self._tracker, NoTracker()
        tracker.finish()
