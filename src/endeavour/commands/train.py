"""`endeavour train`: prepares, trains and evaluates a run, or resumes it where it stopped."""

from collections.abc import Sequence

from endeavour.pipeline.training import train_run
from endeavour.runs.config import RunConfig


def train(config: RunConfig, command: Sequence[str]) -> None:
    """The run of `config`, from wherever it stands to its scores; see `pipeline.training`."""
    train_run(config, command)
