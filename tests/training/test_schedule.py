"""The learning rate of every update, against the papers' formulas."""

import itertools
import math
from dataclasses import replace
from typing import Any, cast

import pytest

from configs import run_config
from endeavour.training.config import TrainingConfig
from endeavour.training.schedule import learning_rate

PEAK, FINAL, END = 1e-3, 1e-5, 60


def settings_of(schedule: str, warmup: int) -> TrainingConfig:
    return replace(
        run_config([]).training,
        schedule=cast(Any, schedule),
        learning_rate=PEAK,
        final_learning_rate=FINAL if schedule == "cosine" else 0.0,
        warmup_updates=warmup,
        max_updates=END,
    )


def rates(schedule: str, warmup: int) -> list[float]:
    """Of updates 1, 2 … to beyond the end."""
    settings = settings_of(schedule, warmup)
    return [learning_rate(update, settings) for update in range(1, END + 20)]


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine"])
@pytest.mark.parametrize("warmup", [0, 1, 2, 7, 59])
def test_no_update_is_above_the_peak_which_is_that_of_the_last_update_of_the_warmup(
    schedule: str, warmup: int
) -> None:
    found = rates(schedule, warmup)
    rising = found[: max(warmup, 1)]
    assert max(found) <= PEAK
    if warmup:
        assert rising == pytest.approx([PEAK * update / warmup for update in range(1, warmup + 1)])
        assert found.index(max(found)) == warmup - 1
    falling = found[max(warmup, 1) - 1 : END]
    assert all(later < earlier for earlier, later in itertools.pairwise(falling))


@pytest.mark.parametrize("warmup", [0, 1, 7, 59])
def test_each_rate_of_a_fall_is_the_formulas(warmup: int) -> None:
    for update, rate in list(enumerate(rates("inverse_sqrt", warmup), start=1))[max(warmup, 1) - 1 :]:
        assert rate == pytest.approx(PEAK * max(warmup, 1) ** 0.5 * update**-0.5)
    for update, rate in list(enumerate(rates("cosine", warmup), start=1))[max(warmup, 1) - 1 :]:
        angle = math.pi * min(update - warmup, END - warmup) / (END - warmup)
        assert rate == pytest.approx(PEAK * math.cos(angle / 2) ** 2 + FINAL * math.sin(angle / 2) ** 2)


def test_a_cosine_without_a_fall_ends_at_once() -> None:
    """Warmup up to the end, and a warmup that would go on beyond it."""
    assert rates("cosine", END)[END - 1 :][:2] == pytest.approx([PEAK, FINAL])
    assert rates("cosine", END + 5)[END + 4 :][:2] == pytest.approx([PEAK, FINAL])


def test_vaswani_formula_needs_no_end() -> None:
    """d^-1/2 · min(n^-1/2, n · w^-3/2) is this schedule with the peak (d · w)^-1/2."""
    settings = replace(
        settings_of("inverse_sqrt", 100), learning_rate=(512 * 100) ** -0.5, max_updates=None, max_epochs=1
    )
    for update in (1, 10, 100, 1000):
        rate = learning_rate(update, settings)
        assert rate == pytest.approx(512**-0.5 * min(update**-0.5, update * 100**-1.5))
