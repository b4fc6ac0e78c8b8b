"""The command line: names to stages, values that stay what they are, errors in one or two lines."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commands import endeavour
from endeavour.__main__ import main, quote_literal
from endeavour.config import load_config
from endeavour.errors import UserError
from endeavour.training.signals import Interrupted


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "endeavour", *arguments],
        capture_output=True,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "HYDRA_FULL_ERROR"} | environment,
        check=False,
    )


@settings(max_examples=40)
@given(
    st.one_of(
        st.text(alphabet=st.sampled_from("ab '\"\\${}[](),=:~!#%&ä€\t"), max_size=12),
        st.text(max_size=20).filter(lambda text: not any(0xD800 <= ord(char) < 0xE000 for char in text)),
    ).filter(lambda text: text != "null")
)
@example("${")
def test_text_reaches_the_config_as_it_was_typed(text: str) -> None:
    assert load_config([quote_literal(f"text={text}")]).text == text


def test_other_overrides_keep_hydras_grammar() -> None:
    assert quote_literal("evaluation.splits=[test]") == "evaluation.splits=[test]"
    assert quote_literal("text=null") == "text=null"


ERRORS = {
    "typo": (["training.learningrate=1"], ["learningrate"]),
    "type": (["training.max_updates=many"], ["training.max_updates", "many"]),
    "missing value": (["name=???"], ["name"]),
    "group": (["model=huge"], ["model/huge", "tiny"]),
    "choice": (["direction=de-fr"], ["direction=de-fr", "en-de"]),
    "training choice": (["training.metric=rouge"], ["training.metric=rouge", "bleu"]),
    "range": (["training.validate_every=0"], ["training.validate_every=0"]),
    "model": (["model.width=130"], ["model.width=130", "model.num_heads"]),
    "tying": (["tokenizer.joint=false"], ["model.tie=all", "tokenizer.joint"]),
    "seed": (["seed=-1"], ["seed=-1"]),
    "number": (["training.adam_beta1=2"], ["training.adam_beta1=2"]),
    "nothing": (["training.max_updates=0"], ["training.max_updates=0"]),
    "not a number": (["training.learning_rate=nan"], ["training.learning_rate"]),
    "algorithm": (["tokenizer.algorithm=wordpiece"], ["tokenizer.algorithm=wordpiece", "unigram"]),
    "cleaning": (["cleaning.min_tokens=500"], ["cleaning.min_tokens"]),
    "files": (["corpus=files"], ["corpus.splits.train"]),
    "decoding": (["decoding.beam_size=0"], ["decoding.beam_size=0"]),
    "decoding's name": (["decoding.name=../out"], ["decoding.name='../out'"]),
    "decoding's penalty": (["decoding.length_penalty=1000"], ["decoding.length_penalty=1000", "at most 10"]),
    "no end": (["training.max_updates=null"], ["training.max_updates"]),
    "folder": (["name=../elsewhere"], ["name", "elsewhere"]),
    "override grammar": (["training.max_updates"], ["training.max_updates"]),
    "sweep without a sweep": (["seed=1,2"], ["seed"]),
    "device": (["device=tpu"], ["device=tpu"]),
}


@pytest.mark.parametrize("case", ERRORS)
def test_a_users_error_is_a_line_or_two_and_exit_code_2(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides, mentioned = ERRORS[case]
    folders = [f"data_folder={tmp_path / 'data'}", f"output_folder={tmp_path / 'outputs'}"]
    assert endeavour("train", *folders, *overrides) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert len(said.splitlines()) <= 2, said
    assert all(word in said for word in mentioned), said
    assert not list(tmp_path.iterdir()), "work was begun before the config was checked"


def test_a_traceback_comes_when_it_is_asked_for() -> None:
    result = run("train", "training.learningrate=1", HYDRA_FULL_ERROR="1")
    assert result.returncode != 0
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    ("stage", "then"), [("train", "goes on from what is on disk"), ("translate", "begins anew")]
)
def test_what_the_same_command_does_after_ctrl_c(
    stage: str, then: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("endeavour.__main__.run_stage", interrupted)
    monkeypatch.setattr(sys, "argv", ["endeavour", stage])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err == f"endeavour {stage}: stopped; the same command {then}\n"


def test_what_would_throw_the_run_away_is_not_called_the_way_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for stop in (KeyboardInterrupt(), Interrupted(2, "there"), UserError("the same command tries again")):
        monkeypatch.setattr("endeavour.__main__.run_stage", Mock(side_effect=stop))
        for typed, told in (([], False), (["training.restart=true"], True)):
            monkeypatch.setattr(sys, "argv", ["endeavour", "train", *typed])
            with pytest.raises(SystemExit):
                main()
            message = capsys.readouterr().err
            assert "the same command" in message
            assert ("the same command without training.restart" in message) == told


@pytest.mark.parametrize(
    ("stage", "key", "reader"),
    [
        ("train", "text=Hello.", "translate"),
        ("eval", "split=validation", "compare"),
        ("eval", "+format=x", "export"),
    ],
)
def test_a_key_that_a_stage_does_not_read_is_refused(
    stage: str, key: str, reader: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("endeavour.__main__.run_stage", lambda *_: None)
    assert endeavour(stage, key) == 2
    message = capsys.readouterr().err
    assert f"{key.lstrip('+').partition('=')[0]}=… is for `endeavour {reader}`" in message
    assert ("evaluation.splits" in message) == (key == "split=validation")
    assert endeavour(reader, key) == 0


def test_unknown_stage_and_no_stage() -> None:
    assert run("fly").returncode == 2
    assert "prepare" in run("fly").stderr
    assert run().returncode == 2
    assert run("--help").returncode == 0


def test_hydras_own_flags_work() -> None:
    help_text = run("train", "--help")
    assert help_text.returncode == 0
    assert "corpus: " in help_text.stdout
    job = run("train", "--cfg", "job", "model=small", "seed=7")
    assert job.returncode == 0
    assert "name: ${corpus.name}-${model.name}-${seed}" in job.stdout
    assert "seed: 7" in job.stdout


def test_a_process_that_is_still_joined_with_others_ends_without_waiting_for_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(code: int) -> None:
        raise SystemExit(100 + code)

    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("os._exit", ended)
    assert endeavour("train", "no.such=key") == 102
    assert "no.such" in capsys.readouterr().err
