"""Positions follow their formulas, tables grow, and learned positions end."""

import pytest
import torch
from torch import Tensor

from endeavour.errors import UserError
from endeavour.model.positions import (
    FIRST_TABLE,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    rotate,
)


@pytest.mark.parametrize("kind", [SinusoidalPositions, RotaryPositions])
def test_a_table_grows_to_twice_what_was_asked_for_and_keeps_what_it_held(
    kind: type[SinusoidalPositions | RotaryPositions],
) -> None:
    table, length = kind(6), FIRST_TABLE

    def sizes() -> set[int]:
        return {len(buffer) for buffer in table.buffers()}

    def values(start: int, count: int) -> Tensor:
        found = table(start, count)
        return found if isinstance(found, Tensor) else torch.cat(found, dim=-1)

    assert sizes() == {length}
    first = values(0, length)
    values(length - 1, 1)
    assert sizes() == {length}
    later = values(5, length)
    assert sizes() == {2 * (length + 5)}
    torch.testing.assert_close(values(0, length), first)
    torch.testing.assert_close(values(length + 4, 1), later[-1:])
    table.to(torch.bfloat16)
    table(0, 3 * (length + 5))
    assert {buffer.dtype for buffer in table.buffers()} == {torch.bfloat16}, "what grows stays of its type"
    assert not table.state_dict()


def test_angles_are_rounded_once() -> None:
    """Position × frequency in double precision, then float32: so they are the same on every machine."""
    places = range(FIRST_TABLE)
    angles = [[place / 10_000 ** (2 * pair / 6) for pair in range(3)] for place in places]
    rounded = torch.tensor(angles, dtype=torch.float64).float()
    sinusoidal, rotary = SinusoidalPositions(6)(0, FIRST_TABLE), RotaryPositions(6)(0, FIRST_TABLE)
    for found in (sinusoidal[:, 0::2], -rotary.sine[:, :3], rotary.sine[:, 3:]):
        torch.testing.assert_close(found, rounded.sin(), rtol=0, atol=1e-7)
    for found in (sinusoidal[:, 1::2], *rotary.cosine.chunk(2, dim=-1)):
        torch.testing.assert_close(found, rounded.cos(), rtol=0, atol=1e-7)


def test_rotations_are_by_the_angles_of_the_paper() -> None:
    torch.manual_seed(0)
    heads = torch.randn(2, 3, 4, 6)
    turned = rotate(heads, RotaryPositions(6)(7, 4))
    for place in range(4):
        for pair in range(3):
            angle = torch.tensor((7 + place) / 10_000 ** (2 * pair / 6))
            before = torch.complex(heads[:, :, place, pair], heads[:, :, place, pair + 3])
            after = torch.complex(turned[:, :, place, pair], turned[:, :, place, pair + 3])
            torch.testing.assert_close(after, before * torch.polar(torch.ones(()), angle))
    assert rotate(heads.bfloat16(), RotaryPositions(6)(0, 4)).dtype == torch.bfloat16


def test_tables_that_grew_in_a_search_serve_training() -> None:
    rotary, sinusoidal = RotaryPositions(8), SinusoidalPositions(8)
    with torch.inference_mode():
        rotary(FIRST_TABLE, 1)
        sinusoidal(FIRST_TABLE, 1)
    states = torch.randn(5, 8, requires_grad=True)
    (rotate(states, rotary(0, 5)) * sinusoidal(0, 5)).sum().backward()
    assert states.grad is not None


def test_learned_positions_are_those_asked_for() -> None:
    positions = LearnedPositions(6, 9)
    torch.manual_seed(0)
    positions.reset_parameters()
    assert torch.equal(positions(2, 7), positions.weight[2:9])
    assert torch.equal(positions(8, 1), positions.weight[8:])


def test_learned_positions_refuse_a_sentence_that_is_too_long() -> None:
    positions = LearnedPositions(4, max_length=6)
    positions.reset_parameters()
    assert positions(2, 4).shape == (4, 4)
    with pytest.raises(UserError, match=r"7 tokens .*model\.max_length=6"):
        positions(2, 5)
