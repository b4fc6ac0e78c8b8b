"""What a shell completes: commands, keys and options of the command's root, names of runs."""

import shutil
import subprocess
import sys
from argparse import Action, ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from commands import endeavour
from endeavour.commands import COMMANDS
from endeavour.completion import SCRIPTS, complete


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("endeavour tra", ["train ", "translate "]),
        ("endeavour train model=t", ["model=tiny"]),
        ("endeavour train model=tiny seed=2 training.max_u", ["training.max_updates="]),
        ("endeavour evaluate decoding=as", ["decoding=as_trained"]),
        ("endeavour eval output_fol", ["output_folder="]),
        ("endeavour compare randomization", ["randomization_trials="]),
        ("endeavour compare training.max_u", []),  # a key of another root
        ("endeavour fly a", []),
        ('endeavour translate text="a b" ru', ["run="]),
        ('endeavour translate text="a ru', []),
        ('endeavour translate text="a ru"', []),
        ("endeavour train name=Übung see", ["seed="]),
        ("endeavour train model=nosuch see", ["seed="]),
        ("endeavour train see see", ["seed="]),
        ("endeavour train --h", []),
        ("endeavour train training.[", []),
        ("endeavour sweep model=tiny,small training.max_u", ["training.max_updates="]),
        ("endeavour sweep hydra/sweeper=optuna hydra.sweeper.n_t", ["hydra.sweeper.n_trials="]),
        ("endeavour translate output_folder=~nosuch run=", []),
    ],
)
def test_the_last_word_becomes_what_the_command_knows(line: str, expected: list[str]) -> None:
    assert complete(line, COMMANDS) == expected


def test_hydras_options_are_taken_where_the_help_of_each_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python 3.14 does."""

    def check(_: ArgumentParser, action: Action) -> None:
        if action.help is not None and not isinstance(action.help, str):
            raise ValueError("badly formed help string")

    add = ArgumentParser.add_argument

    def add_checked(parser: ArgumentParser, *names: str, **options: Any) -> Action:
        action = add(parser, *names, **options)
        parser._check_help(action)  # type: ignore[attr-defined]
        return action

    monkeypatch.setattr(ArgumentParser.__base__, "_check_help", check, raising=False)
    monkeypatch.setattr(ArgumentParser, "add_argument", add_checked)
    assert complete("endeavour train model=t", COMMANDS) == ["model=tiny"]
    assert ArgumentParser._check_help is check  # type: ignore[attr-defined]


def test_after_the_program_come_all_commands_and_after_a_command_all_keys() -> None:
    assert complete("endeavour ", COMMANDS) == [f"{command} " for command in COMMANDS]
    assert {"run=", "text="} <= set(complete("endeavour translate ", COMMANDS))


def test_runs_are_completed_by_name_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "outputs/night/one",
        "outputs/nine",
        "outputs/other",
        "outputs/needs quotes",
        "outputs/.nice.discarded",
        "elsewhere/new",
    ):
        (tmp_path / name / "model").mkdir(parents=True)
        (tmp_path / name / "model" / "model.json").touch()
    assert complete("endeavour evaluate run=ni", COMMANDS) == ["run=night/one", "run=nine"]
    assert complete("endeavour compare runs=o", COMMANDS) == ["runs=other"]
    assert complete("endeavour train pretrained=", COMMANDS)[-1] == "pretrained=other"
    assert complete("endeavour translate decoding.backward=ot", COMMANDS) == ["decoding.backward=other"]
    assert complete("endeavour translate output_folder=elsewhere run=n", COMMANDS) == ["run=new"]
    (tmp_path / "elsewhere").rename("o (1)")
    assert complete("endeavour translate \"output_folder='o (1)'\" run=n", COMMANDS) == ["run=new"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_lines(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert endeavour("--install-completion", shell) == 0
    assert capsys.readouterr().out.strip() == SCRIPTS[shell].strip()
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} to check them")
    subprocess.run([shell, "-n"], input=SCRIPTS[shell], text=True, check=True)


def test_without_a_shell_it_says_how_to_install_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert endeavour("--install-completion") == 0
    said = capsys.readouterr().out
    assert all(f"--install-completion {shell}" in said for shell in SCRIPTS)


def test_bash_asks_for_the_line_up_to_the_cursor() -> None:
    asked = f"""
        endeavour() {{ {sys.executable} -m endeavour "$@"; }}
        {SCRIPTS["bash"]}
        COMP_LINE='endeavour train model=ti seed=2'; COMP_POINT=24; _endeavour; printf '%s|' "${{COMPREPLY[@]}}"
        COMP_LINE='endeavour tra'; COMP_POINT=13; _endeavour; printf '%s|' "${{COMPREPLY[@]}}"
    """
    result = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert result.stdout == "model=tiny|train |translate |"
