"""What each kind of position does beyond its formula, which test_model_exact.py checks."""

import pytest
import torch

from endeavour.errors import UserError
from endeavour.model.positions import (
    FIRST_TABLE,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    rotate,
)


def test_tables_grow_without_changing() -> None:
    sinusoidal, rotary = SinusoidalPositions(8), RotaryPositions(8)
    short, short_rotation = sinusoidal(0, FIRST_TABLE), rotary(0, FIRST_TABLE)
    torch.testing.assert_close(sinusoidal(0, FIRST_TABLE + 1)[:-1], short)
    torch.testing.assert_close(rotary(0, FIRST_TABLE + 1).cosine[:-1], short_rotation.cosine)
    torch.testing.assert_close(rotary(FIRST_TABLE, 1).sine, rotary(0, FIRST_TABLE + 1).sine[-1:])
    assert not sinusoidal.state_dict()
    assert not rotary.state_dict()


def test_tables_that_grew_in_a_search_serve_training() -> None:
    rotary, sinusoidal = RotaryPositions(8), SinusoidalPositions(8)
    with torch.inference_mode():
        rotary(FIRST_TABLE, 1)
        sinusoidal(FIRST_TABLE, 1)
    states = torch.randn(5, 8, requires_grad=True)
    (rotate(states, rotary(0, 5)) * sinusoidal(0, 5)).sum().backward()
    assert states.grad is not None


def test_learned_positions_refuse_a_sentence_that_is_too_long() -> None:
    positions = LearnedPositions(4, max_length=6)
    positions.reset_parameters()
    assert positions(2, 4).shape == (4, 4)
    with pytest.raises(UserError, match=r"7 tokens .*model\.max_length=6"):
        positions(2, 5)
