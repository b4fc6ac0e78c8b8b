"""Where the metrics of a run are shown besides its own log: Weights & Biases, or nowhere.

Knows metrics by name; not where they come from.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic.dataclasses import dataclass

from endeavour.errors import UserError
from endeavour.settings import STRICT


@dataclass(kw_only=True, config=STRICT)
class TrackingConfig:
    """Values and their meaning: conf/tracking/*.yaml."""

    tracker: Literal["none", "wandb"]
    online: bool
    project: str
    group: str | None


class Tracker(Protocol):
    """One run of a tracker. `id` is the ID by which a run that is resumed continues there."""

    id: str | None

    def log(self, metrics: Mapping[str, float], update: int) -> None: ...

    def log_samples(self, samples: Sequence[tuple[str, str, str]], update: int) -> None:
        """Adds a table of (source, hypothesis, reference)."""
        ...

    def finish(self) -> None: ...


def open_tracker(
    tracking: TrackingConfig, *, name: str, run_id: str | None, config: Mapping[str, Any], folder: Path
) -> Tracker:
    """The tracker that is chosen.

    Args:
        run_id: ID of the run to continue; None starts a new one.
        config: shown as the run's config.
        folder: where the tracker may write files.
    """
    match tracking.tracker:
        case "none":
            return NoTracker(run_id)
        case "wandb":
            return WandbTracker(tracking, name=name, run_id=run_id, config=config, folder=folder)


class NoTracker:
    """Keeps the ID of a run that was tracked before, and does nothing else."""

    def __init__(self, run_id: str | None = None) -> None:
        self.id = run_id

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        pass

    def log_samples(self, samples: Sequence[tuple[str, str, str]], update: int) -> None:
        pass

    def finish(self) -> None:
        pass


class WandbTracker:
    """A run of Weights & Biases: live, or in `folder` for `wandb sync`. For the arguments see `open_tracker`."""

    def __init__(
        self,
        tracking: TrackingConfig,
        *,
        name: str,
        run_id: str | None,
        config: Mapping[str, Any],
        folder: Path,
    ) -> None:
        # Imported here, because it takes a second that `tracking=none` should not cost.
        import wandb

        os.environ.setdefault("WANDB_SILENT", "true")
        try:
            self._run: Any = wandb.init(
                project=tracking.project,
                group=tracking.group,
                name=name,
                id=run_id,
                resume="allow" if run_id else None,
                config=dict(config),
                dir=str(folder),
                mode="online" if tracking.online else "offline",
                settings=wandb.Settings(init_timeout=30, console="off", disable_git=True, silent=True),
            )
        except wandb.Error as error:
            raise UserError(
                f"tracking.online={str(tracking.online).lower()}: Weights & Biases cannot start ({error}); "
                "use tracking=offline or tracking=none"
            ) from error
        self.id: str | None = self._run.id

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        self._run.log(dict(metrics), step=update)

    def log_samples(self, samples: Sequence[tuple[str, str, str]], update: int) -> None:
        import wandb

        rows: list[Any] = [list(sample) for sample in samples]
        table = wandb.Table(columns=["source", "hypothesis", "reference"], data=rows)
        self._run.log({"samples": table}, step=update)

    def finish(self) -> None:
        self._run.finish()
