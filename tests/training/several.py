"""Runs on several processes, forked and joined as torchrun would join them, for the tests that compare them."""

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from silent import SilentMonitor

from configs import run_config
from endeavour.data.dataset import ParallelDataset, flat, save_rows
from endeavour.data.tokenizer import Tokenizer
from endeavour.model.transformer import Transformer
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.distributed import Ranks, join_ranks
from endeavour.training.log import MetricLog
from endeavour.training.loop import train
from endeavour.training.monitor import Validation
from endeavour.training.optimizer import make_optimizer
from endeavour.training.sharding import shard
from endeavour.training.state import Checkpoints

VOCABULARY = 300
PAIRS = 70


def uneven_data(folder: Path) -> ParallelDataset:
    random = np.random.default_rng(0)
    for side in ("source", "target"):
        rows = [random.integers(4, VOCABULARY, random.integers(2, 9)).tolist() for _ in range(PAIRS)]
        # One pair fills a batch alone, so that some process has nothing to predict.
        rows[0] = random.integers(4, VOCABULARY, 60).tolist()
        save_rows(folder / f"train.{side}", [flat(rows, vocabulary_size=VOCABULARY)])
    return ParallelDataset.open(folder, "train")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def forked(count: int, work: Callable[[], object], timeout_seconds: float = 180) -> list[int]:
    """Runs `work` in `count` forks, in the environment that torchrun gives its processes. Returns their exit codes."""
    port = free_port()

    def one(rank: int) -> None:
        torch.set_num_threads(1)
        os.environ |= {
            "TORCHELASTIC_RUN_ID": "test",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "RANK": str(rank),
            "WORLD_SIZE": str(count),
            "LOCAL_RANK": str(rank),
        }
        try:
            work()
        except (
            Exception
        ):  # as the command line ends: at a usual end a fork might wait for threads that it lacks
            traceback.print_exc()
            os._exit(1)

    context = multiprocessing.get_context("fork")
    children = [context.Process(target=one, args=(rank,)) for rank in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(timeout_seconds)
        if child.is_alive():
            child.kill()
            child.join()
    return [child.exitcode or 0 for child in children]


def in_processes(count: int, work: Callable[[Ranks], object], timeout_seconds: float = 180) -> list[int]:
    """`forked`, each process joined with the others."""

    def joined() -> None:
        with join_ranks(torch.device("cpu"), timeout_seconds) as ranks:
            work(ranks)

    return forked(count, joined, timeout_seconds)


def run(
    folder: Path,
    data: ParallelDataset,
    tokenizer: Tokenizer,
    ranks: Ranks,
    *overrides: str,
    after: Callable[[int], None] = lambda update: None,
    dropout: float = 0.0,
    precision: torch.dtype = torch.float32,
) -> list[str]:
    """One start of a run, as the train stage makes it. Returns the notes of the restart."""
    small = ["training.tokens_per_batch=128", "training.log_every=1", "training.validate_every=6"]
    config = run_config(["training=smoke", *small, "training.max_updates=12", *overrides]).training
    layout = run_config(["model=tiny", "model.width=16", "model.feed_forward=32", "model.num_heads=2"]).model
    layout.encoder_layers = layout.decoder_layers = 1
    layout.dropout = layout.embedding_dropout = dropout
    torch.manual_seed(1)
    model = Transformer(layout, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)
    if config.sharded:
        shard(model, ranks.device, ranks.count)
    optimizer = make_optimizer(model, config)
    folder.mkdir(exist_ok=True)
    checkpoints = Checkpoints(folder, (tokenizer, tokenizer), keep_last=2, keep_best=1)
    state, notes = checkpoints.restore_newest(model, optimizer, rank=ranks.rank, count=ranks.count)
    validations: list[int] = []

    def validate(model: Transformer) -> Validation:
        assert ranks.main
        model(torch.tensor([[5, 3]]), torch.tensor([[2, 5]]))  # by this process alone
        validations.append(1)
        return Validation(loss=float(len(validations)), perplexity=1.0, bleu=1.0, samples=[])

    train(
        model,
        data,
        config,
        seed=1,
        precision=precision,
        ranks=ranks,
        optimizer=optimizer,
        state=state,
        checkpoints=checkpoints,
        monitor=SilentMonitor(MetricLog(folder / "log.jsonl" if ranks.main else Path(os.devnull)), after),
        validate=validate,
    )
    return notes


def losses(folder: Path) -> list[tuple[float, float]]:
    lines = MetricLog(folder / "log.jsonl").read()
    return [(line["loss"], line["gradient_norm"]) for line in lines if line["kind"] == "train"]


def weights(folder: Path) -> torch.Tensor:
    newest = load_file(checkpoints_in(folder)[-1] / "weights.safetensors")
    return torch.cat([newest[name].flatten() for name in sorted(newest)])


def assert_near(one: torch.Tensor, other: torch.Tensor) -> None:
    """Equal but for rounding; where a gradient is nought in theory (biases of keys) Adam makes steps of its noise."""
    assert float((one - other).norm() / other.norm()) < 5e-3
