"""The settings of a training. Knows neither data nor models."""

from itertools import pairwise
from typing import Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from endeavour.settings import STRICT, ShareBelow1
from endeavour.training.mixture import Stage


@dataclass(kw_only=True, config=STRICT)
class TrainingConfig:
    """Values and their meaning: conf/training/default.yaml."""

    mixture: list[Stage] | None
    tokens_per_batch: PositiveInt
    accumulate: PositiveInt
    precision: Literal["auto", "fp32", "bf16", "fp16"]
    compile: Literal["auto", "always", "never"]
    cuda_graphs: Literal["auto", "always", "never"]
    sharded: bool
    label_smoothing: ShareBelow1
    r_drop: NonNegativeFloat
    clip_norm: PositiveFloat | None
    optimizer: Literal["adam", "muon"]
    learning_rate: PositiveFloat
    schedule: Literal["inverse_sqrt", "cosine"]
    warmup_updates: NonNegativeInt
    final_learning_rate: NonNegativeFloat
    adam_beta1: ShareBelow1
    adam_beta2: ShareBelow1
    adam_epsilon: PositiveFloat
    weight_decay: NonNegativeFloat
    max_updates: PositiveInt | None
    max_epochs: PositiveInt | None
    max_minutes: PositiveFloat | None
    patience: PositiveInt | None
    validate_every: PositiveInt
    validation_sentences: PositiveInt | None
    metric: Literal["bleu", "loss"]
    keep_last: PositiveInt
    keep_best: PositiveInt
    average: Literal["last", "best", "none"]
    log_every: PositiveInt
    max_skipped_updates: PositiveInt
    communication_timeout: PositiveInt
    preflight: bool
    restart: bool

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if self.max_updates is None and self.max_epochs is None and self.max_minutes is None:
            raise ValueError(
                "training would never end: set training.max_updates, training.max_epochs or training.max_minutes"
            )
        if self.schedule == "cosine" and self.max_updates is None:
            raise ValueError("training.schedule=cosine needs training.max_updates")
        if self.schedule != "cosine" and self.final_learning_rate:
            raise ValueError("training.final_learning_rate is of training.schedule=cosine: leave it out")
        if self.final_learning_rate > self.learning_rate:
            raise ValueError(
                f"training.final_learning_rate={self.final_learning_rate} is above "
                f"training.learning_rate={self.learning_rate}, from which the cosine falls to it"
            )
        if self.sharded and self.compile == "always":
            raise ValueError(
                "training.sharded=true: no layer is compiled; set training.compile=auto or never"
            )
        if self.sharded and self.cuda_graphs == "always":
            raise ValueError(
                "training.sharded=true: no batch becomes a CUDA graph; set training.cuda_graphs=auto or never"
            )
        if self.sharded and self.optimizer == "muon":
            raise ValueError("training.sharded=true: Muon needs whole matrices; set training.optimizer=adam")
        self._check_stages()
        return self

    def _check_stages(self) -> None:
        if self.mixture is None:
            return
        if not self.mixture or self.mixture[-1].until is not None:
            raise ValueError("training.mixture: the last stage, and it alone, has until: null")
        ends = [stage.until or 0 for stage in self.mixture[:-1]]
        if any(end <= start for start, end in pairwise([0, *ends])):
            raise ValueError(f"training.mixture: until must ascend from stage to stage, and is {ends}")
