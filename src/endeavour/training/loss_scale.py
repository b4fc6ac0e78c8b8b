"""What a loss in fp16 is multiplied with, so that small gradients do not become zero.

Knows gradients and whether they were finite; not losses, optimizers or files.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

FIRST = 2.0**16
SMALLEST = 1.0
# Updates in a row without overflow after which the scale is doubled.
GROWTH_INTERVAL = 2000


class LossScale:
    """A scale that is halved by each update whose gradients overflow, and doubled after 2,000 that do not.

    As torch's `GradScaler` (after Micikevicius et al. 2018, "Mixed Precision Training", section 3.2), which, however,
    asks each process for its own gradients: where a model is sharded all must agree on what `finite` is.

    Attributes:
        value: the scale, on the device; the host never waits for it.
    """

    def __init__(self, value: float, finite_in_a_row: int, device: torch.device) -> None:
        self.value = torch.tensor(value, dtype=torch.float32, device=device)
        self._in_a_row = torch.tensor(finite_in_a_row, dtype=torch.int64, device=device)

    def unscale(self, parameters: Iterable[nn.Parameter]) -> None:
        """Divides the gradients, which are in fp32, by the scale; a power of two, so that nothing is rounded."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        torch._foreach_mul_(gradients, 1 / self.value)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]

    def is_smallest(self) -> Tensor:
        """Whether an overflow cannot be cured by halving it; on the device."""
        return self.value <= SMALLEST

    def adapt(self, finite: Tensor) -> None:
        """Halves or doubles the scale after an update whose gradients were `finite`, or not."""
        in_a_row = torch.where(finite, self._in_a_row + 1, 0)
        grows = in_a_row == GROWTH_INTERVAL
        factor = torch.where(finite, torch.where(grows, 2.0, 1.0), 0.5)
        self.value = (self.value * factor).clamp(SMALLEST, torch.finfo(torch.float32).max)
        self._in_a_row = torch.where(grows, 0, in_a_row)

    def state(self) -> tuple[float, int]:
        """The scale, and the updates without overflow since it last changed; waits for the device."""
        return float(self.value), int(self._in_a_row)
