"""Tracking by Weights & Biases, or none. Knows metrics by name; not where they come from."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic.dataclasses import dataclass

from endeavour.errors import UserError
from endeavour.settings import STRICT


@dataclass(kw_only=True, config=STRICT)
class TrackingConfig:
    """Values and their meaning: conf/tracking/*.yaml."""

    mode: Literal["none", "offline", "online"]
    project: str
    group: str | None


class Tracker:
    """One W&B run; with `tracking=none` every method does nothing.

    Args:
        run_id: ID of the run to continue; None starts a new one. `id` holds the ID in either case.
        config: shown by W&B as the run's config.
        folder: where W&B writes its files.
    """

    def __init__(
        self,
        tracking: TrackingConfig,
        *,
        name: str,
        run_id: str | None,
        config: Mapping[str, Any],
        folder: Path,
    ) -> None:
        self.id = run_id
        self._run: Any = None
        if tracking.mode == "none":
            return
        # Imported here, because it takes a second that `tracking=none` should not cost.
        import wandb

        os.environ.setdefault("WANDB_SILENT", "true")
        try:
            self._run = wandb.init(
                project=tracking.project,
                group=tracking.group,
                name=name,
                id=run_id,
                resume="allow" if run_id else None,
                config=dict(config),
                dir=str(folder),
                mode="online" if tracking.mode == "online" else "offline",
                settings=wandb.Settings(init_timeout=30, console="off", disable_git=True, silent=True),
            )
        except wandb.Error as error:
            raise UserError(
                f"tracking.mode={tracking.mode}: Weights & Biases cannot start ({error}); "
                "use tracking=offline or tracking=none"
            ) from error
        self.id = self._run.id

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        if self._run is not None:
            self._run.log(dict(metrics), step=update)

    def log_samples(self, samples: Sequence[tuple[str, str, str]], update: int) -> None:
        """Adds a table of (source, hypothesis, reference)."""
        if self._run is not None:
            import wandb

            rows: list[Any] = [list(sample) for sample in samples]
            table = wandb.Table(columns=["source", "hypothesis", "reference"], data=rows)
            self._run.log({"samples": table}, step=update)

    def finish(self) -> None:
        if self._run is not None:
            self._run.finish()
