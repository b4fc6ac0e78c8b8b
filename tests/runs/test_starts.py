"""What run.json says of each start of a run."""

import json
import subprocess
from pathlib import Path

import pytest
import torch

from endeavour.runs import provenance
from endeavour.runs.run import Run
from run_folders import begun_run


def test_each_start_adds_what_it_takes_to_repeat_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, config, _ = begun_run(tmp_path)
    run = Run.of(config)
    for word, reason in (("one", None), ("two", "no compiler")):
        monkeypatch.setattr(provenance, "why_not", lambda reason=reason: reason)
        run.begin(config, torch.device("cpu"), ["endeavour", "train", word])
    starts = json.loads((run.folder / "run.json").read_text())
    assert [start["command"][-1] for start in starts] == ["one", "two"]
    assert torch.__version__.startswith(starts[0]["packages"]["torch"])  # and perhaps +cu130
    assert starts[0]["device"]["type"] == "cpu"
    assert [start["device"]["kernels"] for start in starts] == [True, False]
    assert run.config == config


def test_the_commit_is_that_of_this_code_not_of_what_it_is_installed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = [
        "git",
        "-C",
        str(tmp_path),
        "-c",
        "user.name=a",
        "-c",
        "user.email=b",
        "-c",
        "commit.gpgsign=false",
    ]
    installed = tmp_path / ".venv" / "provenance.py"
    installed.parent.mkdir()
    installed.touch()
    monkeypatch.setattr(provenance, "__file__", str(installed))
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "something else"], check=True)
    assert provenance._git_commit() is None
    subprocess.run([*git, "add", str(installed)], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "its own code"], check=True)
    assert len(provenance._git_commit() or "") == 40
    installed.write_text("# changed", "utf-8")
    assert (provenance._git_commit() or "").endswith("+changes")
