"""Sweeps that really train: one run after the other, by Hydra's joblib launcher, and by submitit's local executor."""

import csv
import json
import pickle
import signal
from pathlib import Path

import pytest

from commands import endeavour
from endeavour.training.signals import Interrupted

SHORT = ["training.max_updates=2", "training.validate_every=2", "evaluation.splits=[validation]"]


def rows_of(tmp_path: Path) -> list[dict[str, str]]:
    (table,) = (tmp_path / "outputs" / "sweeps").glob("*/results.csv")
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert (table.parent / "results.png").is_file()
    return rows


def test_a_grid_one_after_the_other_in_which_one_point_cannot_be_trained(
    parallel_files: list[str], folders: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [*parallel_files, *folders, *SHORT, "seed=1,2"]
    assert endeavour("sweep", *settings, "training.learning_rate=1e-3,2e-3") == 0
    bleu = [float(row["validation.bleu"]) for row in rows_of(tmp_path)]
    assert len(bleu) == 4
    assert bleu == sorted(bleu, reverse=True)
    capsys.readouterr()
    assert endeavour("sweep", *settings, "training.learning_rate=1e-3,-1") == 2
    said = capsys.readouterr().err
    assert "learning_rate=-1" in said
    assert said.count("is finished") == 2  # and is not trained again
    assert sorted(row["status"] for row in rows_of(tmp_path)) == ["failed"] * 2 + ["finished"] * 2


def test_a_grid_with_joblib(parallel_files: list[str], folders: list[str], tmp_path: Path) -> None:
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    grid = [*parallel_files, *folders, *SHORT, "training.learning_rate=1e-3,2e-3"]
    assert endeavour("sweep", *grid, *launcher) == 0
    rows = rows_of(tmp_path)
    assert sorted(row["training.learning_rate"] for row in rows) == ["0.001", "0.002"]
    assert [row["status"] for row in rows] == ["finished"] * 2
    for row in rows:
        (start,) = json.loads((tmp_path / "outputs" / row["name"] / "run.json").read_text())
        assert start["command"][:2] == ["endeavour", "train"]
        assert f"training.learning_rate={row['training.learning_rate']}" in start["command"]
    shown = [path.read_text() for path in (tmp_path / "outputs" / "sweeps").glob("*/*/output.txt")]
    assert len(shown) == 2
    assert all("run:" in text and "report:" in text for text in shown)


def test_a_search_with_submitit(
    parallel_files: list[str], folders: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = [*parallel_files, *folders, *SHORT, "training.learning_rate=interval(1e-3,2e-3)"]
    search = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=2", "hydra.sweeper.n_jobs=2"]
    assert endeavour("sweep", *settings, *search, "hydra/launcher=submitit_local") == 0
    rows = rows_of(tmp_path)
    assert [row["status"] for row in rows] == ["finished"] * 2
    capsys.readouterr()
    assert endeavour("sweep", *settings, *search) == 0  # elsewhere, and nothing is left to train
    assert rows_of(tmp_path) == rows
    assert "trial" not in capsys.readouterr().err


def test_an_interruption_comes_back_from_another_process() -> None:
    told = pickle.loads(pickle.dumps(Interrupted(signal.SIGTERM, "checkpoints/update-7")))
    assert told.exit_code == 128 + signal.SIGTERM
    assert "update-7" in str(told)
