"""The settings of a training, and whether they describe one; knows neither data nor models."""

import math
from dataclasses import dataclass

from endeavour.errors import UserError
from endeavour.training.precision import PRECISIONS
from endeavour.training.schedule import SCHEDULES
from endeavour.training.step import COMPILE


@dataclass(kw_only=True)
class TrainingConfig:
    """Values and their meaning: conf/training/default.yaml."""

    tokens_per_batch: int
    accumulate: int
    precision: str
    compile: str
    label_smoothing: float
    clip_norm: float | None
    learning_rate: float
    schedule: str
    warmup_updates: int
    final_learning_rate: float
    adam_beta1: float
    adam_beta2: float
    adam_epsilon: float
    weight_decay: float
    max_updates: int | None
    max_epochs: int | None
    max_minutes: float | None
    patience: int | None
    validate_every: int
    validation_sentences: int | None
    metric: str
    keep_last: int
    keep_best: int
    average: str
    log_every: int
    max_skipped_updates: int
    communication_timeout: int
    preflight: bool
    restart: bool

    def check(self) -> None:
        """Raises `UserError`, naming the key, for values that describe no training."""
        choices = {
            "precision": PRECISIONS,
            "compile": COMPILE,
            "schedule": SCHEDULES,
            "metric": ("bleu", "loss"),
            "average": ("last", "best", "none"),
        }
        for key, known in choices.items():
            if getattr(self, key) not in known:
                value = getattr(self, key)
                raise UserError(f"training.{key}={value} is not known: choose one of {', '.join(known)}")
        self._check_numbers()
        if self.max_updates is None and self.max_epochs is None and self.max_minutes is None:
            raise UserError("training has no end: set training.max_updates, max_epochs or max_minutes")
        if self.schedule == "cosine" and self.max_updates is None:
            raise UserError("training.schedule=cosine needs training.max_updates")

    def _check_numbers(self) -> None:
        whole = ("tokens_per_batch", "accumulate", "validate_every", "keep_last", "keep_best", "log_every")
        whole += ("max_skipped_updates", "communication_timeout")
        for key in (*whole, "max_updates", "max_epochs", "patience", "validation_sentences"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise UserError(f"training.{key}={value}: must be at least 1")
        for key in ("learning_rate", "adam_epsilon", "clip_norm", "max_minutes"):
            value = getattr(self, key)
            if value is not None and not 0 < value < math.inf:
                raise UserError(f"training.{key}={value}: must be above 0")
        for key in ("label_smoothing", "adam_beta1", "adam_beta2"):
            if not 0 <= getattr(self, key) < 1:
                raise UserError(f"training.{key}={getattr(self, key)}: must be from 0 to below 1")
        for key in ("warmup_updates", "final_learning_rate", "weight_decay"):
            if not 0 <= getattr(self, key) < math.inf:
                raise UserError(f"training.{key}={getattr(self, key)}: must not be negative")
