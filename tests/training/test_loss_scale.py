"""fp16: the scale of the loss, what it saves from becoming zero, and that nothing of it is lost between two starts."""

import json
import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from several import assert_near, in_processes, losses, short_run, weights
from starting import ALONE, CPU
from torch import nn

from endeavour.data.dataset import ParallelDataset
from endeavour.data.tokenizer import Tokenizer
from endeavour.training import loss_scale
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.distributed import Ranks
from endeavour.training.loss_scale import LossScale
from endeavour.training.optimizer import NonFiniteGuard

FINITE, OVERFLOW = torch.tensor(True), torch.tensor(False)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale grows after five updates instead of 2,000."""
    monkeypatch.setattr(loss_scale, "GROWTH_INTERVAL", 5)


@pytest.fixture
def begins_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the scale that new runs begin with."""

    def set_first(value: float) -> None:
        monkeypatch.setattr("endeavour.training.loop.LossScale", partial(first_or_saved, value))

    return set_first


def first_or_saved(first: float, value: float, in_a_row: int, device: torch.device) -> LossScale:
    fresh = (value, in_a_row) == (loss_scale.FIRST, 0)
    return LossScale(first if fresh else value, in_a_row, device)


def after(updates: Iterable[torch.Tensor], value: float = 8.0, in_a_row: int = 0) -> tuple[float, int]:
    scale = LossScale(value, in_a_row, CPU)
    for finite in updates:
        scale.adapt(finite)
    return scale.state()


@pytest.mark.usefixtures("impatient")
def test_it_is_halved_by_an_overflow_and_doubled_after_many_updates_without() -> None:
    assert after([FINITE] * 4) == (8.0, 4)
    assert after([FINITE] * 5) == (16.0, 0)
    assert after([FINITE] * 10) == (32.0, 0)
    assert after([FINITE], in_a_row=4) == (16.0, 0)
    assert after([OVERFLOW], in_a_row=4) == (4.0, 0)
    assert after([*[FINITE] * 4, OVERFLOW, *[FINITE] * 4]) == (4.0, 4)


def test_it_never_falls_below_one_and_stays_finite() -> None:
    assert after([OVERFLOW] * 9) == (1.0, 0)
    value, _ = after([FINITE] * loss_scale.GROWTH_INTERVAL, value=2.0**127)
    assert math.isfinite(value)


def test_only_what_overflows_at_the_smallest_scale_counts_as_diverged() -> None:
    weight = nn.Parameter(torch.zeros(1))
    guard = NonFiniteGuard(0, CPU, loss_scale=LossScale(4.0, 0, CPU))
    counted = []
    for norm in (math.inf, math.nan, math.inf, math.nan, 1.0, math.inf):
        guard.step(torch.optim.SGD([weight]), torch.tensor(norm))
        counted.append(guard.skipped_in_a_row())
    assert counted == [(0, 0), (0, 0), (1, 1), (2, 2), (0, 2), (1, 2)]


def test_gradients_are_divided_by_it_without_rounding() -> None:
    weight, unused = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    weight.grad = torch.tensor([1.0, 3.0, 1e-7]) * 1024
    LossScale(1024.0, 0, CPU).unscale([weight, unused])
    assert torch.equal(weight.grad, torch.tensor([1.0, 3.0, 1e-7]))
    assert unused.grad is None


@pytest.mark.usefixtures("impatient")
def test_a_run_in_fp16_is_the_one_in_fp32_but_for_rounding(
    tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer, begins_with: Callable[[float], None]
) -> None:
    begins_with(256.0)
    short_run(tmp_path / "exact", uneven_data, tokenizer)
    short_run(tmp_path / "fp16", uneven_data, tokenizer, ALONE, precision=torch.float16)
    exact, rounded = losses(tmp_path / "exact"), losses(tmp_path / "fp16")
    assert exact != rounded
    for one, other in zip(exact, rounded, strict=True):
        assert other == pytest.approx(one, rel=0.02)
    assert state(tmp_path / "fp16")["loss_scale"] == [1024.0, 2]


def test_it_recovers_from_a_scale_that_is_too_large(
    tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer, begins_with: Callable[[float], None]
) -> None:
    """Updates that overflow are skipped, until none does; none of them counts as diverged."""
    begins_with(2.0**20)
    overrides = ("training.max_skipped_updates=1",)
    short_run(tmp_path / "run", uneven_data, tokenizer, ALONE, *overrides, precision=torch.float16)
    skipped = [math.isnan(loss) for loss, _ in losses(tmp_path / "run")]
    count = skipped.count(True)
    assert 0 < count < len(skipped)
    assert skipped == sorted(skipped, reverse=True)
    assert state(tmp_path / "run")["loss_scale"][0] == 2.0 ** (20 - count)
    assert weights(tmp_path / "run").isfinite().all()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("cut_at", [3, 5, 8])
def test_a_run_that_was_cut_off_goes_on_with_its_scale_to_the_bit(
    cut_at: int,
    tmp_path: Path,
    uneven_data: ParallelDataset,
    tokenizer: Tokenizer,
    begins_with: Callable[[float], None],
) -> None:
    """While it still falls, and while it grows."""
    begins_with(2.0**18)

    class PowerCut(BaseException):
        pass

    def cut(update: int) -> None:
        if update == cut_at:
            raise PowerCut

    def start(name: str, after: Callable[[int], None] = lambda update: None) -> None:
        overrides = ("training.validate_every=2",)
        short_run(
            tmp_path / name,
            uneven_data,
            tokenizer,
            ALONE,
            *overrides,
            after=after,
            dropout=0.1,
            precision=torch.float16,
        )

    start("whole")
    with pytest.raises(PowerCut):
        start("cut", cut)
    start("cut")
    assert torch.equal(weights(tmp_path / "cut"), weights(tmp_path / "whole"))
    assert state(tmp_path / "cut")["loss_scale"] == state(tmp_path / "whole")["loss_scale"]
    assert math.isnan(losses(tmp_path / "whole")[0][0])


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("sharded", ["false", "true"])
def test_two_processes_have_the_scale_of_one(
    sharded: str,
    tmp_path: Path,
    uneven_data: ParallelDataset,
    tokenizer: Tokenizer,
    begins_with: Callable[[float], None],
) -> None:
    """Although only one of them may see an overflow."""
    begins_with(2.0**18)
    short_run(tmp_path / "one", uneven_data, tokenizer, ALONE, precision=torch.float16)

    def work(ranks: Ranks) -> None:
        overrides = (f"training.sharded={sharded}",)
        short_run(tmp_path / "two", uneven_data, tokenizer, ranks, *overrides, precision=torch.float16)

    assert in_processes(2, work) == [0, 0]
    assert math.isnan(losses(tmp_path / "one")[0][0])
    assert state(tmp_path / "two")["loss_scale"] == state(tmp_path / "one")["loss_scale"]
    assert_near(weights(tmp_path / "two"), weights(tmp_path / "one"))


def state(folder: Path) -> dict[str, Any]:
    """What the newest checkpoint of a run says of it."""
    return json.loads((checkpoints_in(folder)[-1] / "state.json").read_text())["state"]
