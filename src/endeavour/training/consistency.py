"""Label-smoothed cross-entropy of one prediction and its divergence from a second, with the vocabulary projection.

The companion of `loss.py` for two views of a batch: knows states, a projection matrix and ids; not how the views
differ.

Shapes: as in `loss.py`.
"""

from typing import Any, cast

import torch
from torch import Tensor

from endeavour.special import PAD
from endeavour.training.loss import CPU_ROWS, GPU_ROWS


def consistency_loss(
    first: Tensor,
    second: Tensor,
    weight: Tensor,
    target_out: Tensor,
    *,
    label_smoothing: float,
    consistency_weight: float,
) -> tuple[Tensor, Tensor]:
    """Sums over all target tokens of CE(p, target) + α·KL(p ‖ q), and of p's negative log-likelihood, in nats.

    p and q are the predictions from the `first` and the `second` states (Gao et al. 2022, "Bi-SimCut"); CE is
    label-smoothed as in `projected_loss`. Gradients flow to both, through the divergence as well. Computed chunk
    by chunk along with its gradient: the logits of the whole batch never exist.

    Args:
        first, second: (batch, target, width) the decoder's output for two views of the same pairs.
        weight: (vocabulary, width) the projection.
        target_out: (batch, target) ids; PAD is not counted.
        label_smoothing: ε in [0, 1).
        consistency_weight: α ≥ 0.

    Returns:
        Two scalars: the loss, through which gradients flow, and the negative log-likelihood, detached.
    """
    target = target_out.flatten()
    first, second = first.flatten(0, 1), second.flatten(0, 1)
    if first.device.type == "cpu":  # elsewhere boolean indexing would have to wait for the device
        kept = target != PAD
        first, second, target = first[kept], second[kept], target[kept]
    device = first.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        first, second = first.to(dtype), second.to(dtype)
    with torch.autocast(device, enabled=False):
        return cast(
            tuple[Tensor, Tensor],
            _ConsistencyLoss.apply(first, second, weight, target, label_smoothing, consistency_weight),
        )


class _ConsistencyLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        weight: Tensor,
        target: Tensor,
        smoothing: float,
        alpha: float,
    ) -> tuple[Tensor, Tensor]:
        matrix = weight.to(first.dtype)
        gradients = [torch.empty_like(first), torch.empty_like(second)]
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32)
        loss = torch.zeros((), device=first.device)
        likelihood = torch.zeros((), device=first.device)
        rows = CPU_ROWS if first.device.type == "cpu" else GPU_ROWS
        for start in range(0, len(first), rows):
            part = slice(start, start + rows)
            ids = target[part]
            counted = (ids != PAD).float()
            log_p = (first[part] @ matrix.T).float().log_softmax(dim=-1)
            log_q = (second[part] @ matrix.T).float().log_softmax(dim=-1)
            p, q = log_p.exp(), log_q.exp()
            ratio = log_p - log_q
            divergence = (p * ratio).sum(dim=-1)
            chosen = -log_p.gather(1, ids[:, None]).squeeze(1)
            smoothed = (1 - smoothing) * chosen - smoothing * log_p.mean(dim=-1)
            likelihood += (chosen * counted).sum()
            loss += ((smoothed + alpha * divergence) * counted).sum()
            # d CE / d logits = p - (1 - ε)·one-hot - ε / vocabulary
            # d KL / d logits = p·(log p - log q - KL) for the first, q - p for the second
            to_second = q.sub_(p).mul_(alpha * counted[:, None])
            to_first = (
                ratio.sub_(divergence[:, None]).mul_(alpha).add_(1).mul_(p).sub_(smoothing / p.shape[1])
            )
            to_first.scatter_add_(1, ids[:, None], p.new_full((len(ids), 1), smoothing - 1))
            to_first.mul_(counted[:, None])
            views = zip(gradients, (first, second), (to_first, to_second), strict=True)
            for gradient, states, logit_gradient in views:
                logit_gradient = logit_gradient.to(states.dtype)
                torch.mm(logit_gradient, matrix, out=gradient[part])
                weight_gradient += logit_gradient.T @ states[part]
        ctx.save_for_backward(*gradients, weight_gradient)
        ctx.weight_dtype = weight.dtype
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        first, second, weight = ctx.saved_tensors
        scale = gradients[0]
        return first * scale, second * scale, (weight * scale).to(ctx.weight_dtype), None, None, None
