"""The training loop, in one place and in reading order.

Knows batches of ids, a model, a loss and an optimizer. Does not know text, decoding or scores: validation is
a function that it is handed.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from endeavour.data.batching import Batch, collate, epoch_batches
from endeavour.data.dataset import ParallelDataset
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.training.device import PRECISIONS, autocast, choose_precision
from endeavour.training.display import TrainingDisplay
from endeavour.training.log import MetricLog, MetricWindow
from endeavour.training.loss import projected_loss
from endeavour.training.schedule import SCHEDULES, learning_rate
from endeavour.training.signals import Interrupted, StopSignal
from endeavour.training.state import Checkpoints, TrainState
from endeavour.training.tracking import Tracker


@dataclass(kw_only=True)
class TrainingConfig:
    """Values and their meaning: conf/training/default.yaml."""

    tokens_per_batch: int
    accumulate: int
    precision: str
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
    restart: bool

    def check(self) -> None:
        """Raises `UserError`, naming the key, for values that describe no training."""
        choices = {
            "precision": PRECISIONS,
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


@dataclass(frozen=True)
class Validation:
    """One validation: loss (label-smoothed) and perplexity per target token, BLEU, and some translations.

    `samples` are (source, hypothesis, reference).
    """

    loss: float
    perplexity: float
    bleu: float
    samples: list[tuple[str, str, str]]


def make_optimizer(model: Transformer, config: TrainingConfig) -> torch.optim.Optimizer:
    """AdamW; with `weight_decay` 0 it is Adam (Kingma and Ba 2015). Biases and norms are not decayed."""
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    return torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": config.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        fused=decayed[0].device.type in ("cpu", "cuda"),
    )


def train(
    model: Transformer,
    data: ParallelDataset,
    config: TrainingConfig,
    *,
    seed: int,
    device: torch.device,
    optimizer: torch.optim.Optimizer,
    state: TrainState,
    checkpoints: Checkpoints,
    log: MetricLog,
    validate: Callable[[Transformer], Validation],
    tracker: Tracker,
    display: TrainingDisplay,
) -> TrainState:
    """Trains `model` in place from `state` to the first of the config's limits.

    Every validation ends in a checkpoint, and so does a signal. A run that is resumed from a checkpoint makes
    the same updates, on the CPU to the bit, as one that never stopped.

    Raises:
        Interrupted: SIGINT or SIGTERM came; the update was finished and a checkpoint written.
    """
    precision = choose_precision(config.precision, device)
    window = MetricWindow(state.window)
    started = time.monotonic() - state.seconds
    model.train()
    with StopSignal() as stop:
        for batches in _updates(data, config, seed, state):
            rate = learning_rate(
                state.update + 1,
                schedule=config.schedule,
                peak=config.learning_rate,
                warmup_updates=config.warmup_updates,
                max_updates=config.max_updates,
                final=config.final_learning_rate,
            )
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss, likelihood, tokens = accumulate_gradients(
                model, batches, device=device, precision=precision, label_smoothing=config.label_smoothing
            )
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm or math.inf)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)

            state.update += 1
            state.target_tokens += tokens
            state.seconds = time.monotonic() - started
            window.add(loss, likelihood, tokens, norm, batches)
            display.updated(state.update)
            finished = _finished(state, config)
            due = finished or state.update % config.validate_every == 0
            if due or state.update % config.log_every == 0:
                metrics = window.close(epoch=state.epoch, rate=rate, seconds=state.seconds)
                window = MetricWindow()
                if not math.isfinite(metrics["loss"]):
                    raise UserError(
                        f"training diverged: the loss is not finite at update {state.update}; lower "
                        "training.learning_rate or training.clip_norm, or raise training.warmup_updates"
                    )
                log.write("train", state.update, metrics)
                tracker.log({f"train/{key}": value for key, value in metrics.items()}, state.update)
                display.logged(state.update, metrics)
            if due:
                _validate(model, config, state, validate, log, tracker, display)
                window = MetricWindow()  # validation's time is not training's
            if due or stop.number:
                state.seconds = time.monotonic() - started
                state.window = window.state() if not due else {}
                path = checkpoints.save(model, optimizer, state, stopped=not due)
                if stop.number and not finished:
                    raise Interrupted(stop.number, str(path))
            if finished or _out_of_patience(state, config):
                break
    return state


def accumulate_gradients(
    model: Transformer,
    batches: Sequence[Batch],
    *,
    device: torch.device,
    precision: torch.dtype,
    label_smoothing: float,
) -> tuple[Tensor, Tensor, int]:
    """Adds to the gradients those of the mean loss over all target tokens of `batches`.

    However the tokens are divided into batches, the gradient is that of one large batch.

    Returns:
        Sums of loss and negative log-likelihood (nats, on `device`, not waited for), and the target tokens.
    """
    tokens = sum(batch.target_tokens for batch in batches)
    loss_sum = torch.zeros((), device=device)
    likelihood_sum = torch.zeros((), device=device)
    for batch in batches:
        batch = batch.to(device)
        with autocast(device, precision):
            states = model.decode(batch.target_in, model.encode(batch.source))
            loss, likelihood = projected_loss(
                states, model.output_weight, batch.target_out, label_smoothing=label_smoothing
            )
        (loss / tokens).backward()
        loss_sum += loss.detach()
        likelihood_sum += likelihood
    return loss_sum, likelihood_sum, tokens


def _updates(
    data: ParallelDataset, config: TrainingConfig, seed: int, state: TrainState
) -> Iterator[list[Batch]]:
    """The batches of one update after another, from `state` on, whose epoch and position it moves along."""
    while not _finished(state, config):
        order = epoch_batches(
            data.source.lengths,
            data.target.lengths,
            tokens_per_batch=config.tokens_per_batch,
            seed=seed,
            epoch=state.epoch,
        )
        while state.position < len(order):
            rows = order[state.position : state.position + config.accumulate]
            state.position += len(rows)
            if state.position == len(order):
                # Moved before the update is made, so that a checkpoint of it stands at the next epoch's start.
                state.epoch, state.position = state.epoch + 1, 0
            yield [collate(data, batch) for batch in rows]
            if state.position == 0:
                break


def _finished(state: TrainState, config: TrainingConfig) -> bool:
    return (
        (config.max_updates is not None and state.update >= config.max_updates)
        or (config.max_epochs is not None and state.epoch >= config.max_epochs)
        or (config.max_minutes is not None and state.seconds >= 60 * config.max_minutes)
        or _out_of_patience(state, config)
    )


def _out_of_patience(state: TrainState, config: TrainingConfig) -> bool:
    return config.patience is not None and state.validations_without_gain >= config.patience


def _validate(
    model: Transformer,
    config: TrainingConfig,
    state: TrainState,
    validate: Callable[[Transformer], Validation],
    log: MetricLog,
    tracker: Tracker,
    display: TrainingDisplay,
) -> None:
    model.eval()
    result = validate(model)
    model.train()
    higher_is_better = config.metric == "bleu"
    state.note_validation(
        result.bleu if higher_is_better else result.loss,
        higher_is_better=higher_is_better,
        keep=config.keep_best,
    )
    metrics = {"loss": result.loss, "perplexity": result.perplexity, "bleu": result.bleu}
    log.write("validation", state.update, metrics)
    tracker.log({f"validation/{key}": value for key, value in metrics.items()}, state.update)
    tracker.log_samples(result.samples, state.update)
    display.validated(state.update, metrics, result.samples)
