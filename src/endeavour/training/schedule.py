"""The learning rate as a pure function of the update's number. Knows nothing of optimizers."""

import math

from endeavour.training.config import TrainingConfig


def learning_rate(update: int, config: TrainingConfig) -> float:
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
