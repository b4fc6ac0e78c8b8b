"""The learning rate as a pure function of the update's number. Knows nothing of optimizers."""

import math
from typing import Literal, Protocol


class ScheduleSettings(Protocol):
    """What `learning_rate` reads of a config; see conf/training/default.yaml."""

    schedule: Literal["inverse_sqrt", "cosine"]
    learning_rate: float
    final_learning_rate: float
    warmup_updates: int
    max_updates: int | None


def learning_rate(update: int, config: ScheduleSettings) -> float:
    """The learning rate of update number `update`, counted from 1.

    Both schedules rise linearly to their peak, `config.learning_rate`, at `warmup_updates`. `inverse_sqrt` then falls
    with update^-1/2 (Vaswani et al. 2017, section 5.3, scaled so that its highest value is the peak); `cosine` falls
    along half a cosine to `final_learning_rate` at `max_updates` (Loshchilov and Hutter 2017, equation 5, one period).
    """
    peak, final, warmup = config.learning_rate, config.final_learning_rate, config.warmup_updates
    if update < warmup:
        return peak * update / warmup
    if config.schedule == "inverse_sqrt":
        return peak * math.sqrt(max(warmup, 1) / update)
    assert config.max_updates is not None
    progress = min(1.0, (update - warmup) / max(1, config.max_updates - warmup))
    return final + (peak - final) * 0.5 * (1 + math.cos(math.pi * progress))
