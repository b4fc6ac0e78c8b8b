"""What a run is besides its weights, and the checkpoints that hold both.

Knows files and one run folder's layout; not batches, losses or devices.
"""

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.training.checkpoint import (
    atomic_folder,
    checkpoints_in,
    load_weights,
    optimizer_tensors,
    random_state,
    restore_optimizer,
    restore_random_state,
    verify,
    write_model,
)

STOPPED = "-stopped"


@dataclass
class TrainState:
    """Where a run stands after `update` updates.

    Attributes:
        epoch: the epoch in work, from 0; `position` of its batches are done.
        target_tokens: predicted so far, padding not counted.
        seconds: spent on training so far, over all the processes that took part in the run.
        best: (metric, update) of the best validations, best first, at most `keep_best`.
        validations_without_gain: since the metric last improved.
        tracking_id: of the W&B run.
        data_digest: of the prepared data that the run is trained on.
        window: metrics that are summed up and not yet logged.
    """

    update: int = 0
    epoch: int = 0
    position: int = 0
    target_tokens: int = 0
    seconds: float = 0.0
    best: list[tuple[float, int]] = field(default_factory=lambda: [])
    validations_without_gain: int = 0
    tracking_id: str | None = None
    data_digest: str = ""
    window: dict[str, Any] = field(default_factory=lambda: {})

    def note_validation(self, metric: float, *, higher_is_better: bool, keep: int) -> bool:
        """Enters a validation of the present update; says whether it is the best so far."""
        ordered = sorted(
            [*self.best, (metric, self.update)], key=lambda entry: entry[0], reverse=higher_is_better
        )
        improved = ordered[0][1] == self.update
        self.best = ordered[: max(keep, 1)]
        self.validations_without_gain = 0 if improved else self.validations_without_gain + 1
        return improved


class Checkpoints:
    """The checkpoints of one run: `<folder>/update-00000500/` and so on, the last and the best of them kept."""

    def __init__(
        self, folder: Path, tokenizers: tuple[Tokenizer, Tokenizer], *, keep_last: int, keep_best: int
    ) -> None:
        self.folder = folder
        self._tokenizers = tokenizers
        self._keep_last = keep_last
        self._keep_best = keep_best

    def path(self, update: int) -> Path:
        return self.folder / f"update-{update:08d}"

    def save(
        self,
        model: Transformer,
        optimizer: torch.optim.Optimizer,
        state: TrainState,
        *,
        stopped: bool = False,
    ) -> Path:
        """Writes a checkpoint atomically, then deletes those that need not be kept.

        One that was written because the run was `stopped` serves to resume and nothing else: an uninterrupted
        run would not have it, so it is not averaged and goes with the next save.
        """
        target = self.path(state.update)
        if stopped:
            target = target.with_name(target.name + STOPPED)
        with atomic_folder(target) as partial:
            write_model(partial, model, self._tokenizers)
            save_file(optimizer_tensors(optimizer), partial / "optimizer.safetensors")
            content = {"state": asdict(state), "random": random_state()}
            (partial / "state.json").write_text(json.dumps(content), "utf-8")
        kept = {target, *self.last(), *self.best(state)}
        for path in checkpoints_in(self.folder):
            if path not in kept:
                shutil.rmtree(path)
        return target

    def restore_newest(
        self, model: Transformer, optimizer: torch.optim.Optimizer
    ) -> tuple[TrainState, list[str]]:
        """Loads the newest checkpoint that verifies; a fresh state if there is none.

        Returns:
            The state, and a line for each checkpoint that was passed over because it is damaged.
        """
        damaged: list[str] = []
        for path in reversed(checkpoints_in(self.folder)):
            try:
                verify(path)
            except UserError as error:
                damaged.append(f"passed over a damaged checkpoint: {error}")
                continue
            load_weights(model, path)
            restore_optimizer(optimizer, load_file(path / "optimizer.safetensors"))
            content: dict[str, Any] = json.loads((path / "state.json").read_text())
            restore_random_state(content["random"])
            state = TrainState(**content["state"])
            state.best = [(metric, update) for metric, update in state.best]
            return state, damaged
        return TrainState(), damaged

    def last(self) -> list[Path]:
        """The newest scheduled checkpoints, at most `keep_last`, oldest first."""
        scheduled = [path for path in checkpoints_in(self.folder) if not path.name.endswith(STOPPED)]
        return scheduled[-self._keep_last :]

    def best(self, state: TrainState) -> list[Path]:
        """The checkpoints of the best validations, at most `keep_best`, best first."""
        paths = [self.path(update) for _, update in state.best[: self._keep_best]]
        return [path for path in paths if path.is_dir()]
