"""Whether a run was still improving: a rule on its log that noise does not deceive, and a hint that is of use."""

import random
from dataclasses import replace
from typing import Any

import pytest

from configs import run_config
from endeavour.pipeline.improvement import Improvement, improvement_line, improvement_of
from endeavour.training.state import TrainState


def log_of(values: list[float], metric: str = "bleu") -> list[dict[str, Any]]:
    """Validations among other lines."""
    lines = [
        {"kind": "validation", "update": 100 * row, metric: value} for row, value in enumerate(values, 1)
    ]
    return [line for one in lines for line in ({"kind": "train", "update": one["update"], "loss": 9.0}, one)]


def still(values: list[float], metric: str = "bleu") -> bool:
    improvement = improvement_of(log_of(values, metric), metric)
    assert improvement is not None
    return improvement.still


@pytest.mark.parametrize("count", [4, 5, 8, 12, 30, 100])
def test_what_rises_to_the_end_is_still_improving_and_what_is_level_is_not(count: int) -> None:
    rising = [10 + 20 * row / count for row in range(count)]
    assert still(rising)
    assert not still([min(value, 18) for value in rising])
    assert not still(rising[::-1])


@pytest.mark.parametrize("count", [4, 12, 30])
def test_a_loss_improves_as_it_falls(count: int) -> None:
    rising = [2 + row / count for row in range(count)]
    assert still(rising[::-1], "loss")
    assert not still(rising, "loss")
    assert not still([2.4] * count, "loss")


def test_a_model_that_does_not_yet_translate_is_judged_by_its_loss() -> None:
    losses = [6.1, 5.7, 5.5, 5.2, 4.9, 4.6]
    log = [{"kind": "validation", "bleu": 0.1 * (i % 2), "loss": loss} for i, loss in enumerate(losses)]
    improvement = improvement_of(log, "bleu")
    assert improvement is not None
    assert (improvement.metric, improvement.still) == ("loss", True)


def test_fewer_than_four_validations_tell_nothing() -> None:
    assert improvement_of(log_of([1, 2, 3]), "bleu") is None
    assert improvement_of([], "bleu") is None


@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_noise_is_rarely_taken_for_improvement_and_does_not_hide_it(noise: float) -> None:
    level = rising = 0
    for seed in range(200):
        draw = random.Random(seed)
        errors = [draw.gauss(0, noise) for _ in range(24)]
        level += still([30 + error for error in errors])
        rising += still([30 + noise * row + row / 6 + error for row, error in enumerate(errors)])
    assert level <= 4
    assert rising >= 180


def test_the_limit_that_ended_the_training_is_the_one_to_raise() -> None:
    improvement = Improvement("bleu", gain=2.0, margin=0.5)
    settings = run_config().training
    assert "training.max_updates=3600" in improvement_line(improvement, TrainState(update=1800), settings)
    assert "learning rate" in improvement_line(improvement, TrainState(update=1800), settings)
    others = replace(
        settings, schedule="inverse_sqrt", max_updates=None, max_epochs=7, patience=4, max_minutes=1.5
    )
    for state, hint in (
        (TrainState(update=1800, epoch=7), "training.max_epochs=14"),
        (TrainState(update=1800, epoch=6, validations_without_gain=4), "training.patience=8"),
        (TrainState(update=1800, epoch=6, seconds=90.0), "training.max_minutes=3"),
    ):
        line = improvement_line(improvement, state, others)
        assert hint in line
        assert "learning rate" not in line
    level = improvement_line(Improvement("bleu", gain=0.2, margin=0.5), TrainState(update=1800), settings)
    assert "training." not in level
