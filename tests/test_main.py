"""The command line: names to commands, values that stay what they are, errors in one or two lines."""

import errno
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commands import endeavour, places
from configs import run_config
from endeavour.commands import COMMANDS
from endeavour.commands.compare import CompareRoot
from endeavour.config import load_config
from endeavour.overrides import LITERAL_KEYS, quote_literal
from endeavour.training.signals import Interrupted


@settings(max_examples=40)
@given(
    st.one_of(
        st.text(alphabet=st.sampled_from("ab '\"\\${}[](),=:~!#%&ä€\t"), max_size=12),
        st.text(max_size=20).filter(lambda text: not any(0xD800 <= ord(char) < 0xE000 for char in text)),
    ).filter(lambda text: text != "null")
)
@example("${")
def test_text_reaches_the_config_as_it_was_typed(text: str) -> None:
    assert "systems" in LITERAL_KEYS
    assert load_config("compare", CompareRoot, [quote_literal(f"systems={text}")]).systems == text


def test_other_overrides_keep_hydras_grammar() -> None:
    assert quote_literal("evaluation.splits=[test]") == "evaluation.splits=[test]"
    assert quote_literal("text=null") == "text=null"


def test_file_names_need_no_quotes_for_hydra() -> None:
    typed = [
        "corpus=files",
        "corpus.path=~/köpfe",
        "corpus.splits.train=[~/a.en, texte/märchen.de]",
        "corpus.splits.validation=[a&b.tsv,plain.tsv]",
        "name=Übung",
    ]
    config = run_config([quote_literal(override) for override in typed])
    assert config.corpus.path == "~/köpfe"
    assert config.corpus.splits["train"] == ["~/a.en", "texte/märchen.de"]
    assert config.corpus.splits["validation"] == ["a&b.tsv", "plain.tsv"]
    assert config.name == "Übung"


ERRORS = {
    "typo": (["training.learningrate=1"], ["training.learningrate"]),
    "type": (["training.max_updates=many"], ["training.max_updates=many"]),
    "missing value": (["name=???"], ["name"]),
    "group": (["model=huge"], ["model/huge", "tiny"]),
    "a key that no file can have": ([f"+evaluation.files.{'x' * 300}=[a,b]"], ["evaluation.files.xxx"]),
    "choice": (["direction=de-fr"], ["direction=de-fr", "en-de"]),
    "range": (["training.validate_every=0"], ["training.validate_every=0"]),
    "two keys of a section": (["model.width=130"], ["model.width=130", "model.num_heads"]),
    "a key of another schedule": (
        ["training.schedule=inverse_sqrt", "training.final_learning_rate=1e-5"],
        ["training.final_learning_rate", "cosine"],
    ),
    "two sections": (["tokenizer.joint=false"], ["model.tie=all", "tokenizer.joint"]),
    "a section under another name": (
        ["validation_decoding.beam_size=0"],
        ["validation_decoding.beam_size=0"],
    ),
    "files": (["corpus=files"], ["corpus.splits.train"]),
    "override grammar": (["training.max_updates"], ["training.max_updates"]),
    "sweep without a sweep": (["seed=1,2"], ["seed"]),
    "device": (["device=tpu"], ["device=tpu"]),
}


@pytest.mark.parametrize("case", ERRORS)
def test_a_users_error_is_a_line_or_two_and_exit_code_2(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides, mentioned = ERRORS[case]
    assert endeavour("train", *places(tmp_path), *overrides) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert said.startswith("endeavour train: ")
    assert len(said.splitlines()) <= 2, said
    assert all(word in said for word in mentioned), said
    assert not list(tmp_path.iterdir()), "work was begun before the config was checked"


@pytest.mark.parametrize(
    ("command", "then"), [("train", "without training.restart"), ("translate", "from the beginning")]
)
def test_what_the_same_command_does_after_ctrl_c(
    command: str, then: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("endeavour.__main__.run_command", Mock(side_effect=KeyboardInterrupt))
    assert endeavour(command) == 130
    said = capsys.readouterr().err
    assert said.startswith(f"endeavour {command}: stopped")
    assert then in said


def test_a_signal_and_a_reader_that_left_have_codes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("endeavour.__main__.run_command", Mock(side_effect=Interrupted(15, "there")))
    assert endeavour("train") == 128 + 15
    monkeypatch.setattr("endeavour.__main__.run_command", Mock(side_effect=BrokenPipeError))
    monkeypatch.setattr("os.dup2", Mock())
    assert endeavour("translate") == 141


def test_a_full_disk_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("endeavour.__main__.run_command", Mock(side_effect=full))
    assert endeavour("translate") == 1
    said = capsys.readouterr().err
    assert f"cannot be written ({full.strerror})" in said
    assert said.count("\n") == 1


SHORT = "main.run_command = lambda *_: print('text')"  # which stays in the buffer until the end
LONG = "main.run_command = lambda *_: (print('text'), sys.stdout.flush())"
OUTPUTS = [("translate", SHORT), ("translate", LONG), ("--help", ""), ("compare --help", ""), ("", "")]


def shown_to(stdout: int, typed: str, patch: str) -> subprocess.CompletedProcess[str]:
    """Runs a command as a process whose output goes to a file descriptor."""
    code = f"import sys, endeavour.__main__ as main; {patch or 'pass'}; sys.argv[1:] = {typed.split()}; main.main()"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    words = [sys.executable, "-c", code]
    return subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, text=True, env=buffered, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(("typed", "patch"), OUTPUTS)
def test_standard_output_that_is_full_is_said_once(typed: str, patch: str) -> None:
    with Path("/dev/full").open("w") as full:
        ended = shown_to(full.fileno(), typed, patch)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "cannot be written" in ended.stderr


@pytest.mark.parametrize(("typed", "patch"), OUTPUTS)
def test_a_reader_of_standard_output_that_left_is_no_error_to_speak_of(typed: str, patch: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = shown_to(writer, typed, patch)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_the_version_is_that_of_this_program(capsys: pytest.CaptureFixture[str]) -> None:
    for typed in (["--version"], ["train", "--version"]):
        assert endeavour(*typed) == 0
        assert capsys.readouterr().out == f"endeavour {version('endeavour')}\n"


def test_ctrl_c_that_a_library_hides_is_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Hydra does, which closes a file that it was not given time to open."""

    def hiding(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise UnboundLocalError("a local variable")

    monkeypatch.setattr("endeavour.config.compose", hiding)
    assert endeavour("translate") == 130
    assert "stopped" in capsys.readouterr().err


def test_several_processes_train_and_do_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = Mock()
    monkeypatch.setattr("endeavour.__main__.run_command", started)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "test")
    assert [command for command in COMMANDS if endeavour(command) == 0] == ["train"]
    assert started.call_count == 1
    assert "torchrun" in capsys.readouterr().err


def test_what_is_no_command_is_refused_and_help_lists_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert endeavour("fly") == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert all(command in said for command in COMMANDS)
    assert len(said.splitlines()) == 1
    assert endeavour() == 2
    capsys.readouterr()
    assert endeavour("--help") == 0
    out, _ = capsys.readouterr()
    assert set(re.findall(r"^  (\w+)", out, re.MULTILINE)) == COMMANDS.keys() - {"eval"}


def test_the_module_is_a_program_and_shows_where_an_error_was_raised_if_asked_to() -> None:
    traced = subprocess.run(
        [sys.executable, "-m", "endeavour", "train", "training.learningrate=1"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HYDRA_FULL_ERROR": "1"},
        check=False,
    )
    assert traced.returncode == 2
    assert "Traceback" in traced.stderr


def test_hydras_own_flags_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert endeavour("train", "--help") == 0
    assert "corpus: " in capsys.readouterr().out
    assert endeavour("train", "--cfg", "job", "model=small", "seed=7") == 0
    said = capsys.readouterr().out
    assert "name: ${corpus.name}-${model.name}-${seed}" in said
    assert "seed: 7" in said


def test_options_stand_anywhere_among_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert endeavour("train", "seed=7", "--cfg", "job", "~experiment", "model=small") == 0
    said = capsys.readouterr().out
    assert "seed: 7" in said
    assert "name: small" in said


@pytest.mark.parametrize(
    "typed", [["--max_updates", "60"], ["--text", "A dog"], ["--text=A dog"], ["--cfg"], ["A dog"]]
)
@pytest.mark.parametrize("command", ["translate", "sweep"])
def test_settings_with_dashes_are_answered_with_how_they_are_written(
    command: str, typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour(command, "device=cpu", *typed) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert said.count("\n") == 1
    assert f"{typed[0]}" in said
    assert "settings are key=value" in said


def test_a_value_may_ask_hydra_for_a_chosen_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the recorded commands of a sweep's trials do, whose names tell them apart."""
    train_run = Mock()
    monkeypatch.setattr("endeavour.commands.train.train_run", train_run)
    assert endeavour("train", "model=small", "name=${seed}-model_${hydra:runtime.choices.model}") == 0
    config, _ = train_run.call_args.args
    assert config.name == "1-model_small"


def test_a_process_that_is_still_joined_with_others_ends_without_waiting_for_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(code: int) -> None:
        raise SystemExit(100 + code)

    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("os._exit", ended)
    assert endeavour("train", "no.such=key") == 102
    assert "no.such" in capsys.readouterr().err
