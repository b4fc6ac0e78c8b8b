"""Work on several processes gives what one gives, in order, and ends with its caller."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_preparing import DIRTY, contents, in_shards, settings_in, write

from endeavour.config import load_config
from endeavour.data import parallel
from endeavour.data.augmentation import AugmentationConfig
from endeavour.data.parallel import AHEAD, map_in_order
from endeavour.data.preparing import prepare_data
from endeavour.data.tokenizer import TokenizerConfig
from endeavour.errors import UserError
from endeavour.runs.config import RunConfig


@pytest.fixture(autouse=True)
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loky.cpu_count", lambda: 2)


def test_the_first_are_done_here_and_all_come_in_order() -> None:
    def where(item: int) -> tuple[int, int]:
        time.sleep(0.02 * (item % 3))
        return item, os.getpid()

    found = list(map_in_order(where, range(20), alone=5))
    assert [item for item, _ in found] == list(range(20))
    assert [pid == os.getpid() for _, pid in found] == [True] * 5 + [False] * 15
    assert 1 <= len({pid for _, pid in found[5:]}) <= 2


def test_few_items_and_one_core_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_started", lambda *_: pytest.fail("processes were started"))
    assert list(map_in_order(str, range(3), alone=3)) == ["0", "1", "2"]
    monkeypatch.setattr("loky.cpu_count", lambda: 1)
    assert list(map_in_order(str, range(3), alone=0)) == ["0", "1", "2"]


def test_items_are_read_as_they_are_needed() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    results = map_in_order(str, items(), alone=0)
    assert next(results) == "0"
    assert len(read) <= 2 * AHEAD + 1
    results.close()  # pyright: ignore[reportAttributeAccessIssue]


def test_an_error_is_the_callers() -> None:
    def refuse(item: int) -> int:
        if item == 3:
            raise UserError("no threes")
        return item

    with pytest.raises(UserError, match="no threes"):
        list(map_in_order(refuse, range(9), alone=0))


def test_a_process_that_is_killed_is_told() -> None:
    def die(_: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(UserError, match=r"was killed.*LOKY_MAX_CPU_COUNT=1"):
        list(map_in_order(die, range(9), alone=0))


def test_ctrl_c_and_the_garbage_collector_are_the_callers_matter() -> None:
    def settings(_: int) -> tuple[bool, tuple[int, int, int]]:
        return signal.getsignal(signal.SIGINT) == signal.SIG_IGN, gc.get_threshold()

    assert list(map_in_order(settings, [0], alone=0)) == [(True, gc.get_threshold())]


def test_none_outlives_a_caller_that_is_killed() -> None:
    code = (
        "import os, sys, time\nimport loky\nfrom endeavour.data.parallel import map_in_order\n"
        "loky.cpu_count = lambda: 2\n"
        "for pid in map_in_order(lambda _: (time.sleep(0.2), os.getpid())[1], range(1000), alone=0):\n"
        "    print(pid, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        pids = {int(next(caller.stdout)) for _ in range(6)}
        caller.kill()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and any(map(_runs, pids)):
        time.sleep(0.1)
    assert not any(map(_runs, pids))


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
    """With every step, with copies, and with tags and symbols in the vocabularies."""
    settings: dict[str, Any] = settings_in(tmp_path)
    settings["corpus"] = write(tmp_path / "raw", train=DIRTY)
    if kind == "crawled":
        config = load_config("train", RunConfig, ["cleaning=crawled"])
        settings["cleaning"] = config.cleaning
        settings["tokenizer"] = TokenizerConfig(
            **vars(settings["tokenizer"]) | {"placeholders": 3, "vocabulary_size": 320}
        )
        rates = {"upper_case": 0.5, "title_case": 0.0, "typos": 0.5, "no_final_punctuation": 0.5}
        settings["augmentation"] = AugmentationConfig(seed=1, no_umlauts=0.0, placeholders=0.5, **rates)
    at_once = prepare_data(**settings | {"folder": tmp_path / "at once"})
    in_shards(monkeypatch, 10, 3)
    assert contents(prepare_data(**settings)) == contents(at_once)
