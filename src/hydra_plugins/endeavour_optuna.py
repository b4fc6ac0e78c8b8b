"""Hydra's `hydra/sweeper=optuna`: its launchers run what `endeavour.sweeps.search` asks for.

Hydra takes sweepers from this package only, and imports it at every start: nothing heavy on top. Instead of
hydra-optuna-sweeper, because that one needs an Optuna of 2022 (1.3) or an unreleased Hydra (1.4), and starts its
count of trials anew each time.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class OptunaSweeper(Sweeper):
    """Its settings: conf/hydra/sweeper/optuna.yaml."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._launched = 0

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self._folder = Path(config.hydra.sweep.dir)
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        from endeavour.sweeps.search import search

        self._folder.mkdir(parents=True, exist_ok=True)
        search(self._settings, arguments, self._folder, self._run)

    def _run(self, trials: Mapping[int, list[str]]) -> None:
        """Runs the trials, by number, with these overrides; what comes of each stands in its folder.

        Raises:
            Exception: none of them was even begun.
        """
        from endeavour.sweeps.trial import NOTE

        batch = [[*overrides, f"hydra.sweep.subdir={number}"] for number, overrides in trials.items()]
        notes = [self._folder / str(number) / NOTE for number in trials]
        for note in notes:
            note.unlink(missing_ok=True)
        assert self.launcher is not None
        try:
            self.launcher.launch(batch, initial_job_idx=self._launched)
        except Exception as error:  # such as a process that was killed
            if not any(note.is_file() for note in notes):
                raise
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        self._launched += len(batch)
