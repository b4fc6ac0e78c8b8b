"""The rehearsal before a run: it finds what would fail later, and leaves no trace in the run."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from endeavour.stages import preflight as module
from endeavour.stages.prepare import prepare
from endeavour.stages.train import train
from safetensors.torch import load_file

from endeavour.config import load_config
from endeavour.data.batching import Batch
from endeavour.data.dataset import ParallelDataset
from endeavour.errors import UserError
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.step import accumulate_gradients


class Disk(NamedTuple):
    total: int
    used: int
    free: int


def test_a_run_is_the_same_with_and_without(
    parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    for name, preflight in (("with", "true"), ("without", "false")):
        overrides = [f"name={name}", f"training.preflight={preflight}", "decoding=greedy"]
        train(load_config([*parallel_files, *folders, *overrides]))
    ours, theirs = (
        load_file(tmp_path / "outputs" / name / "model" / "weights.safetensors")
        for name in ("with", "without")
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    names = [{path.name for path in (tmp_path / "outputs" / name).iterdir()} for name in ("with", "without")]
    assert names[0] == names[1]  # no rehearsal folder is left


def test_too_little_room_is_said_before_the_first_update(
    parallel_files: list[str], folders: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(10**9, 10**9 - 1000, 1000))
    with pytest.raises(UserError, match=r"3 checkpoints .* need [0-9]+ MB of room, and 0 MB are free"):
        train(load_config([*parallel_files, *folders, "training.preflight=true"]))
    assert checkpoints_in(next((tmp_path / "outputs").glob("files-*")) / "checkpoints") == []


def test_a_validation_sentence_without_positions_is_said_before_the_first_update(
    parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    long = " ".join(["dog sees"] * 30)
    (tmp_path / "long.tsv").write_text(f"en\tde\n{long}\tder Hund\n", "utf-8")
    kept = [override for override in parallel_files if "validation" not in override]
    added = [f"corpus.splits.validation=[{tmp_path / 'long.tsv'}]", "model.positions=learned"]
    with pytest.raises(
        UserError, match=r"the validation split has a sentence of \d+ tokens: model.max_length=20"
    ):
        train(load_config([*kept, *folders, *added, "model.max_length=20", "cleaning.max_tokens=20"]))
    assert not list((tmp_path / "outputs").glob("*/log.jsonl"))


def test_the_longest_pair_and_the_largest_batch_are_rehearsed(
    parallel_files: list[str], folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsed: list[Batch] = []

    def watched(loss_model: torch.nn.Module, batches: list[Batch], **keywords: object) -> object:
        rehearsed.extend(batches)
        return accumulate_gradients(loss_model, batches, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "accumulate_gradients", watched)
    config = load_config([*parallel_files, *folders, "training.preflight=true", "decoding=greedy"])
    train(config)
    budget = config.training.tokens_per_batch
    longest = max(max(batch.source.shape[1], batch.target_out.shape[1]) for batch in rehearsed)
    dataset = ParallelDataset.open(prepare(config).folder, "train")
    assert longest == max(dataset.source.lengths.max(), dataset.target.lengths.max())
    cells = max(
        len(batch.source) * max(batch.source.shape[1], batch.target_out.shape[1]) for batch in rehearsed
    )
    assert 0.9 * budget < cells <= budget
