"""Training over epochs, whose batches have ever new shapes, beside the same few batches again and again.

What is compiled for a shape, by oneDNN or by torch.compile, costs time where the shape is new; repeated batches show
nothing of it. Knows batches and clocks; no screen.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from endeavour.benchmark.contenders import make_contender
from endeavour.benchmark.host_costs import compiled_so_far
from endeavour.benchmark.measure import spread
from endeavour.benchmark.process import in_fresh_process
from endeavour.benchmark.task import BatchRows, Task
from endeavour.benchmark.training import precision_in, prepare_process, rate, run_updates
from endeavour.data.dataset import ParallelDataset

PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}


def measure_epochs(task: Task, name: str) -> dict[str, Any]:
    """A row: two epochs, or their beginnings, in a process of its own, each followed by turns over its first batches.

    Args:
        task: without rows; a turn has as many of an epoch's batches as `updates` says.
        name: of the contender that is measured, one of ours.
    """
    return in_fresh_process(_train_epochs, name, task)


def _train_epochs(name: str, task: Task) -> dict[str, Any]:
    """Runs in a process of its own."""
    settings = task.settings
    prepare_process(name, task.device)
    dataset = task.dataset()
    contender = make_contender(name, task)
    epochs = [task.epoch(number, settings.epoch_updates) for number in range(2)]
    rates: list[float] = []
    repeated: list[float] = []
    for rows in epochs:
        rates.append(rate(contender, dataset, rows))
        first = rows[: settings.updates]
        repeated += [rate(contender, dataset, first) for _ in range(settings.repeats)]
    repeated_rate = spread(repeated)
    compiled = compiled_so_far()
    shapes = batches_by_shape(dataset, [*epochs[0], *epochs[1]])
    return {
        "size": task.model.name,
        "precision": precision_in(name),
        "updates": [len(rows) for rows in epochs],
        "first_epoch_tokens_per_second": rates[0],
        "second_epoch_tokens_per_second": rates[1],
        "repeated_tokens_per_second": repeated_rate,
        "second_by_repeated": rates[1] / repeated_rate["median"],
        "batch_shapes": len(shapes),
        "product_shapes": len(product_shapes(task, name, list(shapes.values())))
        if task.device.type == "cpu"
        else None,
        **compiled,
    }


def batches_by_shape(dataset: ParallelDataset, rows: Sequence[BatchRows]) -> dict[tuple[int, ...], BatchRows]:
    """One batch of each shape: pairs, longest source, longest target."""
    sides = (dataset.source.lengths, dataset.target.lengths)
    return {(len(batch), *(int(lengths[batch].max()) for lengths in sides)): batch for batch in rows}


def product_shapes(task: Task, name: str, rows: Sequence[BatchRows]) -> set[tuple[object, ...]]:
    """The shapes and layouts of all matrix products in updates on these batches, forward and backward.

    A model with one layer on either side has all of them, in a fraction of the time.
    """
    model = replace(task.model, encoder_layers=1, decoder_layers=1)
    settings = replace(task.settings, compile="never", cuda_graphs="never")
    contender = make_contender(name, replace(task, model=model, settings=settings))
    with _Products() as products:
        run_updates(contender, task.dataset(), rows)
    return products.shapes


class _Products(TorchDispatchMode):
    """Notes the matrix products that are computed while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple[object, ...]] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.name().partition(".")[0].rstrip("_") in PRODUCTS:
            factors = [one for one in args if isinstance(one, torch.Tensor)][-2:]
            self.shapes.add(tuple((tuple(one.shape), one.stride(-1) == 1) for one in factors))
        return func(*args, **(kwargs or {}))
