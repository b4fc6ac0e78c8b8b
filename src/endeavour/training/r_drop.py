"""R-Drop: the loss of two passes with different dropout, and of how far their predictions lie apart.

Knows states, a projection matrix and ids; not the model that made them.

Shapes: tokens = positions of a batch that are not PAD; width = of the model; vocabulary = target pieces.
"""

from typing import Any

import torch
from torch import Tensor

from endeavour.special import PAD
from endeavour.training.loss import without_autocast

# Tokens whose logits exist at a time: fewer than in `projected_loss`, since some ten matrices of them are held in fp32.
CPU_ROWS = 128
GPU_ROWS = 1024


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
            counted = (ids != PAD)[:, None]
            logs = (states[:, part] @ matrix.T).log_softmax(dim=-1, dtype=torch.float32)
            probabilities = logs.exp()
            surprise = -logs.gather(-1, ids.expand(2, -1)[..., None])
            smooth = (1 - smoothing) * surprise - smoothing * logs.mean(dim=-1, keepdim=True)
            apart, log_ratio = probabilities[0] - probabilities[1], logs[0] - logs[1]
            divergence = (apart * log_ratio).sum(dim=-1, keepdim=True) / 2
            nll += (surprise.mean(dim=0) * counted).sum()
            loss += ((smooth.mean(dim=0) + r_drop * divergence) * counted).sum()

            # d CE / d logits = p - (1 - ε)·one-hot - ε / vocabulary, and with r = log p - log q
            # d (KL(p ‖ q) + KL(q ‖ p)) / d logits of p = p·(r - Σ p·r) + p - q
            gradient = probabilities.sub(smoothing / len(weight))
            gradient.scatter_add_(-1, ids.expand(2, -1)[..., None], torch.full_like(surprise, smoothing - 1))
            for side, sign in enumerate((1, -1)):
                mean_ratio = (probabilities[side] * log_ratio).sum(dim=-1, keepdim=True)
                pulled = probabilities[side] * (log_ratio - mean_ratio) + apart
                gradient[side].add_(pulled, alpha=sign * r_drop)
            gradient = (gradient * (counted / 2)).to(states.dtype)
            states_gradient[:, part] = gradient @ matrix
            weight_gradient += gradient.flatten(0, 1).T @ states[:, part].flatten(0, 1)
        ctx.save_for_backward(states_gradient, weight_gradient.to(weight.dtype))
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        states_gradient, weight_gradient = ctx.saved_tensors
        return states_gradient * gradients[0], weight_gradient * gradients[0], None, None, None
