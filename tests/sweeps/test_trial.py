"""One trial: the rule that ends it early, and what stands in its run's folder then."""

import json
from pathlib import Path

import pytest

from configs import run_config
from endeavour.pipeline.training import train_run
from endeavour.runs.run import Run
from endeavour.sweeps.trial import NOTE, falls_behind
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.loop import Pruned


def test_the_median_rule(tmp_path: Path) -> None:
    def noted(number: int, *bleu: float) -> Path:
        run, folder = tmp_path / f"run-{number}", tmp_path / "sweep" / str(number)
        run.mkdir()
        folder.mkdir(parents=True)
        lines = [
            {"kind": "validation", "update": (at + 1) * 10, "bleu": value} for at, value in enumerate(bleu)
        ]
        (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (folder / NOTE).write_text(json.dumps({"run": str(run), "overrides": {}}))
        return folder

    for number, bleu in enumerate([(1, 5, 9), (2, 6, 5), (3, 4, 30), (40,)]):
        noted(number, *bleu)
    # By update 20 the others had reached 5, 6 and 4; the fourth has not come so far.
    assert falls_behind(noted(10, 4.9, 4.5), "validation.bleu", 3)
    assert not falls_behind(noted(11, 5.5, 0.0), "validation.bleu", 3)
    assert not falls_behind(noted(12, 0.0, 0.0), "validation.bleu", 9)

    # What a trial began with is not its own.
    worse = noted(13, 4.9, 4.5)
    log = Path(json.loads((worse / NOTE).read_text())["run"]) / "log.jsonl"
    log.write_text(json.dumps({"kind": "validation", "update": 0, "bleu": 99.0}) + "\n" + log.read_text())
    assert falls_behind(worse, "validation.bleu", 3)

    # Those that had not validated by the same update say nothing.
    late = [noted(number, *(40.0,) * 3) for number in (20, 21, 22)]
    for folder in late:
        log = Path(json.loads((folder / NOTE).read_text())["run"]) / "log.jsonl"
        log.write_text(log.read_text().replace("0,", "000,"))
    assert not falls_behind(noted(23, 0.0), "validation.bleu", 9)


def test_a_failed_trial_is_no_measure_for_others(tmp_path: Path) -> None:
    """Its folder may hold a run of another config."""
    for number, bleu in enumerate((1, 5, 6)):
        run, folder = tmp_path / f"run-{number}", tmp_path / "sweep" / str(number)
        run.mkdir()
        folder.mkdir(parents=True)
        (run / "log.jsonl").write_text(json.dumps({"kind": "validation", "update": 10, "bleu": bleu}))
        (folder / NOTE).write_text(json.dumps({"run": str(run), "overrides": {}}))
    assert falls_behind(tmp_path / "sweep" / "0", "validation.bleu", 2)
    (folder / NOTE).write_text(json.dumps({"run": str(run), "overrides": {}, "error": "refused"}))
    assert not falls_behind(tmp_path / "sweep" / "0", "validation.bleu", 2)


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
