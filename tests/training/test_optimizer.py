"""Updates that are skipped because their gradient is not finite."""

import math

import pytest
import torch
from torch import nn

from endeavour.training.optimizer import NonFiniteGuard


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_is_made_only_where_the_norm_is_finite_and_the_others_are_counted(fused: bool) -> None:
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=fused)
    with torch.device("meta"):  # whatever the default is
        skipping = NonFiniteGuard(2, torch.device("cpu"), loss_scale=None)
    assert skipping.skipped_in_a_row() == (2, 2)
    counts: list[tuple[int, int]] = []
    for norm in (math.inf, 1.0, math.nan, math.nan, -math.inf, math.nan, 0.5, math.inf):
        before = weight.detach().clone()
        weight.grad = torch.ones(2)
        skipping.step(optimizer, torch.tensor(norm))
        assert math.isfinite(norm) == (not torch.equal(weight, before))
        counts.append(skipping.skipped_in_a_row())
    assert counts == [(3, 3), (0, 3), (1, 3), (2, 3), (3, 3), (4, 4), (0, 4), (1, 4)]
