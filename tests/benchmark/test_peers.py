"""Other toolkits, as a program that a test writes: what they are given, how they are read, what becomes of failures."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bench_config import load_bench

from endeavour.benchmark import peers, training
from endeavour.benchmark.config import Peer
from endeavour.benchmark.contenders import make_contender
from endeavour.benchmark.peers import filled, measure_peers, why_no_peer, write_text
from endeavour.benchmark.tables import as_markdown
from endeavour.benchmark.task import Task
from endeavour.commands.bench import bench
from endeavour.data.tokenizer import load_tokenizers
from endeavour.errors import UserError
from waiting import until

MakeTask = Callable[..., Task]

# Writes down what it was called with, and speaks as toolkits do: a speed after each half.
TOOL = """#!{python}
import os, pathlib, sys
assert "PYTHONPATH" not in os.environ
text, run = map(pathlib.Path, sys.argv[1:3])
lines = text.joinpath("train.source").read_text("utf-8").splitlines()
assert len(lines) == len(text.joinpath("train.target").read_text("utf-8").splitlines())
run.mkdir()  # which is not there when a turn begins
if "settings.txt" in os.listdir():
    print(open("settings.txt").read())
print("speed=1.5 a second", flush=True)
print("speed=1,234.5 a second", file=sys.stderr, flush=True)
sys.exit(int(sys.argv[3]))
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A prefix with the program `tool` in it."""
    program = tmp_path / "prefix" / "bin" / "tool"
    program.parent.mkdir(parents=True)
    program.write_text(TOOL.replace("{python}", sys.executable))
    program.chmod(0o755)
    return tmp_path / "prefix"


def always(_function: object, _name: str, _task: Task) -> float:
    """In place of `in_fresh_process`."""
    return 1.0


def peer(environment: Path, **others: Any) -> Peer:
    settings: dict[str, Any] = {
        "environment": str(environment),
        "precision": "fp32",
        "device": {"cpu": "0 {threads}"},
        "files": {},
        "prepare": [],
        "train": "tool {text} {run} {device}",
        "rate": "speed=([0-9.,]+)",
        "counts": "target_tokens",
    }
    return Peer(**(settings | others))


def test_the_text_is_that_of_the_batches_and_the_vocabulary_that_of_the_ids(
    make_task: MakeTask, tmp_path: Path
) -> None:
    task = make_task()
    tokens = write_text(task, tmp_path)
    dataset = task.dataset()
    rows = np.unique(np.concatenate(task.rows))
    ids: dict[str, int] = json.loads((tmp_path / "vocabulary.json").read_text("utf-8"))
    assert list(ids.values()) == list(range(load_tokenizers(task.data)[0].vocabulary_size))
    assert list(ids)[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    for side in ("source", "target"):
        lines = (tmp_path / f"train.{side}").read_text("utf-8").splitlines()
        written = [[ids[piece] for piece in line.split(" ")] for line in lines]
        assert written == [getattr(dataset, side)[row][:-1].tolist() for row in rows]
        assert 0 < len((tmp_path / f"valid.{side}").read_text("utf-8").splitlines()) <= 8
    assert tokens["pairs"] == dataset.target.lengths[rows].mean()
    assert (tmp_path / "vocabulary.txt").read_text("utf-8").splitlines() == list(ids)
    assert (tmp_path / "pieces.txt").read_text("utf-8").splitlines() == list(ids)[4:]
    assert (tmp_path / "counts.txt").read_text("utf-8").splitlines() == [
        f"{piece} 1" for piece in list(ids)[4:]
    ]


def test_turns_alternate_and_the_last_speed_counts(
    make_task: MakeTask, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    turn = peers._turn  # pyright: ignore[reportPrivateUsage]

    def ours(_function: object, name: str, _task: Task) -> float:
        order.append(name)
        return 2469.0

    def theirs(settings: Peer, *rest: Any, **keywords: Any) -> float:
        order.append(settings.counts)
        return turn(settings, *rest, **keywords)

    monkeypatch.setattr(peers, "in_fresh_process", ours)
    monkeypatch.setattr(peers, "_turn", theirs)
    monkeypatch.setenv("PYTHONPATH", "ours")
    task, folder = make_task(updates=2), tmp_path / "my runs"
    notes: list[str] = []
    ended: list[int] = []
    others = {
        "one": peer(
            environment,
            files={"settings.txt": "{width} {updates} {all_updates} {seed} {vocabulary} {other}"},
            prepare=["tool {text} {work}/data 0"],
        ),
        "two": peer(environment, counts="pairs"),
    }
    rows = measure_peers(
        task,
        ["endeavour fp32"],
        others,
        folder=folder,
        notes=notes,
        done=lambda: ended.append(1),
    )
    assert order == ["endeavour fp32", "target_tokens", "pairs"] * 2
    assert len(ended) == 6
    assert notes == []
    assert [(row["toolkit"], row["ours_by_this"]) for row in rows[:2]] == [("endeavour", 1.0), ("one", 2.0)]
    assert rows[1]["target_tokens_per_second"] == {"median": 1234.5, "lowest": 1234.5, "highest": 1234.5}
    lengths = task.dataset().target.lengths[np.unique(np.concatenate(task.rows))]
    assert rows[2]["target_tokens_per_second"]["median"] == pytest.approx(1234.5 * lengths.mean())
    log = (folder / f"{task.model.name}-one.log").read_text("utf-8")
    assert log.count("$ tool") == 3
    assert f"16 {task.settings.updates} {2 * task.settings.updates} 1 300 {{other}}" in log
    assert f"/run' 0 {torch.get_num_threads()}\n" in log
    assert not (folder / task.model.name).exists()


@pytest.mark.parametrize(("passes", "untimed"), [(0, 2), (2, 8)])
def test_ours_is_timed_when_all_is_made_for_the_shapes_of_the_second_half(
    passes: int, untimed: int, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = make_contender("endeavour fp32", make_task(updates=4))
    ours.passes = passes
    trained: list[int] = []

    def noting(_contender: object, _dataset: object, rows: tuple[object, ...]) -> int:
        trained.append(len(rows))
        return 0

    for module in (peers, training):
        monkeypatch.setattr(module, "run_updates", noting)
    monkeypatch.setattr(peers, "prepare_process", lambda *_: None)
    monkeypatch.setattr(peers, "make_contender", lambda *_: ours)
    peers._second_half("endeavour fp32", ours.task)  # pyright: ignore[reportPrivateUsage]
    assert trained == [untimed, 2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"train": "tool {text} {run} 3"}, "tool ended with 3: speed=1.5 a second | speed=1,234.5 a second"),
        ({"rate": "tokens=([0-9]+)"}, "nothing in its log is tokens="),
        ({"rate": "speed=1(.)"}, "its last speed is ','"),
        ({"rate": "now=([0-9]+)", "files": {"settings.txt": "now=0"}}, "its last speed is '0'"),
        ({"prepare": ["tool {text} {work} 0"]}, "tool ended with 1: "),
        ({"train": "broken"}, "broken cannot be executed ("),
    ],
)
def test_one_that_fails_is_told_of_with_the_end_of_its_log(
    change: dict[str, Any],
    said: str,
    make_task: MakeTask,
    environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "in_fresh_process", always)
    broken = environment / "bin" / "broken"
    broken.write_text("#!/no/such/python\n")
    broken.chmod(0o755)
    notes: list[str] = []
    others = {"bad": peer(environment, **change), "good": peer(environment)}
    rows = measure_peers(
        make_task(), ["endeavour fp32"], others, folder=tmp_path, notes=notes, done=lambda: None
    )
    assert [row["toolkit"] for row in rows] == ["endeavour", "good"]
    (note,) = notes
    assert note.startswith("bad (")
    assert said in note
    assert "bad.log" in note


def test_one_that_hangs_is_ended_and_what_was_measured_stays(
    make_task: MakeTask, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its second turn, in which it waits for a process of its own."""
    program = environment / "bin" / "hanging"
    program.write_text(
        "#!/bin/sh\necho speed=3; [ -e once ] || { touch once; exit; }; sleep 1000 & echo $! > new; mv new child; wait"
    )
    program.chmod(0o755)
    wait = subprocess.Popen[bytes].wait
    child = tmp_path / make_task().model.name / "bad" / "child"
    children: list[int] = []

    def impatient(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        """The limit comes as soon as the program waits."""
        until(lambda: child.exists() or process.poll() is not None)
        if timeout is None or process.poll() is not None:
            return wait(process)
        children.append(int(child.read_text()))
        raise subprocess.TimeoutExpired("hanging", timeout)

    monkeypatch.setattr(peers, "in_fresh_process", always)
    monkeypatch.setattr(subprocess.Popen, "wait", impatient)
    notes: list[str] = []
    others = {"bad": peer(environment, train="hanging")}
    rows = measure_peers(
        make_task("bench.repeats=3"),
        ["endeavour fp32"],
        others,
        folder=tmp_path,
        notes=notes,
        done=lambda: None,
    )
    assert [row["target_tokens_per_second"]["median"] for row in rows] == [1.0, 3.0]
    (note,) = notes
    assert note.startswith("bad (")
    assert "bench.peer_minutes" in note
    (ended,) = children
    with suppress(FileNotFoundError):
        until(lambda: ") Z " in Path(f"/proc/{ended}/stat").read_text())


def test_one_that_cannot_be_measured_is_left_out(environment: Path) -> None:
    model = load_bench([]).model
    assert why_no_peer(peer(environment), model, "cpu") is None
    assert "device=mps" in (why_no_peer(peer(environment), model, "mps") or "")
    assert "no other in " in (why_no_peer(peer(environment, prepare=["other x"]), model, "cpu") or "")
    assert "model.tie=all" in (
        why_no_peer(peer(environment), load_bench(["model.tie=none"]).model, "cpu") or ""
    )


def test_the_command_measures_peers_beside_ours(
    environment: Path, parallel_files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by the tool in place of fairseq's programs, which run in another folder; another is not there."""
    monkeypatch.chdir(tmp_path)
    for name in ("fairseq-preprocess", "fairseq-train"):
        (environment / "bin" / name).symlink_to("tool")
    changed = [
        "bench.peers.fairseq.prepare=[]",
        "bench.peers.fairseq.train='fairseq-train {text} {run} 0'",
        "bench.peers.fairseq.rate='speed=([0-9.,]+)'",
    ]
    config = load_bench(
        [
            *parallel_files,
            *("data_folder=data", "output_folder=outputs", "device=cpu"),
            *("bench=smoke", "bench.parts=[peers]", "bench.precisions=[fp32]", "bench.repeats=1"),
            *("tokenizer.vocabulary_size=400", "bench.references=[]"),
            *(f"bench.peers.{name}.environment={environment}" for name in ("fairseq", "marian")),
            *changed,
        ]
    )
    results = bench(config, [])
    assert [(row["toolkit"], row["precision"]) for row in results["peers"]] == [
        ("endeavour", "fp32"),
        ("fairseq", "fp32"),
    ]
    assert all(row["target_tokens_per_second"]["median"] > 0 for row in results["peers"])
    assert results["notes"] == [f"marian: no pymarian in {environment / 'bin'}"]
    assert "| fairseq |" in as_markdown("x", results)


def test_every_shipped_peer_is_filled_in_and_off(make_task: MakeTask) -> None:
    """A placeholder that is misspelt would reach the toolkit."""
    config = load_bench([])
    known = {*vars(config.bench), *vars(config.model)}
    known |= {"text", "work", "run", "all_updates", "vocabulary", "seed", "device"}
    assert set(config.bench.peers) == {"fairseq", "eole", "joeynmt", "sockeye", "marian"}
    for settings in config.bench.peers.values():
        assert settings.environment is None
        for template in (*settings.files.values(), *settings.prepare, settings.train):
            assert set(re.findall(r"\{(\w+)\}", template)) <= known
    assert filled("a: {b: {width}, c: {}}", {"width": 3, "b": 4}) == "a: {b: 3, c: {}}"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("bench.parts=[peers]", "bench.peers.NAME.environment"),
        ("bench.peers.eole.rate='('", "rate=("),
        ("bench.peers.eole.rate=abc", "rate=abc"),
        ("bench.peers.eole.counts=words", "counts"),
        ("bench.peers.eole.train=''", "bench.peers.eole.train=: names no program"),
        ('bench.peers.eole.train="it\'s"', "bench.peers.eole.train=it's: not a command"),
        ("bench.peers.eole.prepare=['']", "bench.peers.eole.prepare.0=: names no program"),
    ],
)
def test_what_is_no_peer_is_refused_by_key(setting: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        load_bench([setting])
    assert said in str(refused.value)
