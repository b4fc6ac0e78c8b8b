"""Which batches make which update, read and padded; for a GPU prefetched by a thread.

Knows the data's lengths and a place in an epoch; not models, losses or devices.
"""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from endeavour.data.batching import Batch, collate, epoch_batches
from endeavour.data.dataset import ParallelDataset
from endeavour.special import PAD
from endeavour.training.mixture import Mixture, Stage

# Updates that are prepared before they are needed.
PREFETCHED = 4

Item = TypeVar("Item")


@dataclass(frozen=True)
class Update:
    """The batches of one update, and the place in the data after it.

    Attributes:
        batches: this process's share of them, on the host; one unless gradients are accumulated.
        target_tokens: to predict, over all processes, padding not counted.
        epoch, position: the next update begins with batch `position` of `epoch`.
        stage_epoch: the epoch with which the next update's stage began.
    """

    batches: list[Batch]
    target_tokens: int
    epoch: int
    position: int
    stage_epoch: int


def updates(
    data: ParallelDataset,
    *,
    tokens_per_batch: int,
    accumulate: int,
    seed: int,
    epoch: int,
    position: int,
    stages: Sequence[Stage] | None = None,
    update: int = 0,
    stage_epoch: int = 0,
    rank: int = 0,
    count: int = 1,
    pinned: bool = False,
) -> Iterator[Update]:
    """An endless stream of updates, from batch `position` of `epoch` on.

    Without `stages` an epoch holds every pair once; with them what `Mixture` draws of the parts of `data`, and the last
    update of a stage cuts its epoch. `update` of them were made before, and `stage_epoch` is the first epoch of their
    stage.

    Every `count`-th row of each batch, from `rank` on, is this process's share, so that the batches, and with
    them the gradients, do not depend on the number of processes. `pinned` batches are in page-locked memory, from
    which a CUDA device copies them while it computes.

    Raises:
        UserError: a single pair is longer than `tokens_per_batch`.
    """
    mixture = None if stages is None else Mixture(stages, data.parts, seed)
    while True:
        rows = until = None
        if mixture is not None and stages is not None:
            stage = mixture.stage_after(update)
            rows, until = mixture.rows(stage, epoch - stage_epoch), stages[stage].until
        order = _order(data, rows, tokens_per_batch, seed, epoch)
        order = islice(order, position, None if until is None else position + (until - update) * accumulate)
        following = list(islice(order, accumulate))
        while window := following:
            following = list(islice(order, accumulate))
            update += 1
            if update == until:  # the next begins another stage
                stage_epoch = epoch + 1
            # The last update of an epoch leads to the next one's start, and so does its checkpoint.
            position += len(window)
            after = (epoch, position) if following else (epoch + 1, 0)
            tokens = sum(int(data.target.lengths[batch].sum()) for batch in window)
            batches = [_share(data, batch, rank, count) for batch in window]
            if pinned:
                batches = [batch.pin_memory() for batch in batches]
            yield Update(batches, tokens, *after, stage_epoch)
        epoch, position = epoch + 1, 0


def _order(
    data: ParallelDataset, rows: NDArray[np.int64] | None, tokens_per_batch: int, seed: int, epoch: int
) -> Iterator[NDArray[np.int64]]:
    """The batches of an epoch of these rows, or of all."""
    source, target = data.source.lengths, data.target.lengths
    drawn = (source, target) if rows is None else (source[rows], target[rows])
    batches = epoch_batches(*drawn, tokens_per_batch=tokens_per_batch, seed=seed, epoch=epoch)
    return batches if rows is None else (rows[batch] for batch in batches)


def _share(data: ParallelDataset, batch: NDArray[np.int64], rank: int, count: int) -> Batch:
    mine = batch[rank::count]
    if len(mine):
        return collate(data, mine)
    # Fewer pairs than processes: this process only takes part in the all-reduce, with no target to predict.
    spare = collate(data, batch[:1])
    return spare._replace(target_out=torch.full_like(spare.target_out, PAD))


@contextmanager
def prefetch(items: Iterator[Item]) -> Generator[Iterator[Item]]:
    """The items of an iterator, computed by another thread up to `PREFETCHED` of them before they are needed.

    An exception in the thread is raised where its item would have come; the thread ends with the block.
    """
    with ThreadPoolExecutor(1, "updates") as thread:

        def received() -> Iterator[Item]:
            coming = deque(thread.submit(next, items, None) for _ in range(PREFETCHED))
            while (item := coming.popleft().result()) is not None:
                coming.append(thread.submit(next, items, None))
                yield item

        try:
            yield received()
        finally:
            thread.shutdown(cancel_futures=True)
