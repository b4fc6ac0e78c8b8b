"""What is measured: settings, a model, and batches of a prepared corpus. Knows no contenders, and no clocks."""

from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from endeavour.benchmark.config import BenchConfig
from endeavour.data.batching import epoch_batches
from endeavour.data.dataset import ParallelDataset
from endeavour.decoding.config import DecodingConfig
from endeavour.model.config import ModelConfig

BatchRows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What all contenders share, also in processes of their own.

    Attributes:
        decoding: settings of engines that batch by themselves; beam, lengths and ranking are replaced.
        vocabularies: ids of source and target.
        data: a prepared folder, whose training split is read.
        rows: the pairs of each update; those of the first `warmup_updates`, or all where something is made for their
            shapes, are trained on before, unmeasured.
    """

    settings: BenchConfig
    model: ModelConfig
    decoding: DecodingConfig
    vocabularies: tuple[int, int]
    data: Path
    device: torch.device
    seed: int
    rows: tuple[BatchRows, ...] = ()

    def dataset(self) -> ParallelDataset:
        """The pairs that are trained on, and whose sources are translated."""
        return ParallelDataset.open(self.data, "train")

    def epoch(self, number: int, updates: int) -> tuple[BatchRows, ...]:
        """The pairs of each batch, of the first `updates`, in one epoch of training on this data."""
        dataset = self.dataset()
        batches = epoch_batches(
            dataset.source.lengths,
            dataset.target.lengths,
            tokens_per_batch=self.settings.tokens_per_batch,
            seed=self.seed,
            epoch=number,
        )
        return tuple(islice(batches, updates))

    def with_rows(self, updates: int) -> "Task":
        """With the pairs of the first `updates` batches of training on this data; a short epoch is repeated."""
        return replace(self, rows=tuple(islice(cycle(self.epoch(0, updates)), updates)))
