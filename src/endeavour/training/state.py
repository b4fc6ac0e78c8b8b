"""What a run is besides its weights, and the checkpoints that hold both.

Knows files, the layout of the checkpoints folder, and that processes save together; not losses.
"""

import json
import math
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from endeavour.data.tokenizer import Tokenizers
from endeavour.errors import RunError, UserError
from endeavour.model.transformer import Transformer
from endeavour.storage import atomic_folder, read_json_object, verify
from endeavour.training import loss_scale
from endeavour.training.checkpoint import (
    checkpoints_in,
    load_weights,
    optimizer_tensors,
    random_state,
    restore_optimizer,
    restore_random_state,
    save_tensors,
    size_of,
    write_model,
)
from endeavour.training.distributed import Ranks
from endeavour.training.sharding import whole_model
from endeavour.training.updates import Update

STOPPED = "-stopped"
_OWN = re.compile(rf"update-\d{{8}}({STOPPED})?|\.update-\d{{8}}({STOPPED})?\.(partial|old)")


@dataclass
class TrainState:
    """Where a run stands after `update` updates.

    Attributes:
        epoch: the current epoch, from 0; `position` of its batches are done.
        stage_epoch: the epoch with which the current stage of `training.mixture` began.
        seconds: training time so far, over all starts of the run.
        best: (metric, update) of the best validations, best first, at most `keep_best`.
        validations_without_gain: since the metric last improved.
        tracking_id: the tracker's ID of the run.
        data_digest: digest of the prepared data that the run is trained on.
        pretrained_digest: digest of the weights that the run began with; empty if it began from nothing.
        precision: "fp32", "bf16" or "fp16", as chosen when the run began; empty before that.
        skipped_in_a_row: updates skipped since the last one that was made, because their gradients were not finite.
        loss_scale: of fp16, and the updates without overflow since it last changed.
        window: metrics that are summed but not yet logged.
    """

    update: int = 0
    epoch: int = 0
    position: int = 0
    stage_epoch: int = 0
    seconds: float = 0.0
    best: list[tuple[float, int]] = field(default_factory=lambda: [])
    validations_without_gain: int = 0
    tracking_id: str | None = None
    data_digest: str = ""
    pretrained_digest: str = ""
    precision: str = ""
    skipped_in_a_row: int = 0
    loss_scale: tuple[float, int] = (loss_scale.FIRST, 0)
    window: dict[str, Any] = field(default_factory=lambda: {})

    def advance(self, update: Update) -> None:
        """Records that `update` was made."""
        self.update += 1
        self.epoch, self.position, self.stage_epoch = update.epoch, update.position, update.stage_epoch

    def note_validation(self, metric: float, *, higher_is_better: bool, keep: int) -> None:
        """Records a validation after the current update; no other is worse than one whose metric is NaN."""
        if math.isnan(metric):
            metric = -math.inf if higher_is_better else math.inf
        ordered = sorted(
            [*self.best, (metric, self.update)], key=lambda entry: entry[0], reverse=higher_is_better
        )
        improved = ordered[0][1] == self.update
        self.best = ordered[:keep]
        self.validations_without_gain = 0 if improved else self.validations_without_gain + 1


class Checkpoints:
    """The checkpoints of one run, `<folder>/update-00000500/` and so on; the last and the best of them are kept."""

    def __init__(self, folder: Path, tokenizers: Tokenizers, *, keep_last: int, keep_best: int) -> None:
        self.folder = folder
        self._tokenizers = tokenizers
        self._keep_last = keep_last
        self._keep_best = keep_best

    def path(self, update: int, *, stopped: bool = False) -> Path:
        return self.folder / f"update-{update:08d}{STOPPED if stopped else ''}"

    def save(
        self,
        model: Transformer,
        optimizer: torch.optim.Optimizer,
        state: TrainState,
        ranks: Ranks,
        *,
        stopped: bool = False,
    ) -> None:
        """Writes a checkpoint atomically, then deletes those that need not be kept.

        All processes call this together; the main one writes, and the others give it their parts.

        One that was written because the run was `stopped` only serves to resume: an uninterrupted run would not
        have it, so it is not averaged, and the next save deletes it.

        Raises:
            RunError: the disk is full or fails; the earlier checkpoints are intact.
        """
        random_states = ranks.gather(random_state(ranks.device))
        whole = whole_model(model, keep=ranks.main)
        moments = optimizer_tensors(optimizer, keep=ranks.main)
        if whole is None:
            return
        target = self.path(state.update, stopped=stopped)
        try:
            with atomic_folder(target) as partial:
                write_model(partial, whole, self._tokenizers)
                save_tensors(moments, partial / "optimizer.safetensors")
                content = {"state": asdict(state), "random": random_states}
                (partial / "state.json").write_text(json.dumps(content), "utf-8")
        except (OSError, SafetensorError) as error:
            raise RunError(self._unwritable(target, whole, error)) from error
        kept = {target, *self.last(state), *self.best(state)}
        for path in self.folder.iterdir():  # also what a kill left half written or half deleted
            if path not in kept and _OWN.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)  # what somebody holds open is left to the next save

    def _unwritable(self, target: Path, model: Transformer, error: Exception) -> str:
        room = size_of(model) / 1e6
        free = shutil.disk_usage(self.folder.parent).free / 1e6  # the folder itself may not exist yet
        earlier = [str(path) for path in checkpoints_in(self.folder) if path != target]
        return (
            f"{target} cannot be written ({error}): a checkpoint needs {room:,.1f} MB, {free:,.1f} MB are free\n"
            f"the last checkpoint is {earlier[-1] if earlier else 'none'}; free some disk space, then the same command "
            "resumes the run"
        )

    def restore_newest(
        self, model: Transformer, optimizer: torch.optim.Optimizer, ranks: Ranks
    ) -> tuple[TrainState, list[str]]:
        """Loads the newest intact checkpoint; without one the state is a fresh one.

        If another number of processes wrote it, each seeds its random numbers anew from seed, update and rank.

        Returns:
            The state, and lines for the user: damaged checkpoints that were skipped, another number of processes.
        """
        rank, count = ranks.rank, ranks.count
        notes: list[str] = []
        there = checkpoints_in(self.folder)
        for path in reversed(there):
            try:
                verify(path)
            except UserError as error:
                notes.append(f"skipped a damaged checkpoint: {error}")
                continue
            load_weights(model, path)
            restore_optimizer(optimizer, load_file(path / "optimizer.safetensors"))
            content = read_json_object(path / "state.json")
            state = TrainState(**content["state"])
            state.best = [(metric, update) for metric, update in state.best]
            states: list[dict[str, Any]] = content["random"]
            if len(states) == count:
                restore_random_state(states[rank], model.device)
            else:
                torch.manual_seed(torch.initial_seed() + state.update * 1_000_003 + rank)
                notes.append(
                    f"{path} was written by {len(states)} processes, and now there are {count}: the batches stay the "
                    "same, the random numbers of dropout do not"
                )
            return state, notes
        if rank:  # dropout of its own; the main process draws as a single process would
            torch.manual_seed(torch.initial_seed() + rank)
        if there:
            notes.append("no checkpoint is intact: the training begins again")
        return TrainState(), notes

    def last(self, state: TrainState) -> list[Path]:
        """The newest scheduled checkpoints, at most `keep_last`, oldest first; later ones than `state` are damaged."""
        reached = self.path(state.update).name
        there = (path for path in checkpoints_in(self.folder) if path.name <= reached)
        scheduled = [path for path in there if not path.name.endswith(STOPPED)]
        return scheduled[-self._keep_last :]

    def best(self, state: TrainState) -> list[Path]:
        """The checkpoints of the best validations, at most `keep_best`, best first."""
        paths = [self.path(update) for _, update in state.best[: self._keep_best]]
        return [path for path in paths if path.is_dir()]
