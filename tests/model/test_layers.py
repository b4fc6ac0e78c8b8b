"""Dropout's statistics and reproducibility, the activations, fresh weights, where the norm stands."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from endeavour.model import layers
from endeavour.model.layers import Dropout, FeedForward, Residual
from endeavour.native import functions
from kernels import needs_kernels


@pytest.fixture(params=[pytest.param("kernel", marks=needs_kernels), "torch"])
def dropping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel and without."""
    if request.param == "torch":
        monkeypatch.setattr(functions, "takes", lambda _: False)


@pytest.mark.usefixtures("dropping")
@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_keeps_the_type_the_share_and_the_expectation(probability: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    # No multiple of the eight elements that a draw serves.
    dropped = Dropout(probability)(torch.ones(1001, 999, dtype=dtype))
    assert dropped.dtype == dtype
    effective = round(probability * 256) / 256
    survivor = torch.tensor(1 / (1 - effective), dtype=dtype).item()
    assert set(dropped.unique().tolist()) == {0.0, survivor}
    assert (dropped == 0).float().mean().item() == pytest.approx(effective, abs=0.002)


def test_of_a_probability_next_to_one_something_survives() -> None:
    torch.manual_seed(0)
    assert 0 < (Dropout(0.9999)(torch.ones(100_000)) != 0).sum() < 1000


@pytest.mark.usefixtures("dropping")
def test_dropout_draws_each_element_on_its_own() -> None:
    torch.manual_seed(0)
    dropped = (Dropout(0.5)(torch.ones(800_003)) == 0).double()
    centred = dropped - dropped.mean()
    for distance in (1, 2, 4, 7, 8, 16, 256, 1024, 4096):
        correlation = (centred[distance:] * centred[:-distance]).mean() / centred.square().mean()
        assert abs(correlation.item()) < 0.006


@pytest.mark.usefixtures("dropping")
def test_two_calls_have_nothing_in_common() -> None:
    torch.manual_seed(0)
    first, second = ((Dropout(0.5)(torch.ones(400_000)) == 0).double() - 0.5 for _ in range(2))
    for distance in (0, 1, 4, 1024):
        assert abs((first[distance:] * second[: len(second) - distance]).mean().item()) < 0.25 * 0.006


@pytest.mark.usefixtures("dropping")
def test_dropout_passes_the_gradient_of_kept_elements_only() -> None:
    torch.manual_seed(0)
    states = torch.randn(64, 33, requires_grad=True)
    dropped = Dropout(0.3)(states)
    dropped.backward(torch.ones_like(dropped))
    assert states.grad is not None
    torch.testing.assert_close(states.grad * states, dropped)


def test_dropout_is_the_identity_in_evaluation_and_at_zero() -> None:
    states = torch.randn(5, 7)
    assert Dropout(0.5).eval()(states) is states
    assert Dropout(0.0)(states) is states


@pytest.mark.usefixtures("dropping")
@pytest.mark.parametrize("probability", [0.001, 0.3])
def test_dropout_repeats_from_a_saved_generator_state(probability: float) -> None:
    dropout, states = Dropout(probability), torch.ones(10_000)
    saved = torch.get_rng_state()
    first, second = dropout(states), dropout(states)
    torch.set_rng_state(saved)
    assert torch.equal(dropout(states), first)
    assert torch.equal(dropout(states), second)
    assert not torch.equal(first, second)
    assert (first == 0).any()


@pytest.mark.parametrize("count", [1, 7, 8, 9, 800])
@pytest.mark.parametrize("by", [pytest.param("kernel", marks=needs_kernels), "torch"])
def test_dropout_draws_one_number_for_eight_elements_or_all(
    count: int, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more, so that what is drawn next is the same on every machine that has a compiler, and on every other."""
    if by == "torch":
        monkeypatch.setattr(functions, "takes", lambda _: False)
    torch.manual_seed(1)
    Dropout(0.3)(torch.ones(count))
    after = torch.get_rng_state()
    torch.manual_seed(1)
    torch.empty(1 if by == "kernel" else -(-count // 8), dtype=torch.int64).random_(-(2**63), None)
    assert torch.equal(torch.get_rng_state(), after)


def test_a_probability_too_small_for_bytes_is_torchs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def noting(states: Tensor, probability: float) -> Tensor:
        asked.append(probability)
        return states

    monkeypatch.setattr(layers.functional, "dropout", noting)
    for probability in (0.001, 0.5):
        Dropout(probability)(torch.ones(3))
    assert asked == [0.001]


def test_feed_forward_is_what_its_formula_says() -> None:
    torch.manual_seed(0)
    states = torch.randn(2, 3, 8)
    for activation, function in {
        "relu": torch.relu,
        "gelu": functional.gelu,
        "silu": functional.silu,
    }.items():
        block = FeedForward(width=8, feed_forward=12, activation=activation, dropout=0.0)
        expected = block.outer(function(block.inner(states)))
        torch.testing.assert_close(block(states), expected)
    gated = FeedForward(width=8, feed_forward=12, activation="swiglu", dropout=0.0)
    gate_weight, value_weight = gated.inner.weight.split(12)
    gate_bias, value_bias = gated.inner.bias.split(12)
    gate, value = states @ gate_weight.T + gate_bias, states @ value_weight.T + value_bias
    torch.testing.assert_close(gated(states), gated.outer(gate * torch.sigmoid(gate) * value))


@pytest.mark.parametrize("gradients", [True, False])
def test_relu_works_in_place_where_no_gradient_needs_what_was_there(gradients: bool) -> None:
    states = torch.tensor([-1.0, 2.0])
    given = states.clone().requires_grad_(gradients) * 1
    found = layers.ACTIVATIONS["relu"](given)
    assert found.tolist() == [0.0, 2.0]
    assert (found.data_ptr() == given.data_ptr()) != gradients


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_a_fresh_feed_forward_is_xaviers(activation: str) -> None:
    torch.manual_seed(0)
    block = FeedForward(width=200, feed_forward=300, activation=activation, dropout=0.0)
    nn.init.ones_(block.inner.bias)
    nn.init.ones_(block.outer.bias)
    block.reset_parameters()
    bound = (6 / 500) ** 0.5
    for weight in (*block.inner.weight.split(300), block.outer.weight):
        assert 0.99 * bound < weight.abs().max().item() <= bound
        assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)
    assert not block.inner.bias.any()
    assert not block.outer.bias.any()


def test_the_norm_stands_before_the_sublayer_or_after_the_sum() -> None:
    torch.manual_seed(0)
    states, sublayer = torch.randn(2, 8), nn.Linear(8, 8)
    before = Residual(width=8, norm="pre", dropout=0.0)
    torch.testing.assert_close(before(states, sublayer), states + sublayer(before.norm(states)))
    after = Residual(width=8, norm="post", dropout=0.0)
    torch.testing.assert_close(after(states, sublayer), after.norm(states + sublayer(states)))
