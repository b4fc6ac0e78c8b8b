"""R-Drop's loss equals torch's, in value and gradient, and its two passes are those of one model."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from endeavour.native import functions
from endeavour.special import PAD
from endeavour.training import r_drop as module
from endeavour.training.loss import projected_loss
from endeavour.training.r_drop import r_drop_loss
from endeavour.training.step import LossModel
from random_models import fresh

VOCABULARY = 11


def inputs(device: str = "cpu") -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The states of two passes, a projection, and ids of which some are padding."""
    torch.manual_seed(0)
    target = torch.randint(1, VOCABULARY, (3, 6))
    target[0, 4:] = target[2, 1:] = PAD
    tensors = torch.randn(3, 6, 8), torch.randn(3, 6, 8), torch.randn(VOCABULARY, 8)
    first, second, weight = (tensor.to(device).requires_grad_() for tensor in tensors)
    return first, second, weight, target.to(device)


def by_hand(
    first: Tensor, second: Tensor, weight: Tensor, target: Tensor, *, smoothing: float, r_drop: float
) -> tuple[Tensor, Tensor]:
    """Loss and negative log-likelihood."""
    kept, ids = target.flatten() != PAD, target[target != PAD]
    passes = [(states.flatten(0, 1)[kept] @ weight.T).log_softmax(-1) for states in (first, second)]
    losses = [
        sum(functional.cross_entropy(logs, ids, reduction="sum", label_smoothing=share) for logs in passes)
        for share in (smoothing, 0.0)
    ]
    apart = sum(
        functional.kl_div(passes[1 - one], passes[one], log_target=True, reduction="sum") for one in range(2)
    )
    return losses[0] / 2 + r_drop * apart / 2, losses[1] / 2  # type: ignore[operator, return-value]


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("r_drop", [0.5, 3.0])
@pytest.mark.parametrize("padding", ["left out", "left out, by torch", "computed with"])
def test_equals_cross_entropies_and_divergences(
    smoothing: float, r_drop: float, padding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rows in ("CPU_ROWS", "GPU_ROWS"):
        monkeypatch.setattr(module, rows, 5)  # several chunks, the last of them short
    monkeypatch.setattr(module, "CACHED_ROWS", 2)
    if padding != "left out":
        monkeypatch.setattr(functions, "takes", lambda _: False)
    tensors = inputs(torch.get_default_device().type)
    first, second, weight, target = tensors
    if padding == "computed with":  # as on a GPU
        states = torch.stack((first.flatten(0, 1), second.flatten(0, 1)))
        loss, nll = module._RDropLoss.apply(states, weight, target.flatten(), smoothing, r_drop)
    else:
        loss, nll = r_drop_loss(first, second, weight, target, label_smoothing=smoothing, r_drop=r_drop)
    (loss * 0.7).backward()
    ours = [tensor.grad for tensor in tensors[:3]]
    for tensor in tensors[:3]:
        tensor.grad = None

    expected, expected_nll = by_hand(*tensors, smoothing=smoothing, r_drop=r_drop)
    (expected * 0.7).backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, expected_nll)
    assert not nll.requires_grad
    for found, tensor in zip(ours, tensors, strict=False):
        torch.testing.assert_close(found, tensor.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_it_is_that_of_fp32_but_for_rounding(dtype: torch.dtype) -> None:
    tensors = inputs()
    expected, _ = by_hand(*tensors, smoothing=0.1, r_drop=0.5)
    gradients = torch.autograd.grad(expected, tensors[:3])
    with torch.autocast("cpu", dtype=dtype):
        loss, _ = r_drop_loss(*tensors, label_smoothing=0.1, r_drop=0.5)
    assert loss.dtype == torch.float32
    assert not torch.equal(loss, expected)
    torch.testing.assert_close(loss, expected, rtol=0.02, atol=0)
    for found, gradient in zip(torch.autograd.grad(loss, tensors[:3]), gradients, strict=True):
        assert (found - gradient).norm() < 0.02 * gradient.norm()


def test_two_passes_that_agree_have_the_loss_of_one() -> None:
    states, _, weight, target = inputs()
    found = r_drop_loss(states, states, weight, target, label_smoothing=0.1, r_drop=5.0)
    expected = projected_loss(states, weight, target, label_smoothing=0.1)
    torch.testing.assert_close(found, expected)


def test_another_device_than_a_cpu_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of the device `meta` has no values: whoever looked at one would fail, where a GPU would wait."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)  # which knows no such device
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    first, second, weight, target = inputs("meta")
    loss, _ = r_drop_loss(first, second, weight, target, label_smoothing=0.1, r_drop=0.5)
    loss.backward()
    assert first.grad is not None
    assert second.grad is not None
    assert weight.grad is not None


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_its_passes_differ_by_what_is_dropped_alone(dropout: float) -> None:
    dropouts = (f"model.{where}dropout={dropout}" for where in ("", "attention_", "embedding_"))
    model = fresh(VOCABULARY, *dropouts).train()
    source, target = torch.randint(4, VOCABULARY, (2, 3, 5))
    found: list[float] = []
    for r_drop in (0.0, 0.5, 5.0):
        torch.manual_seed(2)
        loss, _ = LossModel(model, label_smoothing=0.1, r_drop=r_drop)(source, target, target)
        found.append(loss.item())
    once, gently, strongly = found
    if dropout:
        assert strongly > gently > 0
    else:
        assert gently == pytest.approx(once, rel=1e-5)
        assert strongly == pytest.approx(once, rel=1e-5)
