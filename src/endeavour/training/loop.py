"""The training loop, in one place and in reading order.

Knows batches of ids, a model, a loss and an optimizer. Does not know text, decoding or scores: validation is a
function that it is given.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import nn

from endeavour.data.dataset import ParallelDataset
from endeavour.errors import UserError
from endeavour.model.attention import prepare_kernels
from endeavour.model.transformer import Transformer
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.config import TrainingConfig
from endeavour.training.distributed import Ranks
from endeavour.training.graphs import Graphs, choose_graphs
from endeavour.training.log import MetricWindow
from endeavour.training.loss_scale import LossScale
from endeavour.training.monitor import Monitor, Validation
from endeavour.training.optimizer import NonFiniteGuard, set_learning_rate
from endeavour.training.sharding import is_sharded, whole_model
from endeavour.training.signals import Interrupted, StopSignal
from endeavour.training.state import Checkpoints, TrainState
from endeavour.training.step import LossModel, Updater, choose_compile
from endeavour.training.updates import Update, prefetch, updates


class Pruned(Exception):
    """A run was ended before its limits because it was not promising; it is saved and can be resumed."""


def train(
    model: Transformer,
    data: ParallelDataset,
    config: TrainingConfig,
    *,
    seed: int,
    precision: torch.dtype,
    ranks: Ranks,
    optimizer: torch.optim.Optimizer,
    state: TrainState,
    checkpoints: Checkpoints,
    monitor: Monitor,
    validate: Callable[[Transformer], Validation],
    prune: Callable[[], bool] | None = None,
) -> TrainState:
    """Trains `model` in place, from `state` until the config's first limit is reached.

    Every validation ends with a checkpoint, and so does a signal. A run that is resumed from a checkpoint makes the
    same updates, on the CPU to the bit, as one that never stopped. All `ranks` run this together; only the main one
    validates, and the others are given a monitor that records nothing.

    Args:
        precision: the type that matrix products compute in; weights and optimizer stay in fp32.
        prune: asked after each validation, once it is recorded and saved, whether to end the run.

    Raises:
        Pruned: `prune` returned True.
        Interrupted: SIGINT, SIGTERM, SIGHUP or SIGUSR1 came; the update was finished and a checkpoint written.
        UserError: too many updates in a row were skipped, or a batch does not fit into memory.
    """
    if _finished(state, config):
        return state
    device = ranks.device
    loss_model, graphs = _loss_model(model, config, ranks, note=monitor.note)
    loss_scale = LossScale(*state.loss_scale, device) if precision == torch.float16 else None
    guard = NonFiniteGuard(state.skipped_in_a_row, device, loss_scale=loss_scale)
    updater = Updater(
        loss_model=loss_model,
        optimizer=optimizer,
        guard=guard,
        clip_norm=config.clip_norm,
        device=device,
        precision=precision,
        world_size=ranks.count,
        graphs=graphs,
    )
    window = MetricWindow(state.window)
    started = time.monotonic() - state.seconds
    model.train()
    with StopSignal() as stop, _stream(data, config, seed, state, ranks) as stream:
        for update in stream:
            rate = set_learning_rate(optimizer, state.update + 1, config)
            result = updater.update(update.batches, update.target_tokens)
            state.advance(update)
            # All processes must agree: a signal that comes after this line waits for the next update.
            state.seconds, signalled = ranks.all_reduce_max(time.monotonic() - started, stop.number)
            window.add(update, result)
            monitor.updated(state.update)

            validates = _finished(state, config) or state.update % config.validate_every == 0
            logs = validates or state.update % config.log_every == 0
            if logs or signalled or device.type == "cpu":  # other devices would have to be waited for
                _check_skipped(guard, state, config, checkpoints)
            if logs:
                metrics = window.close(ranks, epoch=state.epoch, rate=rate, seconds=state.seconds)
                monitor.trained(state.update, metrics)
            if validates:
                _validate(model, validate, config, state, ranks, monitor)
                state.seconds, signalled = ranks.all_reduce_max(time.monotonic() - started, stop.number)
            if logs:
                window = MetricWindow()  # a validation's time does not count as training time
            if validates or signalled:
                state.window = {} if validates else window.state(ranks)
                if loss_scale is not None:
                    state.loss_scale = loss_scale.state()
                checkpoints.save(model, optimizer, state, ranks, stopped=not validates)
                saved = checkpoints.path(state.update, stopped=not validates)
                if _ends(state, config, ranks, stop, saved, prune=prune if validates else None):
                    break
    return state


def _loss_model(
    model: Transformer, config: TrainingConfig, ranks: Ranks, *, note: Callable[[str], None]
) -> tuple[nn.Module, Graphs | None]:
    """What an update calls on these devices: the model with its loss, and the graphs that replay it if any do."""
    device = ranks.device
    if slower := prepare_kernels(device):
        note(slower)
    tokens = config.tokens_per_batch * (2 if config.r_drop else 1)
    graphed = choose_graphs(config.cuda_graphs, device, model, tokens=tokens, alone=ranks.alone)
    sharded = is_sharded(model)
    loss_model = LossModel(
        model,
        label_smoothing=config.label_smoothing,
        r_drop=config.r_drop,
        compiled=not sharded and choose_compile(config.compile, device, graphed=graphed),
    )
    graphs = Graphs(model, device, note=note) if graphed else None
    return loss_model if sharded else ranks.wrap_ddp(loss_model), graphs


def _stream(
    data: ParallelDataset, config: TrainingConfig, seed: int, state: TrainState, ranks: Ranks
) -> AbstractContextManager[Iterator[Update]]:
    """The updates from where `state` stands, prefetched for all devices but the CPU, where that gained nothing."""
    stream = updates(
        data,
        tokens_per_batch=config.tokens_per_batch,
        accumulate=config.accumulate,
        seed=seed,
        epoch=state.epoch,
        position=state.position,
        stages=config.mixture,
        update=state.update,
        stage_epoch=state.stage_epoch,
        rank=ranks.rank,
        count=ranks.count,
        pinned=ranks.device.type == "cuda",
    )
    return nullcontext(stream) if ranks.device.type == "cpu" else prefetch(stream)


def _check_skipped(
    guard: NonFiniteGuard, state: TrainState, config: TrainingConfig, checkpoints: Checkpoints
) -> None:
    """Raises `UserError` once `max_skipped_updates` updates in a row were skipped."""
    state.skipped_in_a_row, longest = guard.skipped_in_a_row()
    if longest < config.max_skipped_updates:
        return
    last = checkpoints_in(checkpoints.folder)
    raise UserError(
        f"training diverged: {longest} updates in a row, up to update {state.update}, were skipped because their "
        "gradients were not finite\n"
        f"the last checkpoint is {last[-1] if last else 'none'}; in a new run (name=…) lower training.learning_rate "
        "or training.clip_norm, raise training.warmup_updates, or set training.precision=fp32"
    )


def _validate(
    model: Transformer,
    validate: Callable[[Transformer], Validation],
    config: TrainingConfig,
    state: TrainState,
    ranks: Ranks,
    monitor: Monitor,
) -> None:
    """Validates on the main process, and records the result in every process's state."""
    whole = whole_model(model, keep=ranks.main)
    validation = ranks.broadcast(None if whole is None else validate(whole.to(ranks.device).eval()))
    model.train()
    assert validation is not None
    higher_is_better = config.metric == "bleu"
    state.note_validation(
        validation.bleu if higher_is_better else validation.loss,
        higher_is_better=higher_is_better,
        keep=config.keep_best,
    )
    monitor.validated(state.update, validation)


def _ends(
    state: TrainState,
    config: TrainingConfig,
    ranks: Ranks,
    stop: StopSignal,
    saved: Path,
    *,
    prune: Callable[[], bool] | None,
) -> bool:
    """Whether a limit is reached, now that the checkpoint `saved` is written; raises what else ends a training."""
    ends = _finished(state, config)  # asked again, because the validation took time too
    pruned = prune is not None and not ends and ranks.broadcast(ranks.main and prune())
    # A signal may have come meanwhile, and there may be no next update that would heed it.
    (signalled,) = ranks.all_reduce_max(stop.number)
    if signalled:
        raise Interrupted(int(signalled), str(saved))
    if pruned:
        raise Pruned(f"after update {state.update}")
    return ends


def _finished(state: TrainState, config: TrainingConfig) -> bool:
    return (
        (config.max_updates is not None and state.update >= config.max_updates)
        or (config.max_epochs is not None and state.epoch >= config.max_epochs)
        or (config.max_minutes is not None and state.seconds >= 60 * config.max_minutes)
        or (config.patience is not None and state.validations_without_gain >= config.patience)
    )
