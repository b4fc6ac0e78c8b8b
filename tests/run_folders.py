"""Folders of runs, as commands find them, without training."""

import os
from pathlib import Path

from configs import run_config
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.run import Run


def finished_run(root: Path, name: str, age: int = 0) -> Run:
    """What the search for runs looks at: of one that was finished `age` seconds ago."""
    run = Run(root, name)
    (run.model_folder).mkdir(parents=True)
    (run.model_folder / "model.json").write_text("{}")
    run.finish({"name": name})
    moment = 2_000_000_000 - age
    os.utime(run.folder / "summary.json", (moment, moment))
    return run


def begun_run(tmp_path: Path) -> tuple[Run, RunConfig, RunConfig]:
    """A run with something in it, the config that continues it, and the one that throws it away."""
    typed = [f"output_folder={tmp_path / 'outputs'}", "name=run"]
    config, restart = (run_config([*typed, *more]) for more in ([], ["training.restart=true"]))
    run = Run.of(config)
    (run.checkpoint_folder / "update-00000001").mkdir(parents=True)
    save_config(config, run.folder / "config.yaml")
    return run, config, restart
