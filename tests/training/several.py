"""Runs on several processes, forked and joined as torchrun would join them, for the tests that compare them."""

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from starting import ALONE, start, training_config

from endeavour.data.dataset import ParallelDataset
from endeavour.data.tokenizer import Tokenizer
from endeavour.model.transformer import Transformer
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.distributed import Ranks, join_ranks
from endeavour.training.log import MetricLog
from endeavour.training.monitor import Validation


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def forked(processes: int, work: Callable[[], object], timeout_seconds: float = 180) -> list[int]:
    """Runs `work` in so many forks, in the environment that torchrun gives its processes. Returns their exit codes."""
    port = free_port()

    def one(rank: int) -> None:
        torch.set_num_threads(1)
        os.environ |= {
            "TORCHELASTIC_RUN_ID": "test",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "RANK": str(rank),
            "WORLD_SIZE": str(processes),
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
    children = [context.Process(target=one, args=(rank,)) for rank in range(processes)]
    for child in children:
        child.start()
    for child in children:
        child.join(timeout_seconds)
        if child.is_alive():
            child.kill()
            child.join()
    return [child.exitcode or 0 for child in children]


def in_processes(processes: int, work: Callable[[Ranks], object], timeout_seconds: float = 180) -> list[int]:
    """`forked`, each process joined with the others."""

    def joined() -> None:
        with join_ranks(torch.device("cpu"), timeout_seconds) as ranks:
            work(ranks)

    return forked(processes, joined, timeout_seconds)


def short_run(
    folder: Path,
    data: ParallelDataset,
    tokenizer: Tokenizer,
    ranks: Ranks = ALONE,
    *overrides: str,
    dropout: float = 0.0,
    **options: Any,
) -> list[str]:
    """`start` of twelve updates, each of them logged. Returns the notes of the restart."""
    often = ("training.log_every=1", "training.validate_every=6", "training.max_updates=12")
    config = training_config(*often, "training.keep_last=2", *overrides)
    validations = count(1)

    def validate(model: Transformer) -> Validation:
        assert ranks.main
        model(torch.tensor([[5, 3]]), torch.tensor([[2, 5]]))  # by this process alone
        return Validation(loss=float(next(validations)), perplexity=1.0, bleu=1.0, samples=[])

    dropouts = [f"model.{where}dropout={dropout}" for where in ("", "attention_", "embedding_")]
    _, notes = start(folder, data, tokenizer, config, validate, overrides=dropouts, ranks=ranks, **options)
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
