"""Runs that begin with the weights and vocabularies of another: what they take over, and what is refused."""

import json
import re
import shutil
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from commands import endeavour, places, write_splits
from configs import QUICK, TINY
from endeavour.pipeline.data import data_of
from endeavour.runs.run import Run

BASE = [*QUICK, "training.precision=fp32", "decoding=greedy", "evaluation.num_pictures=0"]
BASE += [one for one in TINY if one != "model.width=16"]
MODEL = ["model.width=16", "model.positions=rotary"]
OTHER = [
    (f"the {noun} is {adjective} number {k}", f"die {noun} ist {adjective} Nummer {k}")
    for noun in ("shop", "lamp", "street", "song")
    for adjective in ("new", "long", "loud")
    for k in range(12)
]


@pytest.fixture(scope="module")
def trained(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs `base` and `apart` (a vocabulary a side), and a corpus of other text."""
    folder = tmp_path_factory.mktemp("pretrained")
    settings = [*parallel_files, *BASE, *MODEL, *places(folder)]
    assert endeavour("train", *settings, "name=base", "tokenizer.vocabulary_size=310") == 0
    apart = ["name=apart", "tokenizer.joint=false", "model.tie=none"]
    assert endeavour("train", *settings, *apart) == 0
    return folder


@pytest.fixture
def other(trained: Path, tmp_path: Path) -> list[str]:
    """Overrides of a run on other text that begins with `base`; its folders are a copy, for this test alone."""
    shutil.copytree(trained, tmp_path / "copy")
    return [*other_text(tmp_path), *places(tmp_path / "copy")]


def other_text(folder: Path) -> list[str]:
    splits = {"train": OTHER[:-24], "validation": OTHER[-24:-12], "test": OTHER[-12:]}
    return [*write_splits(folder, splits), *BASE, "name=new", "pretrained=base"]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "weights.safetensors")


def test_a_run_begins_with_the_weights_and_vocabulary_of_another_and_stands_on_its_own_afterwards(
    other: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    still = ["training.learning_rate=1e-30", "training.average=none"]  # updates that change nothing
    assert endeavour("train", *other, *MODEL, "model.dropout=0.3", *still) == 0
    assert "begins with the weights of" in capsys.readouterr().err
    base, new = weights(outputs / "base"), weights(outputs / "new")
    assert all(torch.equal(base[key], new[key]) for key in base)
    for name in ("source.model", "target.model"):
        assert (outputs / "new" / "model" / name).read_bytes() == (
            outputs / "base" / "model" / name
        ).read_bytes()
    digests = json.loads((outputs / "base" / "model" / "digests.json").read_text())
    summary = json.loads((outputs / "new" / "summary.json").read_text())
    assert summary["pretrained_digest"] == digests["weights.safetensors"]
    assert "vocabulary_size: 310" in (outputs / "new" / "config.yaml").read_text()  # how base learnt it

    # What it began with is measured, and nothing changed since.
    log = [json.loads(line) for line in (outputs / "new" / "log.jsonl").read_text().splitlines()]
    losses = {line["update"]: line["loss"] for line in log if line["kind"] == "validation"}
    assert next(iter(losses)) == 0
    assert len(losses) > 1
    assert set(losses.values()) == {losses[0]}

    # With its origin gone the same command finds it finished, and it is evaluated.
    shutil.rmtree(outputs / "base")
    assert endeavour("train", *other, *MODEL, "model.dropout=0.3", *still) == 0
    assert "finished" in capsys.readouterr().err
    assert endeavour("evaluate", *places(tmp_path / "copy"), "run=new") == 0

    # Of the data folders with this vocabulary its own one is found, and prepared again where it is gone.
    for gone in (False, True):
        if gone:
            shutil.rmtree(tmp_path / "copy" / "data")
        data = data_of(Run(outputs, "new"), tmp_path / "copy" / "data")
        assert data.lines("test", "source") == [source for source, _ in OTHER[-12:]]


LONG = [*MODEL, "training.max_epochs=100", "training.schedule=inverse_sqrt"]


@pytest.fixture(scope="module")
def begun(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with two runs on the other text: `whole`, of six updates, and `new`, of three."""
    folder = tmp_path_factory.mktemp("begun")
    shutil.copytree(trained, folder / "copy")
    settings = [*other_text(folder), *LONG, *places(folder / "copy")]
    assert endeavour("train", *settings, "training.max_updates=6", "name=whole") == 0
    assert endeavour("train", *settings, "training.max_updates=3") == 0
    return folder


@pytest.mark.parametrize("base", ["gone", "another", "as it was"])
def test_a_stopped_run_goes_on_whatever_became_of_the_one_it_began_with(
    begun: Path, parallel_files: list[str], base: str, tmp_path: Path
) -> None:
    shutil.copytree(begun / "copy", tmp_path / "copy")
    outputs = tmp_path / "copy" / "outputs"
    settings = [*other_text(begun), *LONG, *places(tmp_path / "copy")]
    # A run that was stopped after update 3 is one that has a checkpoint of it and no end.
    saved = outputs / "new" / "config.yaml"
    saved.write_text(saved.read_text().replace("max_updates: 3", "max_updates: 6"))
    (outputs / "new" / "summary.json").unlink()
    shutil.rmtree(outputs / "new" / "model")
    began = weights(outputs / "base")
    if base == "as it was":  # and the newest checkpoint is damaged, so that it begins again
        optimizer = next((outputs / "new" / "checkpoints").glob("*3")) / "optimizer.safetensors"
        optimizer.write_bytes(optimizer.read_bytes()[:-1] + b"?")
    else:
        shutil.rmtree(outputs / "base")
    if base == "another":
        again = [*parallel_files, *BASE, *MODEL, *places(tmp_path / "copy"), "name=base"]
        changes = ["model.width=32", "tokenizer.vocabulary_size=305"]
        assert endeavour("train", *again, *changes) == 0
    assert endeavour("train", *settings, "training.max_updates=6") == 0
    new, whole = (weights(outputs / name) for name in ("new", "whole"))
    assert any(not torch.equal(began[key], new[key]) for key in new)
    assert all(torch.equal(whole[key], new[key]) for key in whole)
    summaries = [json.loads((outputs / name / "summary.json").read_text()) for name in ("new", "whole")]
    assert summaries[0]["pretrained_digest"] == summaries[1]["pretrained_digest"] != ""


def test_a_run_that_was_killed_within_its_first_checkpoint_goes_on(
    other: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*other, *MODEL, "name=killed", "training.max_updates=2"]

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("endeavour.training.state.save_tensors", killed)
        assert endeavour("train", *command) != 0
    assert (tmp_path / "copy" / "outputs" / "killed" / "checkpoints").is_dir()
    assert endeavour("train", *command) == 0


@pytest.mark.parametrize(
    ("command", "asked", "message"),
    [
        ("train", ["model.width=32", "model.positions=rotary"], "model.width=16"),
        ("train", ["model.width=16"], "model.positions=rotary"),
        ("train", [*MODEL, "pretrained=new"], "pretrained=new is the run itself"),
        ("train", [*MODEL, "name=apart", "pretrained=apart/base", "training.restart=true"], "or in it"),
        ("train", [*MODEL, "pretrained=none"], "finished runs: base, apart/base"),
        ("train", [*MODEL, "pretrained=apart"], "model.tie=all"),
        ("train", [*MODEL, "model.tie=none", "pretrained=apart", "direction=de-en"], "direction=de-en"),
        ("prepare", [*MODEL, "pretrained=none"], "finished runs: base, apart/base"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written_or_lost(
    other: list[str],
    tmp_path: Path,
    command: str,
    asked: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    shutil.copytree(outputs / "base", outputs / "apart" / "base")
    before = {path: path.stat().st_mtime_ns for path in outputs.rglob("*")}
    assert endeavour(command, *other, *asked) == 2
    assert message in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in outputs.rglob("*")} == before


def test_an_altered_vocabulary_is_refused(
    other: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "copy" / "outputs" / "base" / "model" / "source.model"
    model.write_bytes(model.read_bytes()[:-1] + b"?")
    assert endeavour("train", *other, *MODEL) == 2
    assert str(model) in capsys.readouterr().err


def test_the_vocabulary_comes_with_the_weights_whatever_is_typed_and_serves_the_other_direction(
    other: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("train", *other, *MODEL, "direction=de-en", "tokenizer=bpe8k") == 0
    noted = capsys.readouterr().err
    assert "note: the vocabulary is that of" in noted
    assert re.search(r"note: \S+base translates en-de, not de-en", noted)
    base, new = (Run(tmp_path / "copy" / "outputs", name) for name in ("base", "new"))
    assert new.summary["pretrained_digest"] == base.weights_digest
    assert new.config.tokenizer == base.config.tokenizer
    assert new.load_tokenizers()[0].digest == base.load_tokenizers()[0].digest
    # The same command, with or without what was set aside, is the same run.
    assert endeavour("train", *other, *MODEL, "direction=de-en") == 0
    assert "nothing to do" in capsys.readouterr().err


DENOISING = "+pretraining_settings.augmentation.denoising=2"
OWN_SPLITS = "+pretraining_settings.evaluation.splits=[validation]"


@pytest.fixture(scope="module")
def by_two_commands(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `restorer`, a run that restores masked sentences, and `translator`, which begins with it."""
    folder = tmp_path_factory.mktemp("two_commands")
    settings = [*parallel_files, *BASE, *MODEL, *places(folder)]
    assert endeavour("train", *settings, "name=restorer", "augmentation.denoising=2") == 0
    assert endeavour("train", *settings, "name=translator", "pretrained=restorer") == 0
    return folder


@pytest.fixture
def command(by_two_commands: Path, parallel_files: list[str], tmp_path: Path) -> list[str]:
    """Trains `both`, and `first` before it, in a copy of the folder."""
    shutil.copytree(by_two_commands, tmp_path / "copy")
    settings = [*parallel_files, *BASE, *MODEL, *places(tmp_path / "copy")]
    return ["train", *settings, "name=both", "pretrained=first", DENOISING]


def test_a_run_that_is_to_be_pretrained_is_in_one_command_what_it_is_in_two_and_is_needed_no_more(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    assert endeavour("prepare", *command[1:]) == 0
    assert "first trains first" in capsys.readouterr().err
    prepared = {path.name for path in (tmp_path / "copy" / "data" / "prepared").iterdir()}
    assert endeavour(*command) == 0
    assert {path.name for path in (tmp_path / "copy" / "data" / "prepared").iterdir()} == prepared
    said = capsys.readouterr().err
    assert "outputs/first, which is trained first" in said
    assert "are usual" not in said
    for one, other in (("first", "restorer"), ("both", "translator")):
        assert Run(outputs, one).weights_digest == Run(outputs, other).weights_digest
    assert Run(outputs, "both").summary["pretrained_digest"] == Run(outputs, "first").weights_digest
    assert (
        Run(outputs, "first").load_tokenizers()[0].digest == Run(outputs, "both").load_tokenizers()[0].digest
    )

    # Stopped before its end, it goes on without the other.
    shutil.rmtree(outputs / "first")
    (outputs / "both" / "summary.json").unlink()
    shutil.rmtree(outputs / "both" / "model")
    assert endeavour(*command) == 0
    assert not (outputs / "first").exists()
    assert Run(outputs, "both").weights_digest == Run(outputs, "translator").weights_digest


def test_a_finished_run_is_begun_with_however_it_was_trained(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    before = Run(outputs, "restorer").weights_digest
    assert endeavour(*command, "pretrained=restorer", "seed=2") == 0
    assert "restorer was trained with other settings than pretraining_settings ask for (seed: 1 → 2)" in (
        " ".join(capsys.readouterr().err.split())
    )
    assert (
        Run(outputs, "both").summary["pretrained_digest"] == before == Run(outputs, "restorer").weights_digest
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["pretrained=both"], "pretrained=both is the run itself"),
        (["+pretraining_settings.corpus.name=x"], "'augmentation', 'model', 'training' or 'evaluation'"),
        (["+pretraining_settings.model.width=32"], "has another model than this run: add model.width=32"),
        (["teachers=typo"], "typo holds no trained model"),
        (["+pretraining_settings.training.max_updates=-1"], "pretraining_settings: training.max_updates=-1"),
        (["pretraining_settings.training.r_drop=0"], r"+pretraining_settings.training.r_drop=…"),
        ([OWN_SPLITS, "evaluation.splits=[typo]"], "evaluation.splits: typo"),
        ([OWN_SPLITS, "evaluation.splits=[train]"], "evaluation.splits: train"),
        (["+evaluation.labels.typo=README.md"], "evaluation.labels.typo"),
        (["+evaluation.labels.test=typo"], "typo: no such file"),
    ],
)
def test_pretraining_that_there_cannot_be_is_refused_before_anything_is_trained(
    asked: list[str],
    message: str,
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert endeavour(*command, *asked) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "copy" / "outputs" / "first").exists()


def test_a_run_that_another_process_pretrains_is_waited_for(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    other = ExitStack()
    other.enter_context(Run(outputs, "first").lock())

    def finish(_: float) -> None:
        if not Run(outputs, "first").is_trained:
            shutil.copytree(outputs / "restorer", outputs / "first")
        other.close()

    monkeypatch.setattr("endeavour.pipeline.training.time", SimpleNamespace(sleep=finish))
    assert endeavour(*command) == 0
    assert "another process trains" in capsys.readouterr().err
    assert Run(outputs, "both").weights_digest == Run(outputs, "translator").weights_digest


def restorer_without(outputs: Path, *parts: str) -> Run:
    """`first`, as it would be trained, but for these files and folders."""
    ignored = shutil.ignore_patterns(*parts)
    shutil.copytree(outputs / "restorer", outputs / "first", ignore=ignored)
    return Run(outputs, "first")


def test_a_pretraining_that_was_stopped_while_it_was_evaluated_is_finished(
    command: list[str], tmp_path: Path
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    first = restorer_without(outputs, "summary.json")
    assert endeavour(*command) == 0
    assert first.summary["updates"] == Run(outputs, "restorer").summary["updates"]


@pytest.mark.parametrize("changed", ["config", "corpus"])
def test_a_pretraining_that_was_stopped_and_cannot_go_on_is_refused_with_what_helps(
    changed: str,
    command: list[str],
    parallel_files: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    first = restorer_without(outputs, "summary.json", "model")
    if changed == "config":
        command.append("training.max_updates=5")
    else:  # the same files, of other text
        text = Path(parallel_files[1].partition("[")[2].partition(",")[0]).parent
        shutil.copytree(text, tmp_path / "text")
        (tmp_path / "text" / "train.en").write_bytes((text / "train.en").read_bytes().replace(b"dog", b"cat"))
        command = [one.replace(f"{text}/", f"{tmp_path}/text/") for one in command]
        saved = first.folder / "config.yaml"
        saved.write_text(saved.read_text("utf-8").replace(f"{text}/", f"{tmp_path}/text/"), "utf-8")
    shutil.copytree(outputs / "translator", outputs / "both")
    assert endeavour(*command, "training.restart=true") == 2
    said = capsys.readouterr().err
    assert ("another config" if changed == "config" else "the corpus has changed") in said
    assert said.endswith("\ndelete it, to have it trained anew, or choose another pretrained=…\n")
    assert Run(outputs, "both").summary
    shutil.rmtree(first.folder)
    assert endeavour(*command, "training.restart=true") == 0


def test_a_restart_that_is_stopped_before_its_run_begins_goes_on_without_being_asked_for_again(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    shutil.copytree(outputs / "translator", outputs / "both")

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("endeavour.pipeline.training.TrainingProcess.train", stopped)  # of `first`
        assert endeavour(*command, "training.restart=true") == 130
    assert Run(outputs, "both").summary
    assert endeavour(*command, "evaluation.splits=[typo]") == 2  # another mistake
    assert endeavour(*command) == 0
    assert "will be thrown away" in capsys.readouterr().err
    assert Run(outputs, "first").summary
    assert len(json.loads((outputs / "both" / "run.json").read_text())) == 1
    assert not list(outputs.glob(".*.restart"))


def test_a_pretrained_run_without_its_weights_makes_them_again_or_is_named(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    first = restorer_without(outputs, "model", "checkpoints")
    assert endeavour(*command) == 2
    assert "outputs/first has lost its model" in capsys.readouterr().err
    shutil.rmtree(first.folder)
    restorer_without(outputs, "model")
    assert endeavour(*command) == 0
    assert first.weights_digest == Run(outputs, "restorer").weights_digest
    assert Run(outputs, "both").weights_digest == Run(outputs, "translator").weights_digest


def test_a_pretrained_run_that_came_without_its_checkpoints_is_taken_as_it_is(
    command: list[str], tmp_path: Path
) -> None:
    outputs = tmp_path / "copy" / "outputs"
    first = restorer_without(outputs, "summary.json", "checkpoints")
    assert endeavour(*command) == 0
    assert not first.summary
    assert Run(outputs, "both").weights_digest == Run(outputs, "translator").weights_digest


def test_without_a_name_nothing_is_pretrained(command: list[str], tmp_path: Path) -> None:
    assert endeavour(*command, "pretrained=null") == 0
    assert Run(tmp_path / "copy" / "outputs", "both").summary["pretrained_digest"] is None
