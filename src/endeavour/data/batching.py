"""Which pairs share a batch, in which order, and as which tensors.

The order of an epoch depends on seed and epoch alone, so a resumed run only needs to know its position in
it. Knows lengths and ids; not text or models.

Shapes: batch = pairs; source, target = padded lengths, EOS or BOS included.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from endeavour.data.dataset import ParallelDataset
from endeavour.errors import UserError
from endeavour.special import BOS, EOS, PAD

BLOCK = 2_000_000  # rows that are sorted by length together


class Batch(NamedTuple):
    """One batch of pairs, padded with PAD on the right.

    Attributes:
        source: (batch, source) ids, rows ending in EOS.
        target_in: (batch, target) ids, BOS first, without EOS.
        target_out: (batch, target) ids, rows ending in EOS: `target_in` one step later.
    """

    source: Tensor
    target_in: Tensor
    target_out: Tensor

    @property
    def target_tokens(self) -> int:
        """Tokens to predict: EOS counts, padding does not."""
        return int((self.target_out != PAD).sum())

    @property
    def padding(self) -> tuple[int, int]:
        """(padding cells, all cells) of source and target together."""
        cells = self.source.numel() + self.target_out.numel()
        return cells - int((self.source != PAD).sum()) - self.target_tokens, cells

    def pin_memory(self) -> "Batch":
        """The same in page-locked memory, from which copies to a CUDA device do not block the host."""
        return Batch(*(ids.pin_memory() for ids in self))

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(ids.to(device, non_blocking=True) for ids in self))


def require_pair_fits(longest: int, tokens_per_batch: int, key: str = "training.tokens_per_batch") -> None:
    """Raises `UserError` where the longer side of a pair has more tokens than a batch; `key` says how many it has."""
    if longest > tokens_per_batch:
        raise UserError(
            f"{key}={tokens_per_batch} is less than the longest pair, {longest} tokens: "
            "raise it or lower cleaning.max_tokens"
        )


def epoch_batches(
    source_lengths: NDArray[np.int32],
    target_lengths: NDArray[np.int32],
    *,
    tokens_per_batch: int,
    seed: int,
    epoch: int,
) -> Iterator[NDArray[np.int64]]:
    """The batches of one epoch, as row numbers: every row exactly once, in an order drawn from (seed, epoch).

    Pairs of similar lengths share a batch: rows are sorted by their longer side, then by the difference of the sides,
    ties in random order, cut where pairs × longest side would exceed `tokens_per_batch`, and the batches shuffled.
    In all batches but the last the number of pairs is cut to its five leading binary digits: fewer shapes, for
    each of which a CPU's bf16 products are compiled.

    More rows than `BLOCK` are so sorted in blocks, of which each holds every n-th row, one after the other, so that
    the first batch of 50 million pairs comes as soon as that of two.

    Raises:
        UserError: a single pair is longer than the budget.
    """
    require_pair_fits(int(max(source_lengths.max(), target_lengths.max())), tokens_per_batch)
    random = np.random.default_rng((seed, epoch))
    count = math.ceil(len(source_lengths) / BLOCK)
    for first in random.permutation(count):
        source, target = source_lengths[first::count], target_lengths[first::count]
        order = _sorted(source, target, random.permutation(len(source)))
        batches = _cut(order, np.maximum(source, target)[order], tokens_per_batch)
        for i in random.permutation(len(batches)):
            yield first + count * batches[i]


def _sorted(
    source_lengths: NDArray[np.int32], target_lengths: NDArray[np.int32], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows that are in this order sorted by their longer side, then by the difference of the sides."""
    source, target = source_lengths[order], target_lengths[order]
    longest, difference = np.maximum(source, target), source - target
    # The difference rises and falls in turn, so that the two ends of neighbouring lengths fit together.
    signed = np.where(longest % 2, difference, -difference)
    lowest = signed.min()
    key = longest.astype(np.int64) * (signed.max() - lowest + 1) + (signed - lowest)
    # Numbers of 16 bits, which are enough for most data, are sorted in linear time.
    return order[np.argsort(key.astype(np.min_scalar_type(key.max())), kind="stable")]


def _cut(order: NDArray[np.int64], longest: NDArray[np.int32], budget: int) -> list[NDArray[np.int64]]:
    """Cuts rows that are sorted by their longer side."""
    batches: list[NDArray[np.int64]] = []
    start = 0
    while start < len(order):
        # No pair of the batch is shorter than its first, which bounds how many there can be.
        window = longest[start : start + budget // int(longest[start])].astype(np.int64)
        cells = window * np.arange(1, len(window) + 1)
        size = int(np.searchsorted(cells, budget, side="right"))
        if start + size < len(order):
            size -= size % (1 << max(0, size.bit_length() - 5))
        batches.append(order[start : start + size])
        start += size
    return batches


def collate(dataset: ParallelDataset, rows: Sequence[int] | NDArray[np.int64]) -> Batch:
    """Reads `rows` and pads them into one batch."""
    numbers = np.asarray(rows)
    source, target = (
        _padded(side.lengths[numbers], side.joined(numbers)) for side in (dataset.source, dataset.target)
    )
    target_in = target.roll(1, dims=1)
    target_in[target_in == EOS] = PAD  # the last token of every row is predicted and never read
    target_in[:, 0] = BOS
    return Batch(source, target_in, target)


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of ids to one (rows, longest) int64 tensor, filled with PAD on the right."""
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    return _padded(lengths, np.fromiter(chain.from_iterable(rows), np.int64))


def _padded(lengths: NDArray[np.integer], ids: NDArray[np.integer]) -> Tensor:
    """The ids of rows of these lengths, one row after the other, to one (rows, longest) int64 tensor."""
    padded = np.full((len(lengths), int(lengths.max())), PAD, np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = ids
    return torch.from_numpy(padded)


def length_batches(lengths: NDArray[np.int32], tokens_per_batch: int) -> list[NDArray[np.int64]]:
    """Row numbers for decoding: sorted by length, longest first, rows × longest within the budget.

    A row longer than the budget is a batch of its own.
    """
    order = np.argsort(-lengths, kind="stable")
    batches: list[NDArray[np.int64]] = []
    start = 0
    while start < len(order):
        rows = max(1, tokens_per_batch // max(1, int(lengths[order[start]])))
        batches.append(order[start : start + rows])
        start += rows
    return batches
