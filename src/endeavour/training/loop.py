"""The training loop, in one place and in reading order.

Knows batches of ids, a model, a loss and an optimizer. Does not know text, decoding or scores: validation is
a function that it is handed.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from endeavour.data.batching import Batch
from endeavour.data.dataset import ParallelDataset
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.training.checkpoint import checkpoints_in, random_state
from endeavour.training.config import TrainingConfig
from endeavour.training.display import TrainingDisplay
from endeavour.training.log import MetricLog, MetricWindow
from endeavour.training.processes import Processes
from endeavour.training.schedule import learning_rate
from endeavour.training.signals import Interrupted, StopSignal
from endeavour.training.skipping import Skipping
from endeavour.training.state import Checkpoints, TrainState
from endeavour.training.step import LossModel, accumulate_gradients, choose_compile
from endeavour.training.tracking import Tracker
from endeavour.training.updates import ahead, updates


class GivenUp(Exception):
    """A run ended before its limits, because it was not worth going on; it is saved, and could."""


@dataclass(frozen=True)
class Validation:
    """One validation: loss (label-smoothed) and perplexity per target token, BLEU, and some translations.

    `samples` are (source, hypothesis, reference). `attention` is that of one pair, the same every time: its source
    pieces, its target pieces, and of each of these the weights over those.
    """

    loss: float
    perplexity: float
    bleu: float
    samples: list[tuple[str, str, str]]
    attention: tuple[list[str], list[str], list[list[float]]] | None = None


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
    precision: torch.dtype,
    processes: Processes,
    optimizer: torch.optim.Optimizer,
    state: TrainState,
    checkpoints: Checkpoints,
    log: MetricLog,
    validate: Callable[[Transformer], Validation],
    give_up: Callable[[], bool] | None = None,
    tracker: Tracker,
    display: TrainingDisplay,
) -> TrainState:
    """Trains `model` in place from `state` to the first of the config's limits.

    Every validation ends in a checkpoint, and so does a signal. A run that is resumed from a checkpoint makes
    the same updates, on the CPU to the bit, as one that never stopped. All `processes` run this together; the
    main one alone validates and, given silent ones, the others neither log nor show anything. After each
    validation, once it is logged and saved, `give_up` may end the run.

    Raises:
        GivenUp: `give_up` said so.
        Interrupted: SIGINT, SIGTERM or SIGUSR1 came; the update was finished and a checkpoint written.
        UserError: too many updates in a row were skipped, or a batch does not fit into memory.
    """
    if _finished(state, config):
        return state
    device = processes.device
    loss_model = processes.joined(
        LossModel(
            model,
            label_smoothing=config.label_smoothing,
            compiled=choose_compile(config.compile, device),
        )
    )
    window = MetricWindow(state.window)
    skipping = Skipping(state.skipped_in_a_row, device)
    started = time.monotonic() - state.seconds
    stream = partial(
        updates,
        data,
        tokens_per_batch=config.tokens_per_batch,
        accumulate=config.accumulate,
        seed=seed,
        epoch=state.epoch,
        position=state.position,
        rank=processes.rank,
        count=processes.count,
        pinned=device.type == "cuda",
    )
    model.train()
    # On a CPU reading ahead gained nothing when measured; a GPU would wait for its next batch.
    upcoming = nullcontext(stream()) if device.type == "cpu" else ahead(stream)
    with StopSignal() as stop, upcoming as ready:
        for made in ready:
            rate = _set_learning_rate(optimizer, state.update + 1, config)
            loss, likelihood, norm, finite = make_update(
                loss_model,
                optimizer,
                skipping,
                made.batches,
                target_tokens=made.target_tokens,
                clip_norm=config.clip_norm,
                device=device,
                precision=precision,
                processes=processes.count,
            )

            state.update += 1
            state.epoch, state.position = made.epoch, made.position
            state.target_tokens += made.target_tokens
            # All processes have to see the same: a signal that comes later waits for the next time.
            state.seconds, signalled = processes.largest(time.monotonic() - started, stop.number)
            window.add(loss, likelihood, norm, finite, made)
            display.updated(state.update)
            finished = _finished(state, config)
            due = finished or state.update % config.validate_every == 0
            logs = state.update % config.log_every == 0
            if due or signalled or logs or device.type == "cpu":  # elsewhere looking means waiting
                state.skipped_in_a_row, longest = skipping.in_a_row()
                if longest >= config.max_skipped_updates:
                    raise UserError(_diverged(longest, state.update, checkpoints))
            if due or logs:
                metrics = window.close(processes, epoch=state.epoch, rate=rate, seconds=state.seconds)
                window = MetricWindow()
                _log(metrics, state.update, log, tracker, display)
            if due:
                result = processes.from_main(_validated(model, validate) if processes.main else None)
                assert result is not None
                _note(result, config, state, log, tracker, display)
                window = MetricWindow()  # validation's time is not training's
            if due or signalled:
                state.seconds, signalled = processes.largest(time.monotonic() - started, stop.number)
                state.window = window.state(processes) if not due else {}
                random_states = processes.gather(random_state(device))
                if processes.main:
                    checkpoints.save(model, optimizer, state, random_states, stopped=not due)
                if signalled:
                    path = checkpoints.path(state.update, stopped=not due)
                    raise Interrupted(int(signalled), str(path))
            if due and _finished(state, config):  # or over by now, for validation takes time too
                break
            if due and give_up is not None and processes.from_main(give_up() if processes.main else None):
                raise GivenUp(f"after update {state.update}")
    return state


def make_update(
    loss_model: nn.Module,
    optimizer: torch.optim.Optimizer,
    skipping: Skipping,
    batches: Sequence[Batch],
    *,
    target_tokens: int,
    clip_norm: float | None,
    device: torch.device,
    precision: torch.dtype,
    processes: int = 1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One update of the weights: gradients, clipping, and the optimizer's step, unless they are not finite.

    Args:
        target_tokens: of the batches of all `processes` together.

    Returns:
        Loss and likelihood, sums over the tokens of this process; the gradients' norm, and whether it is finite.
    """
    loss, likelihood = accumulate_gradients(
        loss_model,
        batches,
        target_tokens=target_tokens,
        device=device,
        precision=precision,
        processes=processes,
    )
    norm = nn.utils.clip_grad_norm_(loss_model.parameters(), clip_norm or math.inf)
    finite = skipping.step(optimizer, norm)
    optimizer.zero_grad()
    return loss, likelihood, norm, finite


def _set_learning_rate(optimizer: torch.optim.Optimizer, update: int, config: TrainingConfig) -> float:
    rate = learning_rate(
        update,
        schedule=config.schedule,
        peak=config.learning_rate,
        warmup_updates=config.warmup_updates,
        max_updates=config.max_updates,
        final=config.final_learning_rate,
    )
    for group in optimizer.param_groups:
        group["lr"] = rate
    return rate


def _log(
    metrics: Mapping[str, float], update: int, log: MetricLog, tracker: Tracker, display: TrainingDisplay
) -> None:
    log.write("train", update, metrics)
    tracker.log({f"train/{key}": value for key, value in metrics.items()}, update)
    display.logged(update, metrics)


def _diverged(skipped: int, update: int, checkpoints: Checkpoints) -> str:
    last = checkpoints_in(checkpoints.folder)
    return (
        f"training diverged: {skipped} updates in a row, up to {update}, were skipped "
        "because their gradients were not finite\n"
        f"the run stands at {last[-1] if last else 'its beginning'}; under another name=… lower "
        "training.learning_rate or training.clip_norm, raise training.warmup_updates, or set training.precision=fp32"
    )


def _finished(state: TrainState, config: TrainingConfig) -> bool:
    return (
        (config.max_updates is not None and state.update >= config.max_updates)
        or (config.max_epochs is not None and state.epoch >= config.max_epochs)
        or (config.max_minutes is not None and state.seconds >= 60 * config.max_minutes)
        or _out_of_patience(state, config)
    )


def _out_of_patience(state: TrainState, config: TrainingConfig) -> bool:
    return config.patience is not None and state.validations_without_gain >= config.patience


def _validated(model: Transformer, validate: Callable[[Transformer], Validation]) -> Validation:
    model.eval()
    result = validate(model)
    model.train()
    return result


def _note(
    result: Validation,
    config: TrainingConfig,
    state: TrainState,
    log: MetricLog,
    tracker: Tracker,
    display: TrainingDisplay,
) -> None:
    """Enters a validation into the state, and everywhere it is to be seen."""
    higher_is_better = config.metric == "bleu"
    state.note_validation(
        result.bleu if higher_is_better else result.loss,
        higher_is_better=higher_is_better,
        keep=config.keep_best,
    )
    show_validation(result, state.update, log, tracker, display)


def show_validation(
    result: Validation, update: int, log: MetricLog, tracker: Tracker, display: TrainingDisplay
) -> None:
    """Shows a validation everywhere that it is to be seen."""
    metrics = {"loss": result.loss, "perplexity": result.perplexity, "bleu": result.bleu}
    log.write("validation", update, metrics)
    if result.attention is not None:
        log.write(
            "attention", update, dict(zip(("source", "target", "weights"), result.attention, strict=True))
        )
    tracker.log({f"validation/{key}": value for key, value in metrics.items()}, update)
    tracker.log_samples(result.samples, update)
    display.validated(update, metrics, result.samples)
