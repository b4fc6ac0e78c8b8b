"""`endeavour train`: what it leaves behind, what it continues and refuses, and what its run is then good for."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from commands import endeavour
from endeavour.commands import pictures
from endeavour.pipeline import training_process, validation
from endeavour.runs.run import Run
from endeavour.training.checkpoint import average_weights
from endeavour.training.distributed import Ranks
from endeavour.training.precision import Precision


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return tmp_path / "outputs" / "files-tiny-1"


def test_train_evaluate_translate(
    parallel_files: list[str],
    folders: list[str],
    run_folder: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    settings = [*parallel_files, *folders]
    assert endeavour("train", *settings) == 0
    expected = [
        "config.yaml",
        "run.json",
        "log.jsonl",
        "curves.png",
        "attention.png",
        "summary.json",
        "model",
        "checkpoints",
    ]
    assert all((run_folder / name).exists() for name in expected)
    start = json.loads((run_folder / "run.json").read_text())[0]
    assert start["command"] == ["endeavour", "train", *settings]
    assert torch.__version__.startswith(start["packages"]["torch"])  # may add +cu130
    assert start["device"]["type"] == "cpu"
    scores = json.loads((run_folder / "evaluation" / "test-beam" / "scores.json").read_text())
    assert set(scores["scores"]) == {"bleu", "bleu_lowercased", "chrf", "ter"}
    assert len((run_folder / "evaluation" / "test-beam" / "hypotheses.txt").read_text().splitlines()) == 30
    lines = [json.loads(line) for line in (run_folder / "log.jsonl").read_text().splitlines()]
    assert {line["kind"] for line in lines} == {"train", "validation", "attention", "samples"}
    printed = capsys.readouterr().err
    said = re.search(r"about (\d+\.\d) epochs of (\d+) pairs", printed)
    assert said
    assert re.search(r"^(few|usual|many): ", printed, re.MULTILINE)
    assert "still improving" in printed
    summary = json.loads((run_folder / "summary.json").read_text())
    assert summary["still_improving"] is None  # two validations do not tell
    epochs = [line["epoch"] for line in lines if line["kind"] == "train"]
    assert epochs[-1] - 1 <= float(said[1]) <= epochs[-1] + 1
    assert float(said[1]) > 0.1

    # Again: nothing to do. With another setting: refused, by name.
    written = (run_folder / "run.json").read_text()
    assert endeavour("train", *settings) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert (run_folder / "run.json").read_text() == written
    assert endeavour("train", *settings, "training.learning_rate=0.5") == 2
    refusal = capsys.readouterr().err
    assert all(word in refusal for word in ("training.learning_rate", "name=", "training.restart=true"))

    # The newest run is the one that is evaluated and translates where none is named.
    places = [*folders[:2], "device=cpu"]
    assert endeavour("evaluate", *places, "decoding=greedy", "evaluation.splits=[validation]") == 0
    printed = capsys.readouterr()
    assert "files-tiny-1" in printed.err
    assert "BLEU" in printed.out
    assert "BLEU, tokenized" not in printed.out
    assert endeavour("translate", *places[1:], "text=the dog, (sees) it's", "decoding.num_hypotheses=3") == 0
    scored = [float(line.split("\t")[1]) for line in capsys.readouterr().out.splitlines()]
    assert len(scored) == 3
    assert scored == sorted(scored, reverse=True)

    # The papers' score, against references of ours and against a file of the same.
    asked = [*places, "run=files-tiny-1", "decoding=greedy", "evaluation.tokenized_bleu=true"]
    assert endeavour("evaluate", *asked) == 0
    greedy = run_folder / "evaluation" / "test-greedy"
    ours = json.loads((greedy / "scores.json").read_text("utf-8"))["scores"]["bleu_tokenized"]
    printed = capsys.readouterr().out
    pages = [(greedy / name).read_text("utf-8") for name in ("report.md", "report.html")]
    for text in (printed, *pages):
        assert "BLEU, tokenized" in text
        assert ours["signature"] in text.replace("\\", "")
    lowercased = (greedy / "references.txt").read_text("utf-8").lower()
    (tmp_path / "tokenized").write_text(lowercased, "utf-8")  # words alone
    assert endeavour("evaluate", *asked, f"evaluation.tokenized_references={tmp_path / 'tokenized'}") == 0
    theirs = json.loads((greedy / "scores.json").read_text("utf-8"))["scores"]["bleu_tokenized"]
    assert theirs == ours | {"signature": ours["signature"] + "|references:file"}
    assert theirs["signature"] in capsys.readouterr().out


def test_a_second_validation_set_is_scored_beside_the_others_and_chooses_no_checkpoint(
    parallel_files: list[str], folders: list[str], run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("train", *parallel_files, *folders, "corpus.held_out_rare=20") == 0
    assert list(json.loads((run_folder / "summary.json").read_text())["test"]) == ["test", "validation_rare"]
    held_out = run_folder / "evaluation" / "validation_rare-beam"
    assert len((held_out / "hypotheses.txt").read_text("utf-8").splitlines()) == 20
    assert json.loads((held_out / "scores.json").read_text("utf-8"))["overlap"]["sources"] == 0
    assert "validation_rare" in capsys.readouterr().out
    shown = [*folders[:2], "device=cpu", "evaluation.splits=[validation,validation_rare]", "decoding=greedy"]
    assert endeavour("evaluate", *shown) == 0
    assert "validation_rare" in capsys.readouterr().out
    samples = (run_folder / "log.jsonl").read_text("utf-8")
    assert not any(
        json.dumps(line) in samples for line in (held_out / "sources.txt").read_text().splitlines()
    )


def test_far_more_tokens_than_the_text_has_are_an_epoch_an_update_and_a_long_warmup_is_noted(
    parallel_files: list[str], folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["training.max_updates=3", "training.tokens_per_batch=100000", "training.warmup_updates=3"]
    assert endeavour("train", *parallel_files, *folders, *few) == 0
    noted = capsys.readouterr().err
    assert "about 3.0 epochs" in noted
    assert "training.warmup_updates=3" in noted


def test_a_run_keeps_the_precision_that_it_chose_on_whatever_machine_it_goes_on(
    parallel_files: list[str], folders: list[str], run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*parallel_files, *folders, "training.precision=auto"]
    measured: list[str] = []

    def machine(precision: str) -> None:
        def choose(*_: object, **__: object) -> Precision:
            measured.append(precision)
            return Precision(precision, "as this machine measured")

        monkeypatch.setattr(training_process, "choose_training_precision", choose)

    machine("bf16")
    assert endeavour("train", *settings) == 0
    whole = Run(run_folder.parent, run_folder.name).weights_digest
    # As if it had been stopped half-way, and goes on where bf16 is slow.
    machine("fp32")
    (run_folder / "summary.json").unlink()
    shutil.rmtree(run_folder / "model")
    shutil.rmtree(run_folder / "checkpoints" / "update-00000006")
    damaged = (
        run_folder / "checkpoints" / "update-00000009"
    )  # which is skipped, in whatever way it is damaged
    shutil.copytree(run_folder / "checkpoints" / "update-00000003", damaged)
    noted = (damaged / "state.json").read_text("utf-8")
    (damaged / "state.json").write_text(noted.replace('"bf16"', '"bg16"'), "utf-8")
    assert endeavour("train", *settings) == 0
    run = Run(run_folder.parent, run_folder.name)
    assert measured == ["bf16"]
    assert run.summary["precision"] == "bf16"
    assert run.weights_digest == whole
    # Thrown away, it chooses anew.
    assert endeavour("train", *settings, "training.restart=true") == 0
    assert run.summary["precision"] == "fp32"
    assert run.weights_digest != whole


def test_processes_that_see_other_checkpoints_or_data_do_not_begin(
    parallel_files: list[str],
    folders: list[str],
    run_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As on two hosts whose folders are not the same."""
    monkeypatch.setattr(Ranks, "gather", lambda self, value: [value, (3, "other")])
    assert endeavour("train", *parallel_files, *folders) == 2
    said = capsys.readouterr().err
    assert all(key in said for key in ("output_folder", "data_folder"))
    assert not (run_folder / "log.jsonl").exists()


def test_a_key_that_the_command_does_not_have_is_refused(
    folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for command, typed in (("train", "ensemble=a"), ("evaluate", "seed=2"), ("train", "+training.rate=1")):
        assert endeavour(command, folders[1], typed) == 2
        assert typed.partition("=")[0].lstrip("+") in capsys.readouterr().err


def test_hydras_multirun_flag_sweeps_too_and_each_run_ends_in_the_average_that_it_names(
    parallel_files: list[str], folders: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = cycle([9.0, 1.0, 1.0])  # of updates 3 and 6, and of the final model
    monkeypatch.setattr(validation, "corpus_bleu", lambda *_, **__: next(scores))
    # So slowly that the mean of both checkpoints is no worse than the later one: it would not be taken.
    settings = [*parallel_files, *folders, "training.keep_last=2", "training.learning_rate=1e-5"]
    assert endeavour("train", "--multirun", *settings, "training.average=best,none,last") == 0
    for average, updates in (("best", [3]), ("none", [3]), ("last", [3, 6])):
        run = tmp_path / "outputs" / f"files-tiny-1-average_{average}"
        summary = json.loads((run / "summary.json").read_text("utf-8"))
        assert summary["checkpoints"] == [f"update-{update:08d}" for update in updates]
        averaged = average_weights([run / "checkpoints" / f"update-{update:08d}" for update in updates], "")
        final = load_file(run / "model" / "weights.safetensors")
        assert all(torch.equal(final[name], averaged[name]) for name in final)


def test_a_run_ends_in_its_newest_checkpoint_where_the_mean_is_clearly_worse(
    parallel_files: list[str], folders: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = ["training.learning_rate=1e-2", "training.keep_last=2", "training.average=last"]
    assert endeavour("train", *parallel_files, *folders, *fast) == 0
    assert "update-00000006 alone" in capsys.readouterr().err
    run = tmp_path / "outputs" / "files-tiny-1"
    newest, final = (
        load_file(run / folder / "weights.safetensors") for folder in ("checkpoints/update-00000006", "model")
    )
    assert all(torch.equal(final[name], newest[name]) for name in final)
    assert json.loads((run / "summary.json").read_text("utf-8"))["checkpoints"] == ["update-00000006"]


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_model_that_was_damaged_and_deleted_is_made_again_as_is_said(
    checkpoints: bool,
    parallel_files: list[str],
    folders: list[str],
    run_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = [*parallel_files, *folders]
    asked = ["translate", folders[1], "device=cpu", "run=files-tiny-1", "text=the dog"]
    assert endeavour("train", *settings) == 0
    model = run_folder / "model"
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    if not checkpoints:  # which may be deleted, see outputs/README.md
        shutil.rmtree(run_folder / "checkpoints")

    def complaint() -> str:
        capsys.readouterr()
        assert endeavour(*asked) == 2
        return capsys.readouterr().err

    again = f"delete {model}, and the command" if checkpoints else "training.restart=true"
    (model / "weights.safetensors").write_bytes(b"")
    assert again in complaint().splitlines()[-1]
    shutil.rmtree(model)
    assert (
        f"is not finished: `{shlex.join(['endeavour', 'train', *settings])}`" if checkpoints else again
    ) in complaint()
    assert endeavour("train", *settings) == 0
    said = capsys.readouterr().err
    assert ("nothing to do" in said) is not checkpoints
    if not checkpoints:
        assert "training.restart=true" in said
        assert endeavour("train", *settings, "training.restart=true") == 0
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    assert (run_folder / "summary.json").is_file()
    assert endeavour(*asked) == 0


def test_a_run_is_not_resumed_on_other_data(
    parallel_files: list[str], folders: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    english = tmp_path / "train.en"
    original = Path(
        next(item for item in parallel_files if "splits.train" in item).split("[")[1].split(",")[0]
    )
    english.write_bytes(original.read_bytes())
    settings = [*parallel_files, *folders, f"corpus.splits.train=[{english},{original.with_suffix('.de')}]"]
    assert endeavour("train", *settings) == 0
    (tmp_path / "outputs" / "files-tiny-1" / "summary.json").unlink()  # as if it had not come to its end
    english.write_text(english.read_text("utf-8").replace("dog", "cat"), "utf-8")
    assert endeavour("train", *settings) == 2
    assert "corpus has changed" in capsys.readouterr().err


def test_a_finished_run_is_not_taken_for_one_of_other_text_and_needs_none(
    parallel_files: list[str], folders: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = next(item for item in parallel_files if "splits.train" in item).split("[")[1].split("/train.")[0]
    texts = [tmp_path / "first", tmp_path / "second"]
    for text in texts:
        shutil.copytree(folder, text)
    relative = [item.replace(f"{folder}/", "") for item in [*parallel_files, *folders]]
    settings, elsewhere = ([*relative, f"corpus.path={text}"] for text in texts)
    prepared = tmp_path / "data" / "prepared"
    assert endeavour("train", *settings) == 0
    # The same text, whatever its files are called, and how old they are.
    assert endeavour("train", *elsewhere) == 0
    assert len(list(prepared.glob("files-*"))) == 1
    for side in ("en", "de"):  # a pair more, which cleaning drops
        lines = (texts[1] / f"train.{side}").read_text("utf-8")
        (texts[1] / f"train.{side}").write_text(lines + lines.partition("\n")[0] + "\n", "utf-8")
    assert endeavour("train", *elsewhere) == 0
    assert capsys.readouterr().err.count("nothing to do") == 2
    english = texts[1] / "train.en"
    english.write_text(english.read_text("utf-8").replace("dog", "cat"), "utf-8")
    assert endeavour("train", *elsewhere) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in ("corpus has changed", "name=", "training.restart=true"))
    # What cannot be compared is taken as it is.
    shutil.rmtree(texts[0])
    assert endeavour("train", *settings) == 0
    shutil.rmtree(prepared)
    assert endeavour("train", *elsewhere) == 0
    assert not prepared.exists()
    assert capsys.readouterr().err.count("nothing to do") == 2


def test_two_processes_do_not_train_one_run(
    parallel_files: list[str], folders: list[str], capsys: pytest.CaptureFixture[str], run_folder: Path
) -> None:
    with Run(run_folder.parent, run_folder.name).lock():
        assert endeavour("train", *parallel_files, *folders) == 2
    assert "another process" in capsys.readouterr().err


def test_a_run_without_a_test_split_is_trained_all_the_same_and_evaluated_as_is_said(
    parallel_files: list[str],
    folders: list[str],
    run_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)  # where the folders are those that a command takes by itself
    monkeypatch.setattr(pictures, "draw_story", lambda *_, **__: [])
    settings = [*(item for item in parallel_files if "splits.test" not in item), *folders[2:]]
    assert endeavour("train", *settings) == 0
    assert json.loads((run_folder / "summary.json").read_text())["test"] == {}
    capsys.readouterr()
    assert endeavour("pictures") == 2
    _, *command = shlex.split(capsys.readouterr().err.split("`")[1])
    assert endeavour(*command) == 0
    assert endeavour("pictures") == 0


KILLED_IN_ITS_SECOND_SAVE = """
import os, signal
from endeavour.__main__ import main
from endeavour.training.state import Checkpoints

save, calls = Checkpoints.save, []

def killed(self, *arguments, **options):
    calls.append(save(self, *arguments, **options) if not calls else os.kill(os.getpid(), signal.SIGKILL))

Checkpoints.save = killed
main()
"""


def test_a_run_that_was_killed_goes_on_by_the_same_command_and_stays_one_tracked_run(
    parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    """That it ends in the same weights is shown by tests/faults."""
    settings = [
        "training.max_updates=24",
        "training.validate_every=4",
        "tracking.tracker=wandb",
        "name=killed",
    ]
    command = [sys.executable, "-m", "endeavour", "train", *parallel_files, *folders, *settings]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    run = tmp_path / "outputs" / "killed"
    dying = [sys.executable, "-c", KILLED_IN_ITS_SECOND_SAVE, *command[3:]]
    assert subprocess.run(dying, env=environment, check=False).returncode == -signal.SIGKILL
    assert not (run / "summary.json").exists()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert (run / "summary.json").is_file()
    assert len(json.loads((run / "run.json").read_text())) == 2
    newest = sorted((run / "checkpoints").glob("update-*"))[-1]
    tracking_id = json.loads((newest / "state.json").read_text())["state"]["tracking_id"]
    offline = [path.name for path in (run / "wandb").glob("offline-run-*")]
    assert len(offline) == 2
    assert all(f"wandb:{name.rpartition('-')[2]}" == tracking_id for name in offline)


def test_a_tracker_that_fails_or_is_missing_ends_no_training(
    parallel_files: list[str],
    folders: list[str],
    run_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = [*parallel_files, *folders, "training.max_updates=2", "training.validate_every=1"]
    monkeypatch.setitem(sys.modules, "trackio", None)
    assert endeavour("train", *settings, "tracking.tracker=trackio") == 2
    assert "[trackio]" in capsys.readouterr().err
    assert not run_folder.parent.exists()

    calls: list[str] = []

    def log(*_: object, **__: object) -> None:
        calls.append("log")
        raise ZeroDivisionError

    run = SimpleNamespace(id="abc", log=log, finish=lambda: calls.append("finish"))
    monkeypatch.setattr("wandb.init", lambda **_: run)
    assert endeavour("train", *settings, "tracking.tracker=wandb") == 0
    assert capsys.readouterr().err.count("tracking stops") == 1
    assert calls == ["log", "finish"]
    (run_folder / "summary.json").unlink()  # as if it had not come to its end
    assert endeavour("train", *settings, "tracking.tracker=trackio") == 0
    assert capsys.readouterr().err.count("tracking stops") == 1
    assert (run_folder / "summary.json").is_file()
