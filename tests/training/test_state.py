"""The state of a run: its place in the data, and the best of its validations."""

import math

import pytest

from endeavour.training.state import TrainState
from endeavour.training.updates import Update


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_the_best_validations_are_kept_best_first_and_those_without_gain_counted(
    higher_is_better: bool,
) -> None:
    state = TrainState()
    course: list[tuple[list[int], int]] = []
    for number, metric in enumerate([3.0, 5.0, 4.0, 5.0, 1.0, 6.0], start=1):
        state.update = number * 10
        state.note_validation(
            metric if higher_is_better else -metric, higher_is_better=higher_is_better, keep=3
        )
        course.append(([kept for _, kept in state.best], state.validations_without_gain))
    assert course == [
        ([10], 0),
        ([20, 10], 0),
        ([20, 30, 10], 1),
        ([20, 40, 30], 2),  # as good is no gain, and the earlier stays the best
        ([20, 40, 30], 3),
        ([60, 20, 40], 0),
    ]
    assert [abs(metric) for metric, _ in state.best] == [6.0, 5.0, 5.0]


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_metric_that_is_no_number_is_worse_than_any(higher_is_better: bool) -> None:
    state = TrainState()
    for number, metric in enumerate([math.nan, 3.0, math.nan, 5.0, 4.0], start=1):
        state.update = number
        state.note_validation(
            metric if higher_is_better else -metric, higher_is_better=higher_is_better, keep=4
        )
    assert [update for _, update in state.best] == [4, 5, 2, 1]
    assert state.validations_without_gain == 1


def test_a_state_advances_by_one_update_to_the_place_after_it() -> None:
    state = TrainState(update=3, epoch=1, position=9)
    state.advance(Update([], 20, epoch=2, position=0, stage_epoch=0))
    assert (state.update, state.epoch, state.position) == (4, 2, 0)


def test_of_none_to_be_kept_a_gain_is_still_one() -> None:
    state = TrainState(update=1)
    state.note_validation(1.0, higher_is_better=True, keep=0)
    assert (state.best, state.validations_without_gain) == ([], 0)
