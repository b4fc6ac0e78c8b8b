"""What a user can do wrong with files and folders.

Every refusal is exit code 2, one message of a line or two after which nothing follows, and nothing on standard output.
What each part refuses, in more cases, is tested beside it.
"""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from commands import endeavour, places, write_lines, write_splits
from configs import QUICK, TINY, run_config
from endeavour.__main__ import unexpected
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.storage import file_digest

GOOD = {"train": 30, "validation": 3, "test": 2}
SMALL = [*QUICK, *TINY, "tokenizer=bpe2k", "tokenizer.vocabulary_size=300", "training.max_updates=2"]
SMALL += ["training.validate_every=1", "decoding.max_length_ratio=0.5", "decoding.max_length_offset=5"]


def settings(folder: Path) -> list[str]:
    """Writes three good splits; the settings of a `prepare` or `train` on them."""
    pairs = {
        split: [(f"{split} dog number {i}", f"{split} Hund Nummer {i}") for i in range(count)]
        for split, count in GOOD.items()
    }
    return [*write_splits(folder, pairs), *SMALL, *places(folder)]


def refused(capsys: pytest.CaptureFixture[str], pattern: str, *arguments: str) -> None:
    capsys.readouterr()
    code = endeavour(*arguments)
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    _, _, said = captured.err.rpartition(f"endeavour {arguments[0]}: ")
    assert re.search(pattern, said), captured.err
    assert said.count("\n") <= 2, "something follows the message"


CORPUS: dict[str, tuple[dict[str, bytes], list[str], str]] = {
    "one side empty": ({"a.en": b"1\n", "a.de": b""}, [], r"a\.en:1: .*a\.de"),
    "lines of 100,000 characters alone": (
        {"a.en": b"x" * 100_000 + b"\n", "a.de": b"y" * 100_000 + b"\n"},
        ["tokenizer.vocabulary_size=262"],
        "no text for the tokenizer",
    ),
    "a data folder that is a file": ({"x": b""}, ["data_folder={folder}/x"], r"/x: .*data_folder="),
}


@pytest.mark.parametrize("case", CORPUS)
def test_a_corpus_that_is_wrong(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, changes, pattern = CORPUS[case]
    arguments = settings(tmp_path)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    named = [f"corpus.path={tmp_path}"]
    if len(files) == 2:
        named.append(f"corpus.splits.train=[{','.join(files)}]")
    changes = [change.format(folder=tmp_path) for change in changes]
    refused(capsys, pattern, "prepare", *arguments, *named, *changes)


def test_a_file_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = settings(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "train.de")  # root may read all
    refused(capsys, r"train\.de: .*permissions.*chmod", "prepare", *arguments)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file whose reading fails")
@pytest.mark.parametrize(
    ("name", "pattern"),
    [("/proc/self/mem", r"/proc/self/mem: cannot be read"), ("/dev/null", r"/dev/null: not a regular file")],
)
def test_a_file_whose_reading_fails_is_named(
    name: str, pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = f"corpus.splits.train=[{name},{name}]"
    refused(capsys, pattern, "prepare", *settings(tmp_path), train)


def test_what_cleaning_leaves_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = settings(tmp_path)
    for language in ("en", "de"):
        lines = (tmp_path / f"train.{language}").read_text("utf-8").splitlines()
        write_lines(tmp_path / f"train.{language}", [*lines, lines[0]])
    assert endeavour("prepare", *arguments) == 0
    assert f"left of {len(lines) + 1} training pairs: {len(lines)}; report.md" in capsys.readouterr().err


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, `outputs/run`, its corpus and its data."""
    folder = tmp_path_factory.mktemp("trained")
    assert endeavour("train", *settings(folder), "name=run") == 0
    return folder


def sign(folder: Path) -> None:
    """Makes a folder's digests fit what it holds now, as somebody would who put it together by hand."""
    files = [path for path in sorted(folder.iterdir()) if path.name != "digests.json"]
    (folder / "digests.json").write_text(json.dumps({path.name: file_digest(path) for path in files}))


def other_size(folder: Path) -> None:
    for path in (folder / "outputs" / "run" / "checkpoints").iterdir():
        tensors = load_file(path / "weights.safetensors")
        for name, tensor in tensors.items():
            tensors[name] = tensor.repeat(2) if tensor.ndim == 1 else tensor
        save_file(tensors, path / "weights.safetensors")
        sign(path)


def other_tokenizer(folder: Path) -> None:
    config = run_config(["tokenizer.vocabulary_size=300"]).tokenizer
    model = folder / "outputs" / "run" / "model"
    text = [f"ganz anderer Text von anderswo {i}" for i in range(99)]
    train_tokenizer(text, config).save(model / "source.model")
    sign(model)


def nothing(folder: Path) -> None:
    """All is well but what is typed."""


TOKENIZED = ["evaluation.tokenized_bleu=true", "evaluation.tokenized_references={folder}/nowhere"]
RUN: dict[str, tuple[str, Callable[[Path], object], list[str], str]] = {
    "a checkpoint of another model size": (
        "train",
        other_size,
        [],
        r"update-00000002/weights\.safetensors: not the weights of this model",
    ),
    "a damaged run.json": (
        "train",
        lambda folder: (folder / "outputs" / "run" / "run.json").write_text("["),
        [],
        r"run\.json: damaged .*delete it",
    ),
    "an output folder that is a file": (
        "train",
        lambda folder: (folder / "file").write_text(""),
        ["output_folder={folder}/file"],
        r"/file.*output_folder",
    ),
    "tokenized references that are not there": ("train", nothing, TOKENIZED, "nowhere: no such file"),
    "tokenized references of which split": (
        "evaluate",
        nothing,
        [*TOKENIZED, "evaluation.splits=[validation,test]"],
        r"evaluation\.tokenized_references=.*validation, test.*evaluation\.splits",
    ),
    "a tokenizer of another model": ("translate", other_tokenizer, ["text=a"], r"model/source\.model is not"),
    "no such input": ("translate", nothing, ["input={folder}/nowhere"], "input=.*/nowhere cannot be read"),
    "a folder as input": ("translate", nothing, ["input={folder}"], "input=.* cannot be read"),
    "a folder as output": (
        "translate",
        nothing,
        ["text=a", "output={folder}"],
        "output=.* cannot be written",
    ),
}


@pytest.mark.parametrize("case", RUN)
def test_a_run_that_is_wrong(
    case: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, damage, changes, pattern = RUN[case]
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    damage(tmp_path)
    arguments = [*places(tmp_path), "run=run", "device=cpu"]
    if command == "train":
        (tmp_path / "outputs" / "run" / "summary.json").unlink()  # as if it had not come to its end
        arguments = [*settings(trained), *places(tmp_path), "name=run"]
    elif command == "translate":
        arguments = arguments[1:]
    refused(capsys, pattern, command, *arguments, *(change.format(folder=tmp_path) for change in changes))


def test_a_defect_is_two_lines_and_exit_code_1_and_its_traceback_comes_when_asked_for(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("\n  the first line\nand many more")

    monkeypatch.setattr("endeavour.runs.translators.load_runs", broken)
    asked = ["translate", f"output_folder={trained}/outputs", "run=run", "text=a", "device=cpu"]
    assert endeavour(*asked) == 1
    said = capsys.readouterr().err
    assert said.startswith("endeavour translate: RuntimeError: the first line\n")
    assert said.count("\n") == 2
    assert endeavour(*asked, "-v") == 1
    at_length = capsys.readouterr().err
    assert at_length.startswith("Traceback")
    assert at_length.endswith(said)
    assert unexpected(ValueError()).startswith("ValueError\n")
