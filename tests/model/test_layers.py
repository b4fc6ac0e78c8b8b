"""Dropout's statistics and reproducibility, the activations, where the norm stands."""

import pytest
import torch
from torch import nn
from torch.nn import functional

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
def test_dropout_keeps_the_expectation_and_the_share(probability: float) -> None:
    torch.manual_seed(0)
    dropped = Dropout(probability)(torch.ones(1001, 999))  # no multiple of the eight elements a draw serves
    effective = round(probability * 256) / 256
    assert set(dropped.unique().tolist()) == {0.0, torch.tensor(1 / (1 - effective)).item()}
    assert (dropped == 0).float().mean().item() == pytest.approx(effective, abs=0.002)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.003)


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


def test_the_norm_stands_before_the_sublayer_or_after_the_sum() -> None:
    torch.manual_seed(0)
    states, sublayer = torch.randn(2, 8), nn.Linear(8, 8)
    before = Residual(width=8, norm="pre", dropout=0.0)
    torch.testing.assert_close(before(states, sublayer), states + sublayer(before.norm(states)))
    after = Residual(width=8, norm="post", dropout=0.0)
    torch.testing.assert_close(after(states, sublayer), after.norm(states + sublayer(states)))
