"""One start of a run of a tiny model, as the train stage makes it: shared by the tests of the loop.

What the loop and its checkpoints are called with stands here alone.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from silent import SilentMonitor

from configs import run_config
from endeavour.data.dataset import ParallelDataset
from endeavour.data.tokenizer import Tokenizer
from endeavour.model.transformer import Transformer
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.config import TrainingConfig
from endeavour.training.distributed import Ranks
from endeavour.training.log import MetricLog
from endeavour.training.loop import train
from endeavour.training.monitor import Validation
from endeavour.training.optimizer import make_optimizer
from endeavour.training.sharding import shard
from endeavour.training.state import Checkpoints, TrainState
from random_models import fresh

VOCABULARY = 300
CPU = torch.device("cpu")
ALONE = Ranks(0, 1, CPU)


def training_config(*overrides: str) -> TrainingConfig:
    small = ["training.tokens_per_batch=128", "training.log_every=2", "training.validate_every=4"]
    return run_config(
        ["training=smoke", "training.compile=never", *small, "training.max_updates=24", *overrides]
    ).training


def make_model(*overrides: str) -> Transformer:
    return fresh(VOCABULARY, "model.attention_dropout=0.1", *overrides)


def no_validation(model: Transformer) -> Validation:
    assert not model.training
    return Validation(loss=float(model.output_weight.detach().sum()), perplexity=1.0, bleu=1.0, samples=[])


def checkpoints_of(folder: Path, tokenizer: Tokenizer, keep_last: int = 1) -> Checkpoints:
    return Checkpoints(folder, (tokenizer, tokenizer), keep_last=keep_last, keep_best=1)


def save(checkpoints: Checkpoints, model: Transformer, update: int) -> None:
    """A checkpoint of this update, of an optimizer that has made no step."""
    checkpoints.save(model, make_optimizer(model, training_config()), TrainState(update=update), ALONE)


def restore(
    checkpoints: Checkpoints, model: Transformer, config: TrainingConfig, ranks: Ranks = ALONE
) -> tuple[torch.optim.Optimizer, TrainState, list[str]]:
    """A new optimizer that goes on from the newest checkpoint, with the notes of the restart."""
    optimizer = make_optimizer(model, config)
    return optimizer, *checkpoints.restore_newest(model, optimizer, ranks)


def start(
    folder: Path,
    data: ParallelDataset,
    tokenizer: Tokenizer,
    config: TrainingConfig,
    validate: Callable[[Transformer], Validation] = no_validation,
    *,
    overrides: Sequence[str] = (),
    ranks: Ranks = ALONE,
    after: Callable[[int], None] = lambda update: None,
    precision: torch.dtype = torch.float32,
    prune: Callable[[], bool] | None = None,
) -> tuple[TrainState, list[str]]:
    """Starts the run in `folder`; `overrides` are of the model. Returns its end and the notes of the restart."""
    model = make_model(*overrides).to(ranks.device)
    if config.sharded:
        shard(model, ranks.device, ranks.count)
    folder.mkdir(exist_ok=True)
    checkpoints = checkpoints_of(folder, tokenizer, config.keep_last)
    optimizer, state, notes = restore(checkpoints, model, config, ranks)
    log = MetricLog(folder / "log.jsonl" if ranks.main else Path(os.devnull))
    if ranks.main:
        log.cut_after(state.update)
    ended = train(
        model,
        data,
        config,
        seed=1,
        precision=precision,
        ranks=ranks,
        optimizer=optimizer,
        state=state,
        checkpoints=checkpoints,
        monitor=SilentMonitor(log, after),
        validate=validate,
        prune=prune,
    )
    return ended, notes


def run(*arguments: Any, **options: Any) -> TrainState:
    """`start`, without the notes."""
    state, _ = start(*arguments, **options)
    return state


def outcome(folder: Path) -> tuple[dict[str, torch.Tensor], list[dict[str, object]]]:
    """Everything that must not depend on interruptions: final weights and optimizer state, logged losses."""
    newest = checkpoints_in(folder)[-1]
    tensors = load_file(newest / "weights.safetensors") | load_file(newest / "optimizer.safetensors")
    kept = [path.name for path in checkpoints_in(folder)]  # what is averaged
    lines = MetricLog(folder / "log.jsonl").read()
    timing = ("seconds", "tokens_per_second")
    logged = [{key: value for key, value in line.items() if key not in timing} for line in lines]
    return tensors, [*logged, {"kept": kept}]


def assert_same(first: Path, second: Path) -> None:
    (tensors, lines), (other_tensors, other_lines) = outcome(first), outcome(second)
    assert tensors.keys() == other_tensors.keys()
    assert [name for name in tensors if not torch.equal(tensors[name], other_tensors[name])] == []
    assert lines == other_lines
