"""The metric log loses no line but those that it is asked to drop; its means, against sums taken by hand."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from four_pairs import ROWS, batch

from configs import run_config
from endeavour.data.batching import Batch
from endeavour.errors import RunError
from endeavour.runs.config import save_config
from endeavour.training import log as module
from endeavour.training.log import MetricLog, MetricWindow
from endeavour.training.step import StepResult
from endeavour.training.updates import Update


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_cutting_drops_later_lines_and_one_that_is_torn(tmp_path: Path) -> None:
    log = MetricLog(tmp_path / "log.jsonl")
    log.cut_after(3)
    assert not (tmp_path / "log.jsonl").exists()
    for update in range(1, 6):
        log.write("train", update, {"loss": update / 2})
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"kind": "tr')
    log.cut_after(3)
    assert [line["update"] for line in log.read()] == [1, 2, 3]
    assert (tmp_path / "log.jsonl").read_text().count("\n") == 3


def test_damaged_lines_are_left_out_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = MetricLog(path)
    for update in range(1, 6):
        log.write("train", update, {"loss": 0.5})
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:5] + b"\xff" + lines[1][6:]
    lines[2] = lines[2].replace(b'"update"', b'"updbte"')
    lines[3] = b"[]"
    path.write_bytes(b"\n".join(lines))
    log.cut_after(9)
    assert [line["update"] for line in log.read()] == [1, 5]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_is_named() -> None:
    with pytest.raises(RunError, match=r"/dev/full .*\n.*resumes"):
        MetricLog(Path("/dev/full")).write("train", 1, {"loss": 0.5})


def test_a_kill_while_the_log_is_cut_or_the_config_saved_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MetricLog(tmp_path / "log.jsonl")
    for update in range(1, 6):
        log.write("train", update, {"loss": 0.5})
    (tmp_path / "config.yaml").write_text("name: old")
    config = run_config([])
    monkeypatch.setattr("os.fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        log.cut_after(3)
    with pytest.raises(KeyboardInterrupt):
        save_config(config, tmp_path / "config.yaml")
    assert len(log.read()) == 5
    assert (tmp_path / "config.yaml").read_text() == "name: old"


class Alone:
    """Stands for the processes of a run, `count` with the same sums."""

    def __init__(self, count: int = 1) -> None:
        self.count = count

    def __getattr__(self, name: str) -> Any:
        return lambda values: values * self.count


def update(*batches: Batch, tokens: int) -> Update:
    return Update(list(batches), tokens, 0, 0, 0)


def add(window: MetricWindow, loss: float, nll: float, norm: float, one: Update) -> None:
    window.add(one, StepResult(*map(torch.tensor, (loss, nll, norm))))


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_a_window_gives_the_means_of_the_updates_that_were_made(resumed: bool, count: int) -> None:
    window = MetricWindow()
    add(window, 10.0, 8.0, 1.0, update(batch(ROWS[:2]), tokens=4))
    add(window, math.nan, math.nan, math.inf, update(batch(ROWS[2:]), batch(ROWS[:1]), tokens=100))
    if resumed:
        saved = window.state(Alone(count))  # type: ignore[arg-type]
        assert saved["updates"] == 2
        assert saved["tokens"] == 104
        window = MetricWindow(saved)
    add(window, 20.0, 4.0, 4.0, update(batch(ROWS[1:2]), tokens=6))
    found = window.close(Alone(count), epoch=3, rate=0.5, seconds=9.0)  # type: ignore[arg-type]
    cells = [one.padding for one in (batch(ROWS[:2]), batch(ROWS[2:]), batch(ROWS[:1]), batch(ROWS[1:2]))]
    assert found.pop("tokens_per_second") > 0
    assert found == pytest.approx(
        {
            "epoch": 3,
            "loss": 30.0 * count / 10,
            "perplexity": math.exp(12.0 * count / 10),
            "learning_rate": 0.5,
            "gradient_norm": 2.5,
            "skipped": 1,
            "padding": sum(padding for padding, _ in cells) / sum(all_ for _, all_ in cells),
            "seconds": 9.0,
        }
    )


def test_a_window_of_nothing_but_skipped_updates_has_no_means() -> None:
    window = MetricWindow()
    add(window, math.nan, 1.0, math.inf, update(batch(ROWS), tokens=4))
    found = window.close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert math.isnan(found["loss"])
    assert math.isnan(found["gradient_norm"])
    assert found["skipped"] == 1
    empty = MetricWindow().close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert (empty["skipped"], empty["padding"], empty["tokens_per_second"]) == (0, 0.0, 0.0)


def test_a_perplexity_beyond_all_numbers_is_a_number() -> None:
    window = MetricWindow()
    add(window, 1.0, 4e6, 1.0, update(batch(ROWS), tokens=1))
    found = window.close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert found["perplexity"] == math.exp(700.0)


def test_the_speed_counts_the_time_before_a_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    # Not in `time` itself: threads of other tests would wait by that clock.
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    window = MetricWindow()
    add(window, 1.0, 1.0, 1.0, update(batch(ROWS), tokens=30))
    now = 104.0
    saved = window.state(Alone())  # type: ignore[arg-type]
    assert saved["seconds"] == 4.0
    now = 900.0
    window = MetricWindow(saved)
    add(window, 1.0, 1.0, math.inf, update(batch(ROWS), tokens=50))
    now = 906.0
    found = window.close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert found["tokens_per_second"] == pytest.approx(80 / 10)
    window = MetricWindow()
    add(window, 1.0, 1.0, 1.0, update(batch(ROWS), tokens=7))
    now = 906.25
    found = window.close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert found["tokens_per_second"] == pytest.approx(28)
