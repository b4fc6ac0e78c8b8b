"""Sweeps whose trials train in processes of their own: Hydra's joblib launcher, and submitit's local executor."""

import csv
import json
import pickle
import signal
import sys
from pathlib import Path

import pytest
from endeavour.stages.sweep import sweep

from endeavour.training.signals import Interrupted

SHORT = ["training.max_updates=2", "training.validate_every=2", "evaluation.splits=[validation]"]


def rows_of(tmp_path: Path) -> list[dict[str, str]]:
    (table,) = (tmp_path / "outputs" / "sweeps").glob("*/results.csv")
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert (table.parent / "results.png").is_file()
    return rows


def test_a_grid_with_joblib(
    parallel_files: list[str], folders: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["endeavour"])
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    sweep([*parallel_files, *folders, *SHORT, *launcher, "training.learning_rate=1e-3,2e-3"])
    rows = rows_of(tmp_path)
    assert sorted(row["training.learning_rate"] for row in rows) == ["0.001", "0.002"]
    assert [row["status"] for row in rows] == ["finished"] * 2
    for row in rows:
        (start,) = json.loads((tmp_path / "outputs" / row["name"] / "run.json").read_text())
        assert start["command"][:2] == ["endeavour", "train"]
        assert f"training.learning_rate={row['training.learning_rate']}" in start["command"]
    shown = [path.read_text() for path in (tmp_path / "outputs" / "sweeps").glob("*/*/output.txt")]
    assert len(shown) == 2
    assert all("run:" in text for text in shown)


def test_a_search_with_submitit(
    parallel_files: list[str],
    folders: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(sys, "argv", ["endeavour"])
    settings = [*parallel_files, *folders, *SHORT, "training.learning_rate=interval(1e-3,2e-3)"]
    search = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=2", "hydra.sweeper.n_jobs=2"]
    sweep([*settings, *search, "hydra/launcher=submitit_local"])
    rows = rows_of(tmp_path)
    assert [row["status"] for row in rows] == ["finished"] * 2
    capsys.readouterr()
    sweep([*settings, *search])  # elsewhere, and nothing is left to train
    assert rows_of(tmp_path) == rows
    assert "trial" not in capsys.readouterr().err


def test_an_interruption_comes_back_from_another_process() -> None:
    told = pickle.loads(pickle.dumps(Interrupted(signal.SIGTERM, "checkpoints/update-7")))
    assert told.exit_code == 128 + signal.SIGTERM
    assert "update-7" in str(told)
