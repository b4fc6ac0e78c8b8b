"""R-Drop: the loss of two passes with different dropout, and of how far their predictions lie apart.

Knows states, a projection matrix and ids; not the model that made them.

Shapes: tokens = positions of a batch that are not PAD; width = of the model; vocabulary = target pieces.
"""

from typing import Any

import torch
from torch import Tensor

from endeavour.native import functions as native
from endeavour.special import PAD
from endeavour.training.loss import without_autocast

# Tokens whose logits exist at a time: as in `projected_loss`, and on a GPU fewer, since several are held in fp32.
CPU_ROWS = 512
GPU_ROWS = 1024
# Of these, those that are computed with at a time between the products: few enough for a core's own cache.
CACHED_ROWS = 32


def r_drop_loss(
    first: Tensor,
    second: Tensor,
    weight: Tensor,
    target_out: Tensor,
    *,
    label_smoothing: float,
    r_drop: float,
) -> tuple[Tensor, Tensor]:
    """Sums over all target tokens of the loss of two passes, and of their negative log-likelihood, in nats.

    With p and q the distributions that the passes predict, and CE the smoothed cross-entropy, the loss of a token is

        (CE(p) + CE(q)) / 2 + r_drop · (KL(p ‖ q) + KL(q ‖ p)) / 2

    (Liang et al. 2021, "R-Drop", equations 2 and 3, who add the two cross-entropies: their α is twice `r_drop`).
    The logarithms are computed in fp32, and never of the whole batch at once.

    Args:
        first, second: (batch, target, width) the decoder's output in either pass.
        weight: (vocabulary, width) the projection.
        target_out: (batch, target) ids; PAD is not counted.
        label_smoothing: ε in [0, 1), as in `projected_loss`.

    Returns:
        Two scalars: the loss, through which gradients flow, and the negative log-likelihood, detached; means of both.
    """
    target = target_out.flatten()
    states = torch.stack((first.flatten(0, 1), second.flatten(0, 1)))
    if states.device.type == "cpu":
        states, target = states[:, target != PAD], target[target != PAD]
    return without_autocast(_RDropLoss, states, weight, target, label_smoothing, r_drop)


class _RDropLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, target: Tensor, smoothing: float, r_drop: float
    ) -> tuple[Tensor, Tensor]:
        """`states`: (2, tokens, width). The gradient is computed together with the loss."""
        matrix = weight.to(states.dtype)
        states_gradient = torch.empty_like(states)
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32)
        loss, nll = torch.zeros(2, device=states.device)
        rows = CPU_ROWS if states.device.type == "cpu" else GPU_ROWS
        for start in range(0, len(target), rows):
            part = slice(start, start + rows)
            ids = target[part]
            # The rows of both passes as one matrix: of a batch of two, `matrix` would be copied for each.
            chosen = states[:, part].flatten(0, 1)
            logits = (chosen @ matrix.T).unflatten(0, (2, -1))
            part_loss, part_nll = _replace_by_gradient(logits, ids, smoothing, r_drop)
            loss += part_loss
            nll += part_nll
            states_gradient[:, part] = logits @ matrix
            weight_gradient += logits.flatten(0, 1).T @ chosen
        ctx.save_for_backward(states_gradient, weight_gradient.to(weight.dtype))
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        states_gradient, weight_gradient = ctx.saved_tensors
        return states_gradient * gradients[0], weight_gradient * gradients[0], None, None, None


def _replace_by_gradient(
    logits: Tensor, ids: Tensor, smoothing: float, r_drop: float
) -> tuple[Tensor, Tensor]:
    """The sums of `r_drop_loss` over some tokens; the gradient takes the place of `logits` (2, tokens, vocabulary).

    On a CPU no token is PAD.
    """
    if native.takes(logits):
        losses, nlls = native.r_drop(logits, ids, smoothing=smoothing, weight=r_drop)
        return losses.sum(), nlls.sum()
    few = CACHED_ROWS if logits.device.type == "cpu" else len(ids)
    parts = zip(logits.split(few, dim=1), ids.split(few), strict=True)
    sums = [_replace_few_by_gradient(*part, smoothing, r_drop) for part in parts]
    loss, nll = torch.stack([torch.stack(pair) for pair in sums]).sum(dim=0)
    return loss, nll


def _replace_few_by_gradient(
    logits: Tensor, ids: Tensor, smoothing: float, r_drop: float
) -> tuple[Tensor, Tensor]:
    """With torch's operations, the same.

    With d = the difference of the logits, of which a constant in each row changes nothing, twice the gradient is

        p - (1 - ε)·one-hot - ε / vocabulary + r_drop · (p·(d - Σ p·d) + p - q)

    for the logits of p, and the same with q, p and -d for those of q.
    """
    counted = (ids != PAD)[:, None]
    each = torch.arange(len(ids), device=ids.device)
    exact = logits.float()
    probabilities = exact.softmax(dim=-1)
    # The largest probability is never so small that its logarithm is inexact.
    log_sum = exact.amax(dim=-1) - probabilities.amax(dim=-1).log()
    chosen = exact[:, each, ids]
    nll = log_sum - chosen
    smooth = nll + smoothing * (chosen - exact.mean(dim=-1))
    apart = exact[0] - exact[1]
    expected = torch.stack([(side * apart).sum(dim=-1, keepdim=True) for side in probabilities])
    divergence = (expected[0] - expected[1])[:, 0] / 2
    for side, sign in enumerate((1, -1)):
        factor = 1 + r_drop - sign * r_drop * expected[side]
        gradient = torch.add(factor, apart, alpha=sign * r_drop).mul_(probabilities[side])
        gradient.sub_(probabilities[1 - side], alpha=r_drop).sub_(smoothing / logits.shape[-1])
        gradient[each, ids] -= 1 - smoothing
        torch.mul(gradient, counted / 2, out=logits[side])
    counts = counted[:, 0]
    return ((smooth.mean(dim=0) + r_drop * divergence) * counts).sum(), (nll.mean(dim=0) * counts).sum()
