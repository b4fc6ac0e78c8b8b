"""`endeavour average`: a run of its own from checkpoints of another run."""

from pathlib import Path

from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.pipeline.averaged import average_checkpoints
from endeavour.progress import say
from endeavour.runs.choice import select_run
from endeavour.runs.command_lines import evaluate_command
from endeavour.runs.run import Run
from endeavour.settings import STRICT


@dataclass(kw_only=True, config=STRICT)
class AverageRoot:
    """Values and their meaning: conf/average.yaml."""

    takes_begun_runs = True  # not a key: a run that is still being trained has checkpoints

    run: str | None
    updates: list[int] | None
    name: str | None
    output_folder: str


def average(config: AverageRoot) -> Run:
    """Writes the run, and returns it.

    Raises:
        UserError: no such run or checkpoint, or the name is taken.
    """
    run = select_run(config.run, Path(config.output_folder), "checkpoints are those of one run", begun=True)
    made = average_checkpoints(run, config.updates, config.name)
    checkpoints = ", ".join(made.summary["checkpoints"])
    console = Console(stderr=True)
    say(console, f"made of {checkpoints}: {made}")
    say(console, f"score it: {evaluate_command(made)}")
    return made
