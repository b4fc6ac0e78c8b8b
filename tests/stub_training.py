"""A stub in place of training, for sweeps: what it was called for, and what a run leaves behind."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from endeavour.errors import UserError
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.run import Run
from endeavour.training.loop import Pruned

BEST_RATE = 2e-3
RATE = "training.learning_rate"
VALIDATIONS = (100, 200, 300)

Prune = Callable[[], bool]


class StubTraining:
    """In place of `train_run`: BLEU is best at BEST_RATE; a finished run is not trained again.

    `calls` are the runs that were trained; `at_call` may raise what it likes when that many were.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.rates: list[float] = []
        self.groups: set[str | None] = set()
        self.commands: list[list[str]] = []
        self.at_call: dict[int, BaseException] = {}
        self.bad_rates: list[float] = []
        self.nan_rates: list[float] = []

    def __call__(self, config: RunConfig, command: Sequence[str], *, prune: Prune | None = None) -> None:
        self.groups.add(config.tracking.group)
        self.commands.append(list(command))
        folder = Run.of(config).folder
        begun = folder.is_dir()
        self.run(folder, config.training.learning_rate, prune)
        if not begun:
            save_config(config, folder / "config.yaml")

    def run(self, folder: Path, rate: float, prune: Prune | None = None) -> None:
        if (folder / "summary.json").is_file():
            return
        self.calls.append(folder.name)
        self.rates.append(rate)
        if len(self.calls) in self.at_call:
            raise self.at_call[len(self.calls)]
        if rate in self.bad_rates:
            raise UserError(f"training diverged at {rate}")
        folder.mkdir(parents=True, exist_ok=True)
        bleu = math.nan if rate in self.nan_rates else 40 - 10 * abs(math.log10(rate / BEST_RATE))
        lines: list[str] = []
        for update in VALIDATIONS:
            share = update / VALIDATIONS[-1]
            lines.append(json.dumps({"kind": "validation", "update": update, "bleu": bleu * share}))
            (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
            if prune is not None and update < VALIDATIONS[-1] and prune():
                raise Pruned(f"after update {update}")
        summary = {
            "name": folder.name,
            "status": "finished",
            "updates": 300,
            "validation": {"loss": 1.0, "perplexity": 3.0, "bleu": bleu},
            "test": {},
        }
        (folder / "summary.json").write_text(json.dumps(summary))
