"""The rehearsal before a run: it finds what would fail later, and leaves no trace in the run."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch

from commands import endeavour
from configs import run_config
from endeavour.data.batching import Batch
from endeavour.data.dataset import ParallelDataset, flat, save_rows
from endeavour.pipeline import preflight
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.distributed import Ranks
from endeavour.training.step import accumulate_gradients


class Disk(NamedTuple):
    total: int
    used: int
    free: int


def test_a_run_is_the_same_with_and_without_and_the_largest_batches_are_rehearsed(
    parallel_files: list[str], folders: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsed: list[Batch] = []

    def watched(loss_model: torch.nn.Module, batches: list[Batch], **keywords: object) -> object:
        rehearsed.extend(batches)
        return accumulate_gradients(loss_model, batches, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(preflight, "accumulate_gradients", watched)
    settings = [*parallel_files, *folders, "training.precision=fp32", "decoding=greedy"]
    runs = [tmp_path / "outputs" / name for name in ("with", "without")]
    for run, wanted in zip(runs, ("true", "false"), strict=True):
        assert endeavour("train", *settings, f"name={run.name}", f"training.preflight={wanted}") == 0
    ours, theirs = ((run / "model" / "weights.safetensors").read_bytes() for run in runs)
    assert ours == theirs
    ours, theirs = ({path.name for path in run.iterdir()} for run in runs)
    assert ours == theirs  # no rehearsal folder is left

    budget = 512  # training=smoke
    [data] = (tmp_path / "data" / "prepared").glob("files-*")
    dataset = ParallelDataset.open(data, "train")
    longest = [max(batch.source.shape[1], batch.target_out.shape[1]) for batch in rehearsed]
    assert max(longest) == max(dataset.source.lengths.max(), dataset.target.lengths.max())
    cells = [len(batch.source) * length for batch, length in zip(rehearsed, longest, strict=True)]
    assert 0.9 * budget < max(cells) <= budget


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_of_several_processes_the_share_with_the_longest_pair_is_rehearsed(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = range(2, 31)  # one batch
    for side in ("source", "target"):
        rows = [flat([[5] * (length - 1) for length in lengths], vocabulary_size=300)]
        save_rows(tmp_path / f"train.{side}", rows)
    rehearsed: list[Batch] = []
    monkeypatch.setattr(preflight, "accumulate_gradients", lambda _, batches, **__: rehearsed.extend(batches))
    data = SimpleNamespace(folder=tmp_path)
    ranks = Ranks(0, count, torch.device("cpu"))
    preflight._longest_batch(run_config(), None, data, ranks, torch.float32)  # type: ignore[arg-type]
    assert max(batch.source.shape[1] for batch in rehearsed) == max(lengths)


def test_too_little_room_is_said_before_the_first_update(
    parallel_files: list[str],
    folders: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(10**9, 10**9 - 1000, 1000))
    assert endeavour("train", *parallel_files, *folders, "name=run", "training.preflight=true") == 2
    assert "training.keep_last" in capsys.readouterr().err
    assert checkpoints_in(tmp_path / "outputs" / "run" / "checkpoints") == []


def test_a_restart_that_is_refused_before_the_first_update_has_thrown_nothing_away(
    parallel_files: list[str],
    folders: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["train", *parallel_files, *folders, "name=run"]
    assert endeavour(*command) == 0
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: Disk(10**9, 10**9 - 1000, 1000))
        restart = ["training.restart=true", "training.preflight=true", "training.keep_last=9"]
        assert endeavour(*command, *restart) == 2
    assert "training.keep_last" in capsys.readouterr().err
    assert endeavour(*command) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "outputs").iterdir() if path.suffix != ".lock"] == ["run"]


def test_a_validation_sentence_without_positions_is_said_before_the_first_update(
    parallel_files: list[str], folders: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = " ".join(["dog sees"] * 30)
    (tmp_path / "long.tsv").write_text(f"en\tde\n{long}\tder Hund\n", "utf-8")
    kept = [override for override in parallel_files if "validation" not in override]
    added = [f"corpus.splits.validation=[{tmp_path / 'long.tsv'}]", "model.positions=learned"]
    added += ["model.max_length=20", "cleaning.max_tokens=20"]
    assert endeavour("train", *kept, *folders, *added) == 2
    assert "model.max_length=20" in capsys.readouterr().err
    assert not list((tmp_path / "outputs").glob("*/log.jsonl"))
