"""The processes that `torchrun` started to train one model; without it, a single process.

Knows torch.distributed; not models, data or files. All processes must call the same methods in the same order:
each method waits for the others.
"""

import os
import time
import uuid
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from endeavour.errors import RunError, UserError, first_line

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process among all of them.

    Attributes:
        rank: from 0; the main process has rank 0 and is the only one that writes.
        count: number of processes on all hosts.
        device: the device of this process.
    """

    rank: int
    count: int
    device: torch.device

    @property
    def main(self) -> bool:
        return self.rank == 0

    @property
    def alone(self) -> bool:
        return self.count == 1

    def wrap_ddp(self, module: nn.Module) -> nn.Module:
        """`module`, which after each backward pass holds the mean of all processes' gradients."""
        if self.alone:
            return module
        # The position tables are buffers that grow when needed, and the same everywhere.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the option has a new name from torch 2.13 on
            return DistributedDataParallel(module, broadcast_buffers=False)

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """The sum of all processes' `values`, in place, in every process."""
        if not self.alone:
            distributed.all_reduce(values)
        return values

    def all_reduce_max(self, *values: float) -> list[float]:
        """The maximum over all processes of each value, in every process."""
        if self.alone:
            return list(values)
        largest = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(largest, op=distributed.ReduceOp.MAX)
        return largest.tolist()

    def broadcast(self, value: T) -> T:
        """The main process's value, in every process; the values of the others are ignored."""
        if self.alone:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0, device=torch.device("cpu"))
        return box[0]

    def gather(self, value: T) -> list[T]:
        """The values of all processes in order of rank, in every process."""
        if self.alone:
            return [value]
        values = [value] * self.count
        distributed.all_gather_object(values, value)
        return values

    def leave(self) -> None:
        """Ends the process group once all processes have come here; from then on none waits for another."""
        if distributed.is_initialized():  # also where torchrun has started one process alone
            self.all_reduce_max(0)
            distributed.destroy_process_group()


def launched() -> bool:
    """Whether `torchrun` started this process, as one of possibly many."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_main() -> bool:
    """Whether this process is the one that speaks and writes for all."""
    return not launched() or os.environ["RANK"] == "0"


def is_alone() -> bool:
    """Whether this process is the only one of its run."""
    return not launched() or os.environ["WORLD_SIZE"] == "1"


def check_several() -> None:
    """Raises `UserError` where there are no other processes to divide a model among."""
    if is_alone():
        raise UserError(
            "training.sharded=true divides the model among processes, and this is the only one\n"
            "start several with torchrun (docs/several-processes.md), or set training.sharded=false"
        )


def check_local_rank(device: torch.device) -> None:
    """Raises `UserError` where `torchrun` started more processes on this host than it has CUDA devices."""
    if device.type == "cuda" and int(os.environ["LOCAL_RANK"]) >= torch.cuda.device_count():
        raise UserError(
            f"torchrun started more processes than the {torch.cuda.device_count()} CUDA devices of this host: "
            f"set --nproc-per-node={torch.cuda.device_count()}"
        )


@contextmanager
def join_ranks(device: torch.device, timeout_seconds: float) -> Generator[Ranks]:
    """Joins the processes that `torchrun` started, if it did, in a process group that ends with the block.

    After an error in a CUDA process the group is not destroyed, because NCCL would wait for the other processes, which
    may never come: such a process has to end by `os._exit`, which `torchrun` notices.

    Args:
        device: as chosen by the user; with several CUDA devices each process takes the one of its local rank.
        timeout_seconds: how long one process may keep the others waiting before they give up.

    Raises:
        RunError: another process ended, or could not be reached for that long.
    """
    if not launched():
        yield Ranks(0, 1, device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    try:
        timeout = timedelta(seconds=timeout_seconds)
        store, rank, count = next(iter(rendezvous("env://", timeout=timeout)))
        group = _agree_on_group(store, rank, count, timeout_seconds)
        distributed.init_process_group(
            backend="cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
            store=PrefixStore(group, store),
            rank=rank,
            world_size=count,
            timeout=timeout,
        )
        ranks = Ranks(rank, count, device)
        yield ranks
        ranks.leave()
    except RuntimeError as error:
        if isinstance(error, distributed.DistError) or "gloo" in str(error):
            raise RunError(
                "another process of this run ended, or did not answer for "
                f"{timeout_seconds:g} s (training.communication_timeout): {first_line(error)}\n"
                "start all processes again with the same command: the run continues from its last checkpoint"
            ) from error
        raise
    finally:
        if device.type != "cuda" and distributed.is_initialized():
            distributed.destroy_process_group()


def _agree_on_group(store: Store, rank: int, count: int, timeout_seconds: float) -> str:
    """A group name that exactly these `count` processes agree on, and no earlier ones.

    torchrun's store outlives the processes that it restarts, and the addresses that they left there would send the
    new ones to processes that have ended. So each process writes a name of its own, the main process publishes all
    of them, and continues once each of the others has found its name in the list.

    Raises:
        RunError: not all processes came within that time.
    """
    own = uuid.uuid4().hex
    store.set(f"name/{rank}", own)
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        if rank == 0:
            names = _values(store, [f"name/{other}" for other in range(count)])
            if names is not None:
                store.set("names", ",".join(names))
                if _values(store, [f"{own}/{name}" for name in names[1:]]) is not None:
                    return own
        elif (published := _values(store, ["names"])) is not None:
            names = published[0].split(",")
            if names[rank : rank + 1] == [own]:
                store.set(f"{names[0]}/{own}", "found")
                return names[0]
        time.sleep(0.05)
    raise RunError(f"not all {count} processes of this run started within {timeout_seconds:g} s")


def _values(store: Store, keys: list[str]) -> list[str] | None:
    """The values of the keys; None while one of them is missing."""
    return [store.get(key).decode() for key in keys] if not keys or store.check(keys) else None
