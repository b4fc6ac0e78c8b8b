"""make hands on what was typed, word for word, and installs only when pyproject.toml is newer."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from endeavour.commands import COMMANDS, LONG_NAMES
from roots import KINDS

ROOT = Path(__file__).parents[1]

# Of all commands, except for those that stand below: none may be a name that the Makefile uses.
KEYS = sorted({field.name for kind in KINDS.values() for field in fields(kind)} - {"text", "model"})

[PHONY] = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
TARGETS = PHONY.split()

STUB = """#!/usr/bin/env python3
import json, sys
print(json.dumps(sys.argv[1:]))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the Makefile, and an `endeavour` that prints its arguments."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "endeavour").write_text(STUB)
    (binaries / "endeavour").chmod(0o755)
    for stamp in ("installed", "developed"):
        (tmp_path / ".venv" / stamp).touch()
    return tmp_path


def ended_make(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", *arguments]
    # What was said to a make that these tests run under is not said to this one.
    alone = {key: value for key, value in os.environ.items() if not key.startswith("M")}
    return subprocess.run(command, cwd=checkout, env=alone, capture_output=True, text=True, check=False)


def make(checkout: Path, *arguments: str) -> str:
    ended = ended_make(checkout, *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("target", [name for name in COMMANDS if name != "evaluate"])
def test_overrides_pass_through(target: str, checkout: Path) -> None:
    typed = [
        "model=tiny,small",
        *(f"{key}=a {key}" for key in KEYS),
        "training.learning_rate=tag(log,interval(1e-4,1e-2))",
        "hydra/sweeper=optuna",
        "text=It's a \"test\" (of $5 & more),\nisn't it?",
        "corpus.splits.train=[a b.en,c.de]",
        "+corpus.splits.news=[n.tsv]",
    ]
    got = json.loads(make(checkout, target, *typed))
    assert LONG_NAMES.get(got[0], got[0]) == LONG_NAMES.get(target, target)
    assert sorted(got[1:]) == sorted(typed)


def test_make_runs_nothing_that_stands_in_a_text(checkout: Path) -> None:
    text = "text=costs $(shell touch ran) $(x)"
    assert json.loads(make(checkout, "translate", text)) == ["translate", text]
    assert not (checkout / "ran").exists()


def test_make_keeps_its_own_variables(checkout: Path) -> None:
    assert json.loads(make(checkout, "train", "PYTHON=python3", "seed=2")) == ["train", "seed=2"]


def test_every_target_installs_when_pyproject_is_newer(checkout: Path) -> None:
    text = (checkout / "Makefile").read_text()
    for target in set(TARGETS) - {"clean", "help"}:
        assert re.search(rf"^{target}: \$\(VENV\)/(installed|developed)\b", text, re.MULTILINE)
    for target, extras in {"train": ["play,"], "test": ["play,", "dev"]}.items():
        plan = make(checkout, target, "--dry-run", "--what-if=pyproject.toml")
        assert re.findall(r"-e '\.\[(play,|dev)", plan) == extras
        assert "pip install" not in make(checkout, target, "--dry-run")


def test_help_lists_every_target(checkout: Path) -> None:
    listed = make(checkout)
    for target in TARGETS:
        assert f"make {target}" in listed


def test_a_python_that_is_too_old_makes_no_environment(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    old = checkout / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")  # as it would of the question for its version
    old.chmod(0o755)
    ended = ended_make(checkout, "train", f"PYTHON={old}")
    assert ended.returncode == 2
    assert "make PYTHON=" in ended.stderr
    assert not (checkout / ".venv").exists()


def test_an_environment_that_could_not_be_made_is_made_the_next_time(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    without_pip = checkout / "python3"  # as on Debian without python3-venv
    without_pip.write_text(
        "#!/bin/sh\n[ $1 = -c ] || { mkdir -p .venv/bin; cp $0 .venv/bin/python; exit 1; }\n"
    )
    without_pip.chmod(0o755)
    ended = ended_make(checkout, "train", f"PYTHON={without_pip}")
    assert ended.returncode == 2
    assert not (checkout / ".venv" / "bin" / "python").exists()
