"""One trial: the rule that ends it early, and what stands in its run's folder then."""

import json
import math
from pathlib import Path

import pytest

from configs import run_config
from endeavour.pipeline.training import train_run
from endeavour.runs.run import Run
from endeavour.sweeps.trial import NOTE, falls_behind
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.loop import Pruned


def noted(root: Path, number: int, *bleu: float, first: int = 1) -> Path:
    """A trial's folder, whose run was validated every ten updates, from `first` times ten on."""
    run, folder = root / f"run-{number}", root / "sweep" / str(number)
    run.mkdir()
    folder.mkdir(parents=True)
    lines = [
        {"kind": "validation", "update": at * 10, "bleu": value} for at, value in enumerate(bleu, start=first)
    ]
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / NOTE).write_text(json.dumps({"run": str(run), "overrides": {}}))
    return folder


def test_the_median_rule(tmp_path: Path) -> None:
    for number, bleu in enumerate([(1, 5, 9), (2, 6, 5), (3, 4, 30), (40,)]):
        noted(tmp_path, number, *bleu)
    # By update 20 the others had reached 5, 6 and 4; the fourth has not come so far.
    assert falls_behind(noted(tmp_path, 10, 4.9, 4.5), "validation.bleu", 3)
    assert not falls_behind(noted(tmp_path, 11, 5.5, 0.0), "validation.bleu", 3)
    assert not falls_behind(noted(tmp_path, 12, 0.0, 0.0), "validation.bleu", 9)
    # What a trial began with is not its own.
    assert falls_behind(noted(tmp_path, 13, 99.0, 4.9, 4.5, first=0), "validation.bleu", 3)
    # Those that had not validated by the same update say nothing.
    for number in (20, 21, 22):
        noted(tmp_path, number, 40.0, first=100)
    assert not falls_behind(noted(tmp_path, 23, 0.0), "validation.bleu", 9)


def test_what_is_not_a_number_is_behind_and_no_measure(tmp_path: Path) -> None:
    for number, bleu in enumerate([math.nan, 5, 6, 7]):
        noted(tmp_path, number, bleu, bleu)
    assert falls_behind(noted(tmp_path, 10, math.nan), "validation.bleu", 3)
    assert falls_behind(noted(tmp_path, 11, math.nan, 4.9), "validation.bleu", 3)
    assert not falls_behind(noted(tmp_path, 12, 5.5), "validation.bleu", 3)


def test_a_failed_trial_is_no_measure_for_others(tmp_path: Path) -> None:
    """Its folder may hold a run of another config."""
    trials = [noted(tmp_path, number, bleu) for number, bleu in enumerate((1, 5, 6))]
    assert falls_behind(trials[0], "validation.bleu", 2)
    note = json.loads((trials[2] / NOTE).read_text())
    (trials[2] / NOTE).write_text(json.dumps(note | {"error": "refused"}))
    assert not falls_behind(trials[0], "validation.bleu", 2)


def test_a_run_that_was_pruned_is_saved_and_can_continue(
    parallel_files: list[str], folders: list[str]
) -> None:
    config = run_config([*parallel_files, *folders, "evaluation.splits=[validation]"])
    run = Run.of(config)
    with pytest.raises(Pruned):
        train_run(config, [], prune=lambda: True)
    assert [path.name for path in checkpoints_in(run.checkpoint_folder)] == ["update-00000003"]
    assert not run.summary
    assert train_run(config, [], prune=lambda: False)["updates"] == 6
