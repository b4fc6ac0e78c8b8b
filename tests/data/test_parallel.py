"""Work on several processes gives what one gives, in order, and ends with its caller."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from building import DIRTY, contents, in_shards, prepared, rates, settings_in, write

from configs import run_config
from endeavour.data import parallel
from endeavour.data.parallel import AHEAD, map_in_order, usable_cores
from endeavour.errors import RunError, UserError
from waiting import until


@pytest.fixture(autouse=True)
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first item on."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(parallel, "SECONDS_ALONE", 0)


def place(item: int) -> tuple[int, int]:
    time.sleep(0.02 * (item % 3))
    return item, os.getpid()


def refuse_three(item: int) -> int:
    if item == 3:
        raise UserError("no threes")
    return item


class Killing:
    """Kills the process that pickles it."""

    def __reduce__(self) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""


def die(size: int) -> list[Any]:
    """As if the kernel had chosen this process, at the beginning of its answer or in the middle of it."""
    return ["x" * size, Killing()]


def say(item: int) -> str:
    os.write(1, b"a library says something on standard output\n")
    return "x" * item


def heeded(_: int) -> tuple[bool, tuple[int, int, int], int]:
    return signal.getsignal(signal.SIGINT) == signal.SIG_IGN, gc.get_threshold(), usable_cores()


def test_the_first_are_done_here_and_all_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "monotonic", count().__next__)
    monkeypatch.setattr(parallel, "SECONDS_ALONE", 6)
    found = list(map_in_order(place, range(20)))
    assert [item for item, _ in found] == list(range(20))
    assert [pid == os.getpid() for _, pid in found] == [True] * 5 + [False] * 15
    assert len({pid for _, pid in found[5:]}) == 2


def test_few_items_and_one_core_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_started", lambda *_: pytest.fail("processes were started"))
    assert list(map_in_order(str, [])) == []
    with monkeypatch.context() as patch:
        patch.setattr(parallel, "SECONDS_ALONE", 1000)
        assert list(map_in_order(str, range(3))) == ["0", "1", "2"]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert list(map_in_order(str, [0, None, 2])) == ["0", "None", "2"]


@pytest.mark.parametrize(("asked", "cores"), [("1", 1), ("3,1", 3), (" 2 ", 2)])
def test_as_many_cores_are_used_as_openmp_is_given(
    asked: str, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert usable_cores() == cores


def test_items_are_read_as_they_are_needed_and_processes_end_when_no_more_are() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    with closing(map_in_order(place, items())) as results:
        pids = {pid for _, (_, pid) in zip(range(4), results, strict=False)}
        assert len(read) <= 4 + 2 * AHEAD
    assert not any(map(_runs, pids))


def test_large_items_and_what_a_library_prints_get_through() -> None:
    sizes = [0, 3_000_000, 1, 200_000, 70_000]
    assert [len(text) for text in map_in_order(say, sizes)] == sizes


def test_an_error_is_the_callers() -> None:
    with pytest.raises(UserError, match="no threes") as error:
        list(map_in_order(refuse_three, range(9)))
    assert "in refuse_three" in error.value.__notes__[0]


@pytest.mark.parametrize("size", [0, 3_000_000])
def test_a_process_that_is_killed_is_told(size: int) -> None:
    with pytest.raises(RunError, match=r"was killed.*OMP_NUM_THREADS=1"):
        list(map_in_order(die, [size] * 9))


def test_a_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(RunError, match=r"can be started \(No such file"):
        list(map_in_order(str, range(9)))


def test_ctrl_c_and_the_garbage_collector_are_the_callers_matter() -> None:
    assert list(map_in_order(heeded, [0])) == [(True, gc.get_threshold(), 1)]


def test_none_outlives_a_caller_that_is_killed() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from endeavour.data import parallel\nfrom test_parallel import place\nparallel.SECONDS_ALONE = 0\n"
        "for _, pid in parallel.map_in_order(place, range(1000)):\n"
        "    print(pid, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        pids = {int(next(caller.stdout)) for _ in range(6)}
        caller.kill()
    until(lambda: not any(map(_runs, pids)))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("kind", ["plain", "crawled"])
def test_data_are_the_same_on_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """With every step, with copies, and with symbols in the vocabularies."""
    settings: dict[str, Any] = settings_in(tmp_path)
    settings["corpus"] = write(tmp_path / "raw", train=DIRTY)
    if kind == "crawled":
        config = run_config(["cleaning=crawled"])
        settings["cleaning"] = config.cleaning
        settings["tokenizer"] = replace(settings["tokenizer"], placeholders=3, vocabulary_size=320)
        settings["augmentation"] = rates(
            upper_case=0.5, typos=0.5, no_final_punctuation=0.5, placeholders=0.5
        )
    with monkeypatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        at_once = prepared(**settings | {"folder": tmp_path / "at once"})
    in_shards(monkeypatch, 10, 3)
    assert contents(prepared(**settings)) == contents(at_once)


@pytest.mark.skipif(not Path("/proc/self/cmdline").is_file(), reason="looks for processes in /proc")
def test_what_was_done_before_a_process_was_killed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(tmp_path)
    whole = prepared(**settings | {"folder": tmp_path / "whole"})
    in_shards(monkeypatch, 10)

    def kill(what: str, done: int, _: int | None) -> None:
        if (what, done) == ("read and clean train", 30):
            for process in Path("/proc").glob("[0-9]*"):
                if f"\0from {parallel.__name__} import serve".encode() in _command(process):
                    os.kill(int(process.name), signal.SIGKILL)

    with pytest.raises(RunError, match="was killed"):
        prepared(**settings, progress=kill)
    (scratch,) = (settings["folder"] / "prepared").glob(".*.scratch")
    assert (scratch / "clean-00001.json").exists()
    assert contents(prepared(**settings)) == contents(whole)


def _command(process: Path) -> bytes:
    try:
        status = (process / "stat").read_text().rpartition(")")[2].split()
        return (process / "cmdline").read_bytes() if int(status[1]) == os.getpid() else b""
    except OSError:
        return b""
