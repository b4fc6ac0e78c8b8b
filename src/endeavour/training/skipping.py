"""Updates whose gradients are not finite are left out, without asking the device. Knows an optimizer; not the loop."""

import torch
from torch import Tensor


class Skipping:
    """Makes an optimizer's step only where the gradients are finite, and counts the steps left out.

    The answer stays on the device: a fused optimizer looks at it there (its `found_inf`, as torch's GradScaler
    sets it), so the host need not wait for it.
    """

    def __init__(self, in_a_row: int, device: torch.device) -> None:
        self._in_a_row = torch.tensor(in_a_row, dtype=torch.int64, device=device)
        self._longest = self._in_a_row

    def step(self, optimizer: torch.optim.Optimizer, norm: Tensor) -> Tensor:
        """One step, unless `norm`, that of the gradients, is not finite. Returns whether it is."""
        finite = norm.isfinite()
        self._in_a_row = torch.where(finite, 0, self._in_a_row + 1)
        self._longest = torch.maximum(self._longest, self._in_a_row)
        if optimizer.defaults["fused"]:
            optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
            optimizer.step()
        elif finite:
            optimizer.step()
        return finite

    def in_a_row(self) -> tuple[int, int]:
        """Steps left out since the last that was made, and the most in a row so far; waits for the device."""
        return int(self._in_a_row), int(self._longest)
