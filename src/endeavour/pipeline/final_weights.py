"""Which weights a run ends in: the mean of checkpoints, or one alone. Knows their losses, not how they were trained."""

import math
import sys
from pathlib import Path

from endeavour.model.transformer import Transformer
from endeavour.pipeline.validation import Validator
from endeavour.training.checkpoint import Tensors, average_weights
from endeavour.training.state import Checkpoints, TrainState

# By how much a mean's validation loss (nats per target token) may be above that of one checkpoint; less means nothing.
WORSE = 0.01
ALTERED = "delete that checkpoint, and the same command, without training.restart, continues"


def load_final_weights(
    model: Transformer, average: str, checkpoints: Checkpoints, state: TrainState, validator: Validator
) -> list[Path]:
    """Loads into `model` what `training.average` names, and returns the checkpoints that it is made of.

    The mean of checkpoints near each other is usually as good as the best of them, or better (Vaswani et al. 2017,
    section 6.1). That of checkpoints far apart can be worse than any: where its validation loss is clearly above that
    of the newest, or of the best by `training.metric`, this one is taken alone.

    Raises:
        UserError: a checkpoint was altered.
    """
    several = {
        "last": checkpoints.last(state),
        "best": checkpoints.best(state),
        "none": checkpoints.best(state)[:1],
    }[average]
    if not several:  # the best was damaged, and deleted
        several = checkpoints.last(state)[-1:]
        print(f"note: the best checkpoints are gone: the final model is {several[0]}", file=sys.stderr)
    mean = average_weights(several, ALTERED)
    if len(several) > 1:
        one = several[-1] if average == "last" else several[0]
        alone = average_weights([one], ALTERED)
        losses = [_loss(model, weights, validator) for weights in (mean, alone)]
        if math.isnan(losses[0]) or losses[0] > losses[1] + WORSE:
            print(
                f"note: the final model is {one.name} alone, with a validation loss of {losses[1]:.3f}: the mean of "
                f"the {average} {len(several)} checkpoints has {losses[0]:.3f}",
                file=sys.stderr,
            )
            several, mean = [one], alone
    model.load_state_dict(mean)
    return several


def _loss(model: Transformer, weights: Tensors, validator: Validator) -> float:
    model.load_state_dict(weights)
    return validator.losses(model.eval())[0]
