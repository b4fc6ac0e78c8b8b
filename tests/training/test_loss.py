"""The fused loss: torch's in value and gradient, chunk by chunk, in any precision; it never waits for a device."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from endeavour.special import PAD
from endeavour.training import loss as module
from endeavour.training.loss import projected_loss


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("padding", ["none", "left out", "computed with"])
def test_equals_cross_entropy(smoothing: float, padding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in ("CPU_ROWS", "GPU_ROWS"):
        monkeypatch.setattr(module, rows, 5)  # several chunks, the last of them short
    torch.manual_seed(0)
    states = torch.randn(3, 6, 8, requires_grad=True)
    weight = torch.randn(11, 8, requires_grad=True)
    target = torch.randint(1, 11, (3, 6))
    if padding != "none":
        target[0, 4:] = PAD
        target[2, 1:] = PAD

    if padding == "computed with":  # as on a GPU
        rows, ids = states.flatten(0, 1), target.flatten()
        loss, nll = module._ProjectedLoss.apply(rows, weight, ids, smoothing)
    else:
        loss, nll = projected_loss(states, weight, target, label_smoothing=smoothing)
    (loss * 0.7).backward()
    ours = states.grad, weight.grad

    states.grad = weight.grad = None
    logits = (states @ weight.T).flatten(0, 1)
    options = {"ignore_index": PAD, "reduction": "sum"}
    expected = functional.cross_entropy(logits, target.flatten(), label_smoothing=smoothing, **options)
    (expected * 0.7).backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, functional.cross_entropy(logits, target.flatten(), **options))
    for mine, theirs in zip(ours, (states.grad, weight.grad), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("size", [1.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False])
def test_of_huge_logits_it_is_finite_and_right(size: float, dtype: torch.dtype, training: bool) -> None:
    states = torch.full((1, 2, 4), size, dtype=dtype, requires_grad=training)
    weight = torch.linspace(-1e3, 1e3, 20).view(5, 4)
    target = torch.tensor([[1, 4]])
    loss, nll = projected_loss(states, weight, target, label_smoothing=0.1)
    logits = (states.detach().float() @ weight.to(dtype).float().T)[0]
    for found, smoothing in ((loss, 0.1), (nll, 0.0)):
        expected = functional.cross_entropy(logits, target[0], label_smoothing=smoothing, reduction="sum")
        assert float(found.detach()) == pytest.approx(float(expected), rel=0.01)
    if training:
        loss.backward()
        assert states.grad is not None
        assert torch.isfinite(states.grad).all()


@pytest.mark.usefixtures("on_device")
def test_validation_computes_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    weight = torch.randn(7, 4, requires_grad=True)
    states, target = torch.randn(2, 3, 4), torch.randint(1, 7, (2, 3))
    expected, _ = projected_loss(states, weight, target, label_smoothing=0.1)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("the product of the states' gradient")

    monkeypatch.setattr(torch, "mm", refused)
    with torch.no_grad():
        loss, _ = projected_loss(states, weight, target, label_smoothing=0.1)
    assert float(loss) == float(expected.detach())
    with pytest.raises(AssertionError, match="gradient"):
        projected_loss(states, weight, target, label_smoothing=0.1)


def inputs(rows: int = 13, padded: bool = False, *, device: str = "cpu") -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    target = torch.randint(1, 11, (2, rows))
    if padded:
        target[0, -3:] = PAD
    states, weight = torch.randn(2, rows, 8), torch.randn(11, 8)
    return (
        states.to(device).requires_grad_(),
        weight.to(device).requires_grad_(),
        target.to(device),
    )


def chunks(monkeypatch: pytest.MonkeyPatch, states: Tensor, weight: Tensor, target: Tensor) -> list[int]:
    """Rows of each product of the states' gradient."""
    seen: list[int] = []
    plain = torch.mm

    def noting(one: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        if out is not None:
            seen.append(len(one))
        return plain(one, other, out=out)

    monkeypatch.setattr(torch, "mm", noting)
    loss, nll = projected_loss(states, weight, target, label_smoothing=0.1)
    assert not nll.requires_grad
    loss.backward()
    monkeypatch.setattr(torch, "mm", plain)
    return seen


def test_a_cpu_computes_with_no_padding_and_in_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CPU_ROWS", 10)
    assert chunks(monkeypatch, *inputs()) == [10, 10, 6]
    assert chunks(monkeypatch, *inputs(padded=True)) == [10, 10, 3]


def test_another_device_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of the device `meta` has no values: whoever looked at one would fail, where a GPU would wait."""
    monkeypatch.setattr(module, "GPU_ROWS", 20)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)  # which knows no such device
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    states, weight, target = inputs(padded=True, device="meta")
    assert chunks(monkeypatch, states, weight, target) == [20, 6]
    assert states.grad is not None
    assert weight.grad is not None
    with torch.no_grad():
        assert projected_loss(states, weight, target, label_smoothing=0.1)[0].device.type == "meta"


def test_everything_is_made_on_the_states_device_whatever_the_default_is() -> None:
    found: list[list[Tensor | None]] = []
    for default in ("cpu", "meta"):
        states, weight, target = inputs(padded=True)
        with torch.device(default):
            loss, nll = projected_loss(states, weight, target, label_smoothing=0.1)
            loss.backward()
        found.append([loss, nll, states.grad, weight.grad])
    for one, other in zip(*found, strict=True):
        assert one is not None
        assert other is not None
        assert torch.equal(one, other)


def test_without_padding_states_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Tensor] = []

    def noting(states: Tensor, *_: object) -> tuple[Tensor, Tensor]:
        given.append(states)
        return states.sum(), states.sum()

    monkeypatch.setattr(module._ProjectedLoss, "apply", noting)
    for padded in (False, True):
        states, weight, target = inputs(padded=padded)
        projected_loss(states, weight, target, label_smoothing=0.1)
        assert (given[-1].data_ptr() == states.data_ptr()) != padded
        assert len(given[-1]) == int((target != PAD).sum())


@pytest.mark.parametrize("gradients", [True, False])
def test_under_autocast_it_computes_in_its_type_and_answers_in_fp32(gradients: bool) -> None:
    states, weight, target = inputs()
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(gradients):
        cast = projected_loss(states, weight, target, label_smoothing=0.1)
    with torch.set_grad_enabled(gradients):
        by_hand = projected_loss(states.bfloat16(), weight, target, label_smoothing=0.1)
        exact = projected_loss(states, weight, target, label_smoothing=0.1)
    for found, expected, other in zip(cast, by_hand, exact, strict=True):
        assert found.dtype == torch.float32
        assert torch.equal(found, expected)
        assert not torch.equal(found, other)


def test_in_bf16_without_gradients_only_products_are_rounded() -> None:
    states, weight, target = inputs()
    with torch.no_grad():
        _, nll = projected_loss(states.bfloat16(), weight, target, label_smoothing=0.1)
        logits = (states.bfloat16() @ weight.bfloat16().T).float().flatten(0, 1)
    expected = functional.cross_entropy(logits, target.flatten(), reduction="sum")
    torch.testing.assert_close(nll, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("gradients", [True, False])
def test_chunks_add_up(dtype: torch.dtype, gradients: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[Tensor]] = []
    for rows in (100, 7):
        monkeypatch.setattr(module, "CPU_ROWS", rows)
        states, weight, target = inputs(padded=True)
        with torch.set_grad_enabled(gradients):
            loss, nll = projected_loss(states.to(dtype), weight, target, label_smoothing=0.1)
        if gradients:
            loss.backward()
        found.append(
            [loss.detach(), nll, *(tensor.grad for tensor in (states, weight) if tensor.grad is not None)]
        )
    assert len(found[0]) == len(found[1]) == (4 if gradients else 2)
    for whole, sum_ in zip(*found, strict=True):
        torch.testing.assert_close(sum_, whole, rtol=1e-5, atol=1e-5 if dtype == torch.float32 else 2e-2)


def test_in_bf16_loss_and_gradients_are_those_of_fp32_but_for_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CPU_ROWS", 4)
    found: list[list[Tensor | None]] = []
    for dtype in (torch.float32, torch.bfloat16):
        states, weight, target = inputs(padded=True)
        loss, nll = projected_loss(states.to(dtype), weight.to(dtype), target, label_smoothing=0.1)
        loss.backward()
        found.append([loss, nll, states.grad, weight.grad])
    for exact, rounded in zip(*found, strict=True):
        torch.testing.assert_close(rounded, exact, rtol=2e-3 if exact.ndim == 0 else 0.05, atol=0.05)


def test_of_tokens_with_no_probability_each_has_its_own_loss() -> None:
    """Beyond 87 nats, where the probability is 0 in float32, and just below."""
    weight = torch.eye(4)
    states = torch.tensor([[[0.0, 0, 0, 90], [0, 0, 0, 500.0], [0, 0, 0, 60], [0, 0, 3, 2000]]])
    target = torch.tensor([[1, 2, 1, 2]])
    for gradients in (True, False):
        given = states.clone().requires_grad_(gradients)
        for smoothing in (0.0, 0.1):
            loss, nll = projected_loss(given, weight, target, label_smoothing=smoothing)
            assert nll.item() == pytest.approx(90 + 500 + 60 + 1997, rel=1e-6)
            expected = functional.cross_entropy(
                states[0], target[0], label_smoothing=smoothing, reduction="sum"
            )
            assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
