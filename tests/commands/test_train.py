"""The stages together, through the command line, on a corpus of a few hundred sentences."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file

from commands import endeavour
from endeavour.training.checkpoint import average_weights


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
    assert start["command"][1:] == settings
    assert start["packages"]["torch"] == torch.__version__
    assert start["device"]["type"] == "cpu"
    scores = json.loads((run_folder / "evaluation" / "test-beam" / "scores.json").read_text())
    assert set(scores["scores"]) == {"bleu", "bleu_lowercased", "chrf", "ter"}
    assert len((run_folder / "evaluation" / "test-beam" / "hypotheses.txt").read_text().splitlines()) == 30
    lines = [json.loads(line) for line in (run_folder / "log.jsonl").read_text().splitlines()]
    assert {line["kind"] for line in lines} == {"train", "validation", "attention"}
    said = re.search(
        r"6 updates at the latest: some (\d+\.\d) epochs of (\d+) pairs", capsys.readouterr().err
    )
    assert said
    epochs = [line["epoch"] for line in lines if line["kind"] == "train"]
    assert epochs[-1] - 1 <= float(said[1]) <= epochs[-1] + 1
    assert float(said[1]) > 0.1

    # Far more tokens than the text has are still an epoch an update, and a warmup beyond the end is not silent.
    few = [
        "name=few",
        "training.max_updates=3",
        "training.tokens_per_batch=100000",
        "training.warmup_updates=3",
    ]
    assert endeavour("train", *settings, *few) == 0
    noted = capsys.readouterr().err
    assert "some 3.0 epochs" in noted
    assert "training.warmup_updates=3 is not less than training.max_updates=3" in noted

    # Again: nothing to do. With another setting: refused, by name. Evaluated by the same settings.
    assert endeavour("train", *settings) == 0
    assert "finished" in capsys.readouterr().err
    assert endeavour("train", *settings, "training.learning_rate=0.5") == 2
    refusal = capsys.readouterr().err
    assert all(word in refusal for word in ("training.learning_rate", "name=", "training.restart=true"))
    assert endeavour("eval", *settings, "decoding=greedy", "evaluation.splits=[validation]") == 0
    printed = capsys.readouterr().out
    assert "BLEU" in printed
    assert "BLEU, tokenized" not in printed

    # The papers' score, against references of ours and against a file of the same.
    asked = ["decoding=greedy", "evaluation.tokenized_bleu=true"]
    assert endeavour("eval", *settings, *asked) == 0
    greedy = run_folder / "evaluation" / "test-greedy"
    ours = json.loads((greedy / "scores.json").read_text("utf-8"))["scores"]["bleu_tokenized"]
    printed = capsys.readouterr().out
    pages = [(greedy / name).read_text("utf-8") for name in ("report.md", "report.html")]
    for text in (printed, *pages):
        assert "BLEU, tokenized" in text
        assert ours["signature"] in text.replace("\\", "")
    lowercased = (greedy / "references.txt").read_text("utf-8").lower()
    (tmp_path / "tokenized").write_text(lowercased, "utf-8")  # words alone
    file = f"evaluation.tokenized_references={tmp_path / 'tokenized'}"
    assert endeavour("eval", *settings, *asked, file) == 0
    theirs = json.loads((greedy / "scores.json").read_text("utf-8"))["scores"]["bleu_tokenized"]
    assert theirs == ours | {"signature": ours["signature"] + "|references:file"}
    assert theirs["signature"] in capsys.readouterr().out

    # One line out for each line in, whatever it holds; a file and standard output agree.
    strange = [
        "the dog sees a tree",
        "",
        "  ",
        "\x00 \u202e",
        "ä" * 500,
        "a\rb\x0bc\u2028d",
        "(x, 'y') ${z} 😀",
    ]
    (tmp_path / "in.txt").write_bytes("\n".join(strange).encode() + b"\n\xff\xfe\n")
    assert endeavour("translate", *folders, "name=files-tiny-1", f"input={tmp_path / 'in.txt'}") == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") == len(strange) + 1
    files = [f"input={tmp_path / 'in.txt'}", f"output={tmp_path / 'out.txt'}"]
    assert endeavour("translate", *folders, "name=files-tiny-1", *files) == 0
    assert (tmp_path / "out.txt").read_text("utf-8") == printed
    n_best = ["text=the dog, (sees) it's", "decoding.num_hypotheses=3"]
    assert endeavour("translate", *folders, "name=files-tiny-1", *n_best) == 0
    scored = [float(line.split("\t")[1]) for line in capsys.readouterr().out.splitlines()]
    assert len(scored) == 3
    assert scored == sorted(scored, reverse=True)


def test_evaluating_a_run_that_is_not_there_names_those_that_are(
    folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("eval", *folders, "name=nowhere") == 2
    assert "no finished run yet" in capsys.readouterr().err


def test_a_corrected_command_may_reuse_the_folder_of_one_that_never_trained(
    parallel_files: list[str], folders: list[str], run_folder: Path
) -> None:
    assert endeavour("train", *folders, "corpus=files") == 2
    assert not run_folder.exists()


def test_a_sweep_trains_every_combination_and_survives_a_failing_trial(
    parallel_files: list[str], folders: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = [*parallel_files, *folders, "training.max_updates=2", "training.validate_every=2"]
    grid = ["seed=1,2", "training.learning_rate=0.01,0.02"]
    assert endeavour("sweep", *settings, *grid) == 0
    (table,) = (tmp_path / "outputs" / "sweeps").glob("files-seed-learning_rate-*/results.csv")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 4
    assert {(row["seed"], row["training.learning_rate"]) for row in rows} == {
        (seed, rate) for seed in "12" for rate in ("0.01", "0.02")
    }
    bleu = [float(row["validation.bleu"]) for row in rows]
    assert bleu == sorted(bleu, reverse=True)
    assert all((tmp_path / "outputs" / row["name"] / "summary.json").is_file() for row in rows)
    # What decides nothing is not on the screen.
    assert {row["checkpoints"] for row in rows} == {"update-00000002"}
    assert "checkpoints" not in capsys.readouterr().out

    # A budget below the longest pair fails that trial; the finished ones are not trained again.
    capsys.readouterr()
    grid[1] = "training.learning_rate=0.01,-1"
    assert endeavour("sweep", *settings, *grid) == 2
    captured = capsys.readouterr()
    assert "learning_rate=-1" in captured.err
    assert captured.err.count("is finished") == 2
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert sorted(row["status"] for row in rows) == ["failed", "failed", "finished", "finished"]


def test_hydras_multirun_flag_sweeps_too_and_each_run_ends_in_the_average_that_it_names(
    parallel_files: list[str], folders: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = cycle([9.0, 1.0, 1.0])  # of updates 3 and 6, and of the final model
    monkeypatch.setattr("endeavour.stages.validation.corpus_bleu", lambda *_: next(scores))
    # So slowly that the mean of both checkpoints is no worse than the later one: it would not be taken.
    settings = [*parallel_files, *folders, "training.keep_last=2", "training.learning_rate=1e-5"]
    assert endeavour("train", "--multirun", *settings, "training.average=best,none,last") == 0
    for average, updates in (("best", [3]), ("none", [3]), ("last", [3, 6])):
        run = tmp_path / "outputs" / f"files-tiny-1-average_{average}"
        summary = json.loads((run / "summary.json").read_text("utf-8"))
        assert summary["checkpoints"] == [f"update-{update:08d}" for update in updates]
        averaged = average_weights([run / "checkpoints" / f"update-{update:08d}" for update in updates])
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


def test_two_processes_do_not_train_one_run(
    parallel_files: list[str], folders: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "outputs").mkdir()
    with FileLock(tmp_path / "outputs" / ".files-tiny-1.lock"):
        assert endeavour("train", *parallel_files, *folders) == 2
    assert "another process" in capsys.readouterr().err


def test_a_corpus_without_a_test_split_is_trained_all_the_same(
    parallel_files: list[str], folders: list[str], run_folder: Path
) -> None:
    settings = [item for item in parallel_files if "splits.test" not in item]
    assert endeavour("train", *settings, *folders) == 0
    assert json.loads((run_folder / "summary.json").read_text())["test"] == {}


@pytest.mark.parametrize(
    "wrong",
    [["splits=[tset]"], ["tokenized_bleu=true", "tokenized_references=tset"]],
    ids=lambda keys: keys[-1],
)
def test_what_could_not_be_evaluated_is_refused_before_training(
    wrong: list[str],
    parallel_files: list[str],
    folders: list[str],
    capsys: pytest.CaptureFixture[str],
    run_folder: Path,
) -> None:
    keys = [f"evaluation.{key}" for key in wrong]
    assert endeavour("train", *parallel_files, *folders, *keys) == 2
    assert "tset" in capsys.readouterr().err
    assert not (run_folder / "checkpoints").exists()


def test_a_sweep_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert endeavour("sweep", "seed=1") == 2
    assert "model=tiny,small" in capsys.readouterr().err


def test_a_run_that_was_killed_goes_on_by_the_same_command_and_stays_one_tracked_run(
    parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    """That it ends in the same weights is shown by tests/faults."""
    settings = [
        "training.max_updates=24",
        "training.validate_every=4",
        "tracking.mode=offline",
        "name=killed",
    ]
    command = [sys.executable, "-m", "endeavour", "train", *parallel_files, *folders, *settings]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    run = tmp_path / "outputs" / "killed"
    log = run / "log.jsonl"
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    while not (log.is_file() and log.read_text().count('"kind": "train"') >= 6):
        assert process.poll() is None, "ended before it could be killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (run / "summary.json").exists()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert (run / "summary.json").is_file()
    assert len(json.loads((run / "run.json").read_text())) == 2
    newest = sorted((run / "checkpoints").glob("update-*"))[-1]
    tracking_id = json.loads((newest / "state.json").read_text())["state"]["tracking_id"]
    offline = [path.name for path in (run / "wandb").glob("offline-run-*")]
    assert len(offline) == 2
    assert all(name.endswith(tracking_id) for name in offline)
