"""Trackers: Weights & Biases, TensorBoard, MLflow, trackio. Each is written to files unless `tracking.online` is set.

Knows what each of their packages is called with. A package is imported by its own class alone, since that takes
seconds, and most are extras. Credentials and addresses come from the environment.
"""

import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from endeavour.errors import UserError
from endeavour.markdown import markdown_table
from endeavour.nested import flatten
from endeavour.optional import require
from endeavour.storage import file_lock
from endeavour.training.tracking import (
    GuardedTracker,
    NoTracker,
    Sample,
    TrackedRun,
    Tracker,
    TrackingConfig,
)

# What says where a tracker's server is, where there is more than its own login.
SERVERS = {"mlflow": ("MLFLOW_TRACKING_URI",), "trackio": ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")}
MLFLOW_BATCH = 100  # parameters that a server takes at once
COLUMNS = ("source", "hypothesis", "reference")


def require_tracker(tracking: TrackingConfig) -> None:
    """Raises `UserError` where the package of the tracker is missing, or what says where its server is."""
    if tracking.tracker in ("none", "wandb"):  # wandb is always installed, and asks for its login itself
        return
    require(tracking.tracker, tracking.tracker)
    variables = SERVERS.get(tracking.tracker, ())
    if tracking.online and variables and not any(os.environ.get(name) for name in variables):
        raise UserError(
            f"tracking.online=true: {' or '.join(variables)} in the environment must say where {tracking.tracker} "
            "sends to; tracking.online=false writes files"
        )


def open_tracker(
    tracking: TrackingConfig, run: TrackedRun, *, tracking_id: str | None, note: Callable[[str], None]
) -> Tracker:
    """The tracker that is chosen; what goes wrong with it is noted and not raised.

    Args:
        tracking_id: of the run to continue, by whichever tracker; None starts a new one.
    """
    name = tracking.tracker
    if name == "none":
        return NoTracker(tracking_id)
    return GuardedTracker(name, lambda run_id: TRACKERS[name](tracking, run, run_id), tracking_id, note)


class WandbTracker:
    """A run of Weights & Biases: live, or in the run's folder for `wandb sync`."""

    def __init__(self, tracking: TrackingConfig, run: TrackedRun, run_id: str | None) -> None:
        import wandb

        os.environ.setdefault("WANDB_SILENT", "true")
        self._run: Any = wandb.init(
            project=tracking.project,
            group=tracking.group,
            name=run.name,
            id=run_id,
            resume="allow" if run_id else None,
            config=dict(run.config),
            dir=str(run.folder),
            mode="online" if tracking.online else "offline",
            settings=wandb.Settings(init_timeout=30, console="off", disable_git=True, silent=True),
        )
        self.id: str | None = self._run.id

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        self._run.log(dict(metrics), step=update)

    def log_samples(self, samples: Sequence[Sample], update: int) -> None:
        import wandb

        rows: list[Any] = [list(sample) for sample in samples]
        self._run.log({"samples": wandb.Table(columns=list(COLUMNS), data=rows)}, step=update)

    def finish(self) -> None:
        self._run.finish()


class TensorBoardTracker:
    """Event files in the run's folder: `tensorboard --logdir` of the folder of all runs shows them side by side."""

    def __init__(self, tracking: TrackingConfig, run: TrackedRun, run_id: str | None) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        self.id: str | None = "tensorboard"
        # The page drops what earlier files have from this update on.
        repeated = 0 if run_id is None else run.update + 1
        self._writer: Any = SummaryWriter(run.folder / self.id, purge_step=repeated)
        if run_id is None:
            rows = [(key, str(value)) for key, value in flatten(run.config).items()]
            self._writer.add_text("config", markdown_table(("key", "value"), rows, texts=(0, 1)), 0)

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, update)
        self._writer.flush()

    def log_samples(self, samples: Sequence[Sample], update: int) -> None:
        self._writer.add_text("samples", markdown_table(COLUMNS, samples, texts=(0, 1, 2)), update)
        self._writer.flush()

    def finish(self) -> None:
        self._writer.close()


class MlflowTracker:
    """A run of MLflow: on the server of MLFLOW_TRACKING_URI, or in a database that all runs share, mlflow.db."""

    def __init__(self, tracking: TrackingConfig, run: TrackedRun, run_id: str | None) -> None:
        mlflow, entities = require("mlflow", "mlflow"), require("mlflow.entities", "mlflow")
        # A server that is gone must not hold up a training for minutes at each log.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
        self._metric: Any = entities.Metric
        root = run.root.resolve()
        uri, artifacts = f"sqlite:///{root / 'mlflow.db'}", (root / "mlflow-artifacts").as_uri()
        if tracking.online:
            uri = artifacts = None
        for name in ("mlflow", "alembic"):  # a line for each of the tables that it makes
            logging.getLogger(name).setLevel(logging.WARNING)
        with file_lock(root / ".mlflow.lock"):  # trials that run at once would all make them
            self._client: Any = mlflow.MlflowClient(tracking_uri=uri)
            known = self._client.get_experiment_by_name(tracking.project)
            experiment = (
                known.experiment_id if known else self._client.create_experiment(tracking.project, artifacts)
            )
        self.id: str | None = run_id
        if run_id is not None:
            try:
                self._client.update_run(run_id, status="RUNNING")
                return
            except mlflow.MlflowException:  # deleted there
                pass
        tags = {"group": tracking.group} if tracking.group else {}
        self.id = self._client.create_run(experiment, run_name=run.name, tags=tags).info.run_id
        params = [entities.Param(key, str(value)) for key, value in flatten(run.config).items()]
        for first in range(0, len(params), MLFLOW_BATCH):
            self._client.log_batch(self.id, params=params[first : first + MLFLOW_BATCH])

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        now = int(time.time() * 1000)
        rows = [self._metric(name, value, now, update) for name, value in metrics.items()]
        self._client.log_batch(self.id, metrics=rows)

    def log_samples(self, samples: Sequence[Sample], update: int) -> None:
        self._client.log_text(
            self.id, markdown_table(COLUMNS, samples, texts=(0, 1, 2)), f"samples/{update:08}.md"
        )

    def finish(self) -> None:
        self._client.set_terminated(self.id)


class TrackioTracker:
    """A run of trackio: in its own folder ($TRACKIO_DIR), or in the Space or on the server that its variables name."""

    def __init__(self, tracking: TrackingConfig, run: TrackedRun, run_id: str | None) -> None:
        self._trackio: Any = require("trackio", "trackio")
        # It finds a run again by its name, which runs of other folders may have too.
        self.id: str | None = run_id or f"{run.name}-{secrets.token_hex(4)}"
        hidden = () if tracking.online else SERVERS["trackio"]
        with _without(hidden), redirect_stdout(sys.stderr):
            self._run: Any = self._trackio.init(
                project=tracking.project,
                name=self.id,
                group=tracking.group,
                config=dict(run.config),
                resume="allow",
                embed=False,
            )

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        self._run.log(dict(metrics), step=update)

    def log_samples(self, samples: Sequence[Sample], update: int) -> None:
        table = self._trackio.Table(columns=list(COLUMNS), data=[list(sample) for sample in samples])
        self._run.log({"samples": table}, step=update)

    def finish(self) -> None:
        with redirect_stdout(sys.stderr):
            self._trackio.finish()


TRACKERS: dict[str, Callable[[TrackingConfig, TrackedRun, str | None], Tracker]] = {
    "wandb": WandbTracker,
    "tensorboard": TensorBoardTracker,
    "mlflow": MlflowTracker,
    "trackio": TrackioTracker,
}


@contextmanager
def _without(variables: Sequence[str]) -> Generator[None]:
    """Hides these variables of the environment."""
    hidden = {name: os.environ.pop(name) for name in variables if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)
