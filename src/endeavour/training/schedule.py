"""The learning rate as a pure function of the update's number. Knows nothing of optimizers."""

import math


def learning_rate(
    update: int,
    *,
    schedule: str,
    peak: float,
    warmup_updates: int,
    max_updates: int | None,
    final: float,
) -> float:
    """The learning rate of update number `update`, counted from 1.

    Both rise linearly to `peak` at `warmup_updates`. `inverse_sqrt` then falls with update^-1/2 (Vaswani et
    al. 2017, section 5.3, scaled so that its highest value is `peak`); `cosine` falls along half a cosine to
    `final` at `max_updates` (Loshchilov and Hutter 2017, equation 5, one period).
    """
    if update < warmup_updates:
        return peak * update / warmup_updates
    if schedule == "inverse_sqrt":
        return peak * math.sqrt(max(warmup_updates, 1) / update)
    assert schedule == "cosine"
    assert max_updates is not None
    progress = min(1.0, (update - warmup_updates) / max(1, max_updates - warmup_updates))
    return final + (peak - final) * 0.5 * (1 + math.cos(math.pi * progress))
