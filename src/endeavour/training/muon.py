"""Muon: the matrices of a model's layers are moved by orthogonal ones, and all else as by Adam.

Knows parameters and gradients; not models, schedules or the loop.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from endeavour.training.precision import has_units

MOMENTUM = 0.95
STEPS = 5
COEFFICIENTS = 3.4445, -4.7750, 2.0315
ADAMS_SIZE = 0.2
LEAST_NORM = 1e-7  # what is smaller moves less, so that a matrix without gradients comes to rest


class Muon(torch.optim.AdamW):
    """AdamW, except for the parameters of groups with `maps`, which are matrices.

    Such a matrix is moved against `orthogonal` of its gradient's momentum, with Nesterov's correction (Jordan et al.
    2024, "Muon: An optimizer for hidden layers in neural networks"), scaled to elements with a root mean square of 0.2,
    as those of Adam's updates have, so that both do with one learning rate (Liu et al. 2025, "Muon is Scalable for LLM
    Training", equation 4). A group's matrices consist of `maps` matrices of equal size, one below the other, each of
    which is moved by itself.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One update. Where `found_inf` is set, by a `NonFiniteGuard`, and not 0, nothing changes."""
        every = self.param_groups
        for group in every:
            if "maps" in group:
                self._move(group)
        try:
            self.param_groups = [group for group in every if "maps" not in group]
            return super().step(closure)
        finally:
            self.param_groups = every

    def _move(self, group: dict[str, Any]) -> None:
        found_inf: Tensor | None = getattr(self, "found_inf", None)
        alike: defaultdict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for parameter in group["params"]:
            gradient, state = parameter.grad, self.state[parameter]
            if not state:  # AdamW reads all states alike, so this has its names
                state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(parameter))
            momentum: Tensor = state["exp_avg"]
            new = momentum.lerp(gradient, 1 - MOMENTUM)
            momentum.copy_(new if found_inf is None else torch.where(found_inf > 0, momentum, new))
            change = gradient.lerp(momentum, MOMENTUM)
            parts = zip(parameter.chunk(group["maps"]), change.chunk(group["maps"]), strict=True)
            for part, its_change in parts:
                alike[part.shape].append((part, its_change))
        for shape, pairs in alike.items():
            changes = orthogonal(torch.stack([change for _, change in pairs]))
            changes *= -group["lr"] * ADAMS_SIZE * max(shape) ** 0.5
            for (part, _), change in zip(pairs, changes, strict=True):
                moved = part * (1 - group["lr"] * group["weight_decay"]) + change
                part.copy_(moved if found_inf is None else torch.where(found_inf > 0, part, moved))


def orthogonal(matrices: Tensor) -> Tensor:
    """For each matrix U·S·Vᵀ, (matrices, rows, columns), roughly U·Vᵀ: the singular values come near 1.

    Five steps of a Newton-Schulz iteration with the coefficients of Jordan et al. 2024, which bring nearly all of them
    to between 0.7 and 1.2; in bf16 where there are units for it, as exact as is needed.
    """
    units = has_units("bf16", matrices.device)
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.mT if tall else matrices).to(torch.bfloat16 if units else torch.float32)
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(LEAST_NORM)
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        gram = x @ x.mT
        # x ← a·x + b·(x·xᵀ)·x + c·(x·xᵀ)²·x
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)
