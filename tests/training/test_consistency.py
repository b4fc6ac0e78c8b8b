"""The loss of two views equals what torch's own functions give, in value and gradient, for both views."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from endeavour.special import EOS, PAD, UNK
from endeavour.training import consistency
from endeavour.training.consistency import consistency_loss
from endeavour.training.loss import projected_loss
from endeavour.training.step import SimCut


def views() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    first, second = (torch.randn(3, 6, 8, requires_grad=True) for _ in range(2))
    target = torch.randint(1, 11, (3, 6))
    target[0, 4:] = PAD
    target[2, 1:] = PAD
    return first, second, torch.randn(11, 8, requires_grad=True), target


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_equals_cross_entropy_and_divergence_of_torch(
    smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consistency, "CPU_ROWS", 5)  # several chunks, the last of them short
    first, second, weight, target = views()
    inputs = (first, second, weight)
    loss, likelihood = consistency_loss(*inputs, target, label_smoothing=smoothing, consistency_weight=3.0)
    ours = torch.autograd.grad(loss * 0.7, inputs)

    kept = target != PAD
    logits, other = ((states @ weight.T)[kept] for states in (first, second))
    divergence = functional.kl_div(
        other.log_softmax(-1), logits.log_softmax(-1), reduction="sum", log_target=True
    )
    entropy = functional.cross_entropy(logits, target[kept], reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(loss, entropy + 3 * divergence)
    torch.testing.assert_close(
        likelihood, functional.cross_entropy(logits, target[kept], reduction="sum").detach()
    )
    theirs = torch.autograd.grad((entropy + 3 * divergence) * 0.7, inputs)
    for mine, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, expected)


def test_without_weight_and_with_equal_views_it_is_the_plain_loss() -> None:
    first, second, weight, target = views()
    plain = projected_loss(first, weight, target, label_smoothing=0.1)
    for other, alpha in ((second, 0.0), (first, 3.0)):
        ours = consistency_loss(first, other, weight, target, label_smoothing=0.1, consistency_weight=alpha)
        torch.testing.assert_close(ours[0], plain[0])
        torch.testing.assert_close(ours[1], plain[1])


def test_views_that_differ_cost_more() -> None:
    first, second, weight, target = views()
    plain, _ = projected_loss(first, weight, target, label_smoothing=0.1)
    loss, _ = consistency_loss(first, second, weight, target, label_smoothing=0.1, consistency_weight=1.0)
    assert loss > plain


def test_cutting_hides_the_asked_share_of_tokens_and_no_padding() -> None:
    torch.manual_seed(0)
    ids = torch.randint(EOS + 1, 50, (200, 100))
    ids[:, 80:] = PAD
    cut = SimCut(weight=3.0, probability=0.2).cut(ids)
    changed = cut != ids
    assert (cut[changed] == UNK).all()
    assert not changed[:, 80:].any()
    assert float(changed[:, :80].float().mean()) == pytest.approx(0.2, abs=0.02)
    assert SimCut(weight=3.0, probability=0.0).cut(ids).equal(ids)
