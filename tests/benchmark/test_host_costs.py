"""Waiting for a GPU and compiling are counted, with what caused them."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from endeavour.benchmark import contenders, training
from endeavour.benchmark.host_costs import WAITED, compiled_so_far, noted_waits
from endeavour.benchmark.task import Task


def test_each_wait_is_counted_by_the_line_that_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[Any] = []
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    shown = warnings.showwarning
    with noted_waits(torch.device("cuda", 0)) as waits:
        for _ in range(3):
            warnings.warn(WAITED, stacklevel=1)  # as torch does, from the line that reads a value
        warnings.warn(f"{WAITED} (somewhere)", stacklevel=1)
        warnings.warn("something else", stacklevel=1)
    assert sorted(waits.values()) == [1, 3]
    assert all(place.startswith("benchmark/test_host_costs.py:") for place in waits)
    assert modes == ["warn", 0]
    assert warnings.showwarning is shown


def test_the_mode_is_put_back_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[Any] = []
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    with pytest.raises(KeyError), noted_waits(torch.device("cuda")):
        raise KeyError
    assert modes == ["warn", 2]


def test_a_cpu_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cuda, "set_sync_debug_mode")
    with noted_waits(torch.device("cpu")) as waits:
        torch.ones(2).sum().item()
    assert not waits


@pytest.mark.filterwarnings("ignore")  # torch.compile warns of its own insides
def test_graphs_and_why_they_were_compiled_again_are_counted() -> None:
    before = compiled_so_far()

    def double(values: torch.Tensor) -> torch.Tensor:
        return 2 * values

    compiled = torch.compile(double, backend="eager", dynamic=True)
    for dtype in (torch.float32, torch.float64, torch.float32):
        compiled(torch.ones(3, dtype=dtype))
    after = compiled_so_far()
    assert after["graphs"] - before["graphs"] == 2
    assert after["graph_breaks"] == before["graph_breaks"]
    assert len(after["recompilations"]) - len(before["recompilations"]) == 1
    assert "dtype" in after["recompilations"][-1]


def test_a_row_has_the_costs_of_a_process_of_its_own(
    make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the task's batches are trained on there, the first of them before waits are counted."""
    trained: list[int] = []
    run = training.run_updates

    def noting(contender: Any, dataset: Any, rows: Any) -> None:
        trained.append(len(rows))
        run(contender, dataset, rows)

    monkeypatch.setattr(training, "run_updates", noting)
    monkeypatch.setattr(training, "in_fresh_process", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(training, "peak_memory", lambda: 7)
    monkeypatch.setattr(training, "keep_memory", lambda: None)
    task = make_task("bench.repeats=1", updates=4)
    (row,) = training.measure_training(task, ["endeavour fp32"], notes=[], done=lambda: None)
    assert trained == [1, 3, task.settings.warmup_updates, 4]
    assert row["first_update_seconds"] > 0
    counts = training.count(task.dataset(), task.rows)
    assert [row[key] for key in ("source_tokens", "target_tokens")] == list(counts.values())[:2]
    assert row["padding"] == 1 - (counts["source_tokens"] + counts["target_tokens"]) / counts["cells"]
    assert row["flop_per_update"] == training.flop_of(task, task.dataset()) / 4
    assert row["peak_memory"] == 7
    assert (row["waits_per_update"], row["waits"]) == (None, {})


def test_a_reference_that_fails_in_a_process_of_its_own_leaves_the_others_their_rows(
    make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    def alone(_train_once: object, name: str, _task: Task) -> dict[str, Any]:
        if name.startswith(failing):
            raise RuntimeError("CUDA error: no kernel\nmore lines")
        return {}

    monkeypatch.setattr(training, "in_fresh_process", alone)
    names, failing = ["endeavour fp32", "torch fp32"], "torch"
    notes: list[str] = []
    rows = training.measure_training(make_task(updates=2), names, notes=notes, done=lambda: None)
    assert [row["toolkit"] for row in rows] == ["endeavour"]
    assert notes == ["torch fp32: RuntimeError: CUDA error: no kernel"]
    failing = "endeavour"
    with pytest.raises(RuntimeError, match="no kernel"):
        training.measure_training(make_task(updates=2), names, notes=[], done=lambda: None)


def test_a_contender_that_is_slower_than_it_could_be_is_noted(
    make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "in_fresh_process", lambda *_: {})
    monkeypatch.setattr(contenders, "prepare_kernels", lambda device: "attention takes longer than it could")
    notes: list[str] = []
    names = ["endeavour fp32", "torch fp32"]
    rows = training.measure_training(make_task(updates=2), names, notes=notes, done=lambda: None)
    assert len(rows) == 2
    assert notes == ["endeavour fp32: attention takes longer than it could"]
