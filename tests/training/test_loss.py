"""The fused loss equals torch's, in value and gradient."""

import pytest
import torch
from torch.nn import functional

from endeavour.special import PAD
from endeavour.training import loss as loss_module
from endeavour.training.loss import projected_loss

pytestmark = pytest.mark.usefixtures("on_device")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("padding", ["none", "left out", "computed with"])
def test_equals_cross_entropy(smoothing: float, padding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in ("CPU_ROWS", "GPU_ROWS"):
        monkeypatch.setattr(loss_module, rows, 5)  # several chunks, the last of them short
    torch.manual_seed(0)
    states = torch.randn(3, 6, 8, requires_grad=True)
    weight = torch.randn(11, 8, requires_grad=True)
    target = torch.randint(1, 11, (3, 6))
    if padding != "none":
        target[0, 4:] = PAD
        target[2, 1:] = PAD

    if padding == "computed with":  # as on a GPU
        rows, ids = states.flatten(0, 1), target.flatten()
        loss, nll = loss_module._ProjectedLoss.apply(rows, weight, ids, smoothing)
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
