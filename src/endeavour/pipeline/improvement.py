"""Whether validation was still improving when a training ended, and what to change then. Knows its log and settings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from endeavour.training.config import TrainingConfig
from endeavour.training.state import TrainState

MIN_VALIDATIONS = 4
# A gain below this may be chance: of BLEU, and as a share of the loss.
BLEU_MARGIN, LOSS_MARGIN = 0.5, 0.005
# Least number of second differences from which the noise of validations is estimated.
MIN_DIFFERENCES = 4


@dataclass(frozen=True)
class Improvement:
    """By how much the metric was better in the last quarter of the validations, and from what on that counts."""

    metric: str
    gain: float
    margin: float

    @property
    def still(self) -> bool:
        return self.gain > self.margin


def improvement_of(log: Sequence[Mapping[str, Any]], metric: str) -> Improvement | None:
    """What the last quarter of the validations gained; None where fewer than four tell nothing.

    The gain is the best of the last quarter against the best before it, by the metric that the run selects checkpoints
    by. It counts if it is above 0.5 BLEU, or half a percent of the loss, and above twice the noise of the second half.
    That is the standard deviation of a validation, estimated from second differences, which a steady trend leaves at
    zero: the mean square of v[i-1] - 2 v[i] + v[i+1] is six times the variance (Gasser et al. 1986, "Residual Variance
    and Residual Pattern in Nonlinear Regression"). A model that has not begun to translate, and has no BLEU to speak
    of, is judged by its loss.
    """
    sign = 1.0 if metric == "bleu" else -1.0
    values = [sign * line[metric] for line in log if line["kind"] == "validation"]
    if len(values) < MIN_VALIDATIONS:
        return None
    if metric == "bleu" and max(values) <= BLEU_MARGIN:
        return improvement_of(log, "loss")
    last = math.ceil(len(values) / 4)
    before = max(values[:-last])
    margin = BLEU_MARGIN if metric == "bleu" else LOSS_MARGIN * abs(before)
    return Improvement(metric, max(values[-last:]) - before, max(margin, 2 * _noise(values)))


def improvement_line(improvement: Improvement | None, state: TrainState, settings: TrainingConfig) -> str:
    """For the user: whether a longer training may gain, and by which setting."""
    if improvement is None:
        return f"still improving at the end? fewer than {MIN_VALIDATIONS} validations do not tell"
    name, digits = ("BLEU", 2) if improvement.metric == "bleu" else ("loss", 3)
    change = improvement.gain if improvement.metric == "bleu" else -improvement.gain
    changed = f"validation {name} changed by {change:+.{digits}f} in the last quarter"
    if not improvement.still:
        return f"not improving any more: {changed}, and up to {improvement.margin:.{digits}f} may be chance"
    cosine = ", the falling learning rate being part of it" if settings.schedule == "cosine" else ""
    return f"still improving at the end: {changed}{cosine}; a longer run may gain: name=… {_longer(state, settings)}"


def _noise(values: Sequence[float]) -> float:
    """Of the second half; 0 where that is too short to tell."""
    half = values[len(values) // 2 :]
    squares = [(a - 2 * b + c) ** 2 for a, b, c in zip(half, half[1:], half[2:], strict=False)]
    return math.sqrt(sum(squares) / len(squares) / 6) if len(squares) >= MIN_DIFFERENCES else 0.0


def _longer(state: TrainState, settings: TrainingConfig) -> str:
    """The limit that ended the training, doubled."""
    if settings.patience is not None and state.validations_without_gain >= settings.patience:
        return f"training.patience={2 * settings.patience}"
    if settings.max_updates is not None and state.update >= settings.max_updates:
        return f"training.max_updates={2 * settings.max_updates}"
    if settings.max_epochs is not None and state.epoch >= settings.max_epochs:
        return f"training.max_epochs={2 * settings.max_epochs}"
    assert settings.max_minutes is not None
    return f"training.max_minutes={2 * settings.max_minutes:g}"
