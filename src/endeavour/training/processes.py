"""The processes that train one model together, as `torchrun` starts them; without it, one process alone.

Knows torch.distributed; not models, data or files. What one process does, all must do in the same order: every
method waits for the others.
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

from endeavour.errors import RunError, UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """This process among all of them.

    Attributes:
        rank: from 0; the main process has rank 0 and is the only one that writes.
        count: of the processes on all hosts.
        device: of this process.
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

    def joined(self, module: nn.Module) -> nn.Module:
        """`module`, which after a backward pass has the mean of all processes' gradients."""
        if self.alone:
            return module
        # The position tables are buffers that grow when needed, and the same everywhere.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the option has a new name from torch 2.13 on
            return DistributedDataParallel(module, broadcast_buffers=False)

    def sum(self, values: Tensor) -> Tensor:
        """The sum of all processes' `values`, in each of them."""
        if not self.alone:
            distributed.all_reduce(values)
        return values

    def largest(self, *values: float) -> list[float]:
        """The largest of all processes' values, one by one, in each of them."""
        if self.alone:
            return list(values)
        largest = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(largest, op=distributed.ReduceOp.MAX)
        return largest.tolist()

    def from_main(self, value: T) -> T:
        """What the main process gave, in each of them; what the others give counts for nothing."""
        if self.alone:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0, device=torch.device("cpu"))
        return box[0]

    def gather(self, value: T) -> list[T]:
        """Every process's value in order of rank, in each of them."""
        if self.alone:
            return [value]
        values = [value] * self.count
        distributed.all_gather_object(values, value)
        return values

    def leave(self) -> None:
        """Parts the processes, which all have to come here: from then on each is on its own."""
        if not self.alone:
            self.largest(0)
            distributed.destroy_process_group()


def launched() -> bool:
    """Whether `torchrun` started this process, as one of possibly many."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def check_local_rank(device: torch.device) -> None:
    """Raises `UserError` where `torchrun` started more processes on this host than it has CUDA devices."""
    if device.type == "cuda" and int(os.environ["LOCAL_RANK"]) >= torch.cuda.device_count():
        raise UserError(
            f"torchrun started more processes than the {torch.cuda.device_count()} CUDA devices of this host: "
            f"set --nproc-per-node={torch.cuda.device_count()}"
        )


@contextmanager
def processes(device: torch.device, timeout_seconds: float) -> Generator[Processes]:
    """Joins the processes that `torchrun` started, if it did, and parts them at the end.

    After an error of one CUDA process they stay joined, for NCCL would wait for the others, who may never come: such
    a process has to end by `os._exit`, which `torchrun` sees.

    Args:
        device: as chosen by the user; of several CUDA devices each process takes that of its local rank.
        timeout_seconds: for how long one process may keep the others waiting before they give up.

    Raises:
        RunError: another process ended, or could not be reached for that long.
    """
    if not launched():
        yield Processes(0, 1, device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    try:
        timeout = timedelta(seconds=timeout_seconds)
        store, rank, count = next(iter(rendezvous("env://", timeout=timeout)))
        meeting = _meet(store, rank, count, timeout_seconds)
        distributed.init_process_group(
            backend="cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
            store=PrefixStore(meeting, store),
            rank=rank,
            world_size=count,
            timeout=timeout,
        )
        together = Processes(rank, count, device)
        yield together
        if distributed.is_initialized():
            together.leave()
    except RuntimeError as error:
        if isinstance(error, distributed.DistError) or "gloo" in str(error):
            reason = str(error).splitlines()[0]
            raise RunError(
                f"lost contact with another process of this run for {timeout_seconds:g} s "
                f"(training.communication_timeout), or it ended: {reason}\n"
                "start all of them again by the same command: the run goes on from its last checkpoint"
            ) from error
        raise
    finally:
        if device.type != "cuda" and distributed.is_initialized():
            distributed.destroy_process_group()


def _meet(store: Store, rank: int, count: int, timeout_seconds: float) -> str:
    """A name that just these `count` processes agree on, and none that were there before them.

    torchrun's store outlives the processes that it starts again, and what they wrote there would send the new
    ones to addresses where nobody is. So each process leaves a name of its own, the main one publishes them
    all, and goes on once each of the others has found its own among them.

    Raises:
        RunError: not all have come in that time.
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
    raise RunError(f"not all {count} processes of this run came within {timeout_seconds:g} s")


def _values(store: Store, keys: list[str]) -> list[str] | None:
    """What stands under the keys; None while one of them is missing."""
    return [store.get(key).decode() for key in keys] if not keys or store.check(keys) else None
