"""Four pairs of ids, and batches of such pairs, written by hand."""

from collections.abc import Sequence

import torch
from torch import Tensor

from endeavour.data.batching import Batch
from endeavour.special import BOS, EOS, PAD

ROWS = [([4, 5], [6, 7, 8]), ([6], [4]), ([7, 8, 5], [5, 5]), ([8], [7, 6, 5, 4])]


def batch(rows: Sequence[tuple[list[int], list[int]]]) -> Batch:
    """Of source and target ids, without special ones."""

    def padded(lines: list[list[int]]) -> Tensor:
        longest = max(map(len, lines))
        return torch.tensor([line + [PAD] * (longest - len(line)) for line in lines])

    return Batch(
        padded([[*source, EOS] for source, _ in rows]),
        padded([[BOS, *target] for _, target in rows]),
        padded([[*target, EOS] for _, target in rows]),
    )
