"""Label-smoothed cross-entropy, computed together with the vocabulary projection.

Knows states, a projection matrix and ids; not the model that made them.

Shapes: tokens = positions of a batch that are not PAD; width = of the model; vocabulary = target pieces.
"""

from typing import Any, cast

import torch
from torch import Tensor

from endeavour.special import PAD

# Rows of logits and probabilities that exist at a time: few enough for the last cache of a CPU.
CPU_ROWS = 512
GPU_ROWS = 4096
# Below it (87 nats) the logarithm of a probability is no longer exact.
SMALLEST = torch.finfo(torch.float32).tiny


def projected_loss(
    states: Tensor, weight: Tensor, target_out: Tensor, *, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Sums over all target tokens of the smoothed loss and of the plain negative log-likelihood, in nats.

    Equals `torch.nn.functional.cross_entropy(states @ weight.T, …, label_smoothing=ε, reduction="sum")`
    (Szegedy et al. 2016, section 7: the target distribution is (1 - ε)·one-hot + ε·uniform), but never holds
    the logits of the whole batch: the gradient is computed chunk by chunk along with the loss.

    Args:
        states: (batch, target, width) the decoder's output.
        weight: (vocabulary, width) the projection.
        target_out: (batch, target) ids; PAD is not counted.
        label_smoothing: ε in [0, 1).

    Returns:
        Two scalars: the loss, through which gradients flow, and the negative log-likelihood, detached.
    """
    kept = target_out.flatten() != PAD
    states = states.flatten(0, 1)
    # Boolean indexing waits for the device: on a GPU the few padded rows cost less than that.
    if states.device.type == "cpu" and not bool(kept.all()):
        states, target_out = states[kept], target_out.flatten()[kept]
    if not torch.is_grad_enabled():  # the function below only sees whether its tensors require gradients
        states, weight = states.detach(), weight.detach()
    return without_autocast(_ProjectedLoss, states, weight, target_out.flatten(), label_smoothing)


def without_autocast(
    function: type[torch.autograd.Function], states: Tensor, *others: Tensor | float
) -> tuple[Tensor, Tensor]:
    """The two scalars of `function`, whose `states` are in the type of autocast where that is on, and off inside."""
    device = states.device.type
    if torch.is_autocast_enabled(device):
        states = states.to(torch.get_autocast_dtype(device))
    with torch.autocast(device, enabled=False):
        return cast(tuple[Tensor, Tensor], function.apply(states, *others))


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, target: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        matrix = weight.to(states.dtype)
        needs_gradient = any(ctx.needs_input_grad[:2])
        counted = (target != PAD)[:, None]
        visible = states * counted
        # The uniform part of the target distribution needs no logits: their mean is states · mean piece.
        share = smoothing / len(weight)
        mean_piece = weight.float().mean(dim=0)
        visible_sum = visible.sum(dim=0, dtype=torch.float32)
        states_gradient = torch.empty_like(states) if needs_gradient else None
        weight_gradient = (-share * visible_sum).repeat(len(weight), 1) if needs_gradient else None
        loss = -smoothing * (visible_sum @ mean_piece)
        nll = torch.zeros((), device=states.device)
        rows = CPU_ROWS if states.device.type == "cpu" else GPU_ROWS
        for start in range(0, len(states), rows):
            part = slice(start, start + rows)
            ids, counts = target[part], counted[part, 0]
            each = torch.arange(len(ids), device=ids.device)
            logits = states[part] @ matrix.T
            # With gradients rounded like the tensors that they are multiplied with; otherwise as exact as possible.
            # (fp16 has no small probabilities.)
            rounded = needs_gradient and logits.dtype != torch.float16
            probabilities = logits.softmax(dim=-1, dtype=logits.dtype if rounded else torch.float32)
            chosen, chosen_logits = probabilities[each, ids].float(), logits[each, ids].float()
            token_nll = -chosen.clamp_min(SMALLEST).log()
            # On a CPU it costs nothing to ask whether there are such rows; on a GPU the host would have to wait.
            if chosen.device.type != "cpu" or bool((chosen < SMALLEST).any()):
                largest = logits.amax(dim=-1).float()  # here nearly log Σ
                token_nll = token_nll.where(chosen >= SMALLEST, largest - chosen_logits)
            nll += (token_nll * counts).sum()
            # (1 - ε)·(log Σ - chosen logit) + ε·(log Σ - mean of the logits), the last of which is there already
            loss += ((token_nll + smoothing * chosen_logits) * counts).sum()
            if states_gradient is None or weight_gradient is None:
                continue
            # d loss / d logits = softmax - (1 - ε)·one-hot - ε / vocabulary, the last of which is added elsewhere
            probabilities[each, ids] = (chosen - (1 - smoothing)).to(probabilities.dtype)
            probabilities = probabilities.to(states.dtype)
            torch.mm(probabilities, matrix, out=states_gradient[part])
            if weight_gradient.dtype == states.dtype:
                weight_gradient.addmm_(probabilities.T, visible[part])
            else:
                weight_gradient += probabilities.T @ visible[part]
        if states_gradient is not None:
            states_gradient = (states_gradient - smoothing * mean_piece).mul_(counted).to(states.dtype)
            ctx.save_for_backward(states_gradient, weight_gradient)
            ctx.weight_dtype = weight.dtype
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        states_gradient, weight_gradient = ctx.saved_tensors
        scale = gradients[0]
        return states_gradient * scale, (weight_gradient * scale).to(ctx.weight_dtype), None, None
