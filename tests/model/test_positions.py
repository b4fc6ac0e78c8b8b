"""The formulas of the papers, and what each kind does beyond its table."""

import math

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


def test_sinusoids_follow_the_formula() -> None:
    vectors = SinusoidalPositions(8)(3, 20)
    for row, component in ((0, 0), (4, 3), (19, 6)):
        angle = (row + 3) / 10_000 ** (component // 2 * 2 / 8)
        expected = math.cos(angle) if component % 2 else math.sin(angle)
        assert vectors[row, component].item() == pytest.approx(expected, abs=1e-6)


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


def test_rotated_products_depend_on_the_distance_alone() -> None:
    torch.manual_seed(0)
    query, key, rotary = torch.randn(1, 8), torch.randn(1, 8), RotaryPositions(8)

    def product(query_position: int, key_position: int) -> float:
        turned = rotate(query, rotary(query_position, 1)) * rotate(key, rotary(key_position, 1))
        return turned.sum().item()

    assert product(7, 3) == pytest.approx(product(104, 100), abs=1e-4)
    assert product(7, 3) != pytest.approx(product(7, 4), abs=1e-2)
    assert product(5, 5) == pytest.approx((query * key).sum().item(), abs=1e-5)


def test_learned_positions_refuse_a_sentence_that_is_too_long() -> None:
    positions = LearnedPositions(4, max_length=6)
    positions.reset_parameters()
    assert positions(2, 4).shape == (4, 4)
    with pytest.raises(UserError, match=r"7 tokens .*model\.max_length=6"):
        positions(2, 5)
