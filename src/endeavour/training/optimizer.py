"""The optimizer, its learning rate, and the updates that it skips because their gradients are not finite.

Knows parameters and gradients; not batches, losses or the loop.
"""

from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from endeavour.model.layers import Linear
from endeavour.training.config import TrainingConfig
from endeavour.training.loss_scale import LossScale
from endeavour.training.muon import Muon
from endeavour.training.schedule import learning_rate


class OptimizerSettings(Protocol):
    """What `make_optimizer` reads of a config; see conf/training/default.yaml."""

    optimizer: Literal["adam", "muon"]
    learning_rate: float
    adam_beta1: float
    adam_beta2: float
    adam_epsilon: float
    weight_decay: float


def make_optimizer(model: nn.Module, config: OptimizerSettings) -> torch.optim.Optimizer:
    """AdamW; with `weight_decay` 0 it is Adam (Kingma and Ba 2015). Biases and norms are not decayed.

    Or `Muon`, for the matrices of the layers.
    """
    maps: dict[int, list[Tensor]] = {}
    if config.optimizer == "muon":
        for module in model.modules():
            if isinstance(module, Linear):
                maps.setdefault(module.maps, []).append(module.weight)
    moved = {parameter for group in maps.values() for parameter in group}
    decayed = [one for one in model.parameters() if one.ndim > 1 and one not in moved]
    others = [one for one in model.parameters() if one.ndim <= 1]
    kind = Muon if config.optimizer == "muon" else torch.optim.AdamW
    return kind(
        [
            {"params": decayed, "weight_decay": config.weight_decay},
            {"params": others, "weight_decay": 0.0},
            *({"params": group, "maps": count} for count, group in maps.items()),
        ],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        weight_decay=config.weight_decay,
        fused=decayed[0].device.type in ("cpu", "cuda"),
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, update: int, config: TrainingConfig) -> float:
    """Sets the learning rate of update number `update`, counted from 1, and returns it."""
    rate = learning_rate(update, config)
    for group in optimizer.param_groups:
        group["lr"] = rate
    return rate


class NonFiniteGuard:
    """Lets an optimizer step only where the gradients are finite, and counts the skipped steps.

    The answer stays on the device: a fused optimizer reads it there (as `found_inf`, which torch's GradScaler sets
    too), so the host need not wait for it. With a loss scale only those steps count that were skipped at the smallest.

    Args:
        loss_scale: in fp16, adapted after every step.
    """

    def __init__(self, skipped_in_a_row: int, device: torch.device, *, loss_scale: LossScale | None) -> None:
        self.loss_scale = loss_scale
        self._in_a_row = torch.tensor(skipped_in_a_row, dtype=torch.int64, device=device)
        self._longest = self._in_a_row

    def step(self, optimizer: torch.optim.Optimizer, norm: Tensor) -> None:
        """One step, unless `norm`, the norm of the gradients, is not finite."""
        finite = norm.isfinite()
        counts = 1 if self.loss_scale is None else self.loss_scale.is_smallest()
        self._in_a_row = torch.where(finite, 0, self._in_a_row + counts)
        self._longest = torch.maximum(self._longest, self._in_a_row)
        if optimizer.defaults["fused"]:
            optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
            optimizer.step()
        elif finite:
            optimizer.step()
        if self.loss_scale is not None:
            self.loss_scale.adapt(finite)

    def skipped_in_a_row(self) -> tuple[int, int]:
        """Steps skipped since the last one that was made, and the most in a row so far; waits for the device."""
        return int(self._in_a_row), int(self._longest)
