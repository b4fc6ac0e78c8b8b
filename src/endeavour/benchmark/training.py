"""Training, ours and as others would write it, measured in turn on the same batches of a prepared corpus.

Reading and padding the batches is part of what is measured: on a GPU ours are prefetched in a thread, as in the loop,
all others are read in between. Knows no screen, and no files except for the prepared ones.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from endeavour.benchmark.config import OURS
from endeavour.benchmark.contenders import Contender, make_contender
from endeavour.benchmark.flops import update_flop
from endeavour.benchmark.host_costs import compiled_so_far, noted_waits
from endeavour.benchmark.measure import (
    first_tries,
    peak_device_memory,
    product_rate,
    rates,
    synchronize,
    timed,
)
from endeavour.benchmark.process import in_fresh_process, peak_memory
from endeavour.benchmark.task import BatchRows, Task
from endeavour.data.batching import collate
from endeavour.data.dataset import ParallelDataset
from endeavour.training.device import choose_device, keep_memory
from endeavour.training.precision import DTYPES


def measure_training(
    task: Task, names: Sequence[str], *, notes: list[str], done: Callable[[], None]
) -> list[dict[str, Any]]:
    """One row for each of `training_contenders`: `bench.repeats` turns of all, each over all of the task's batches.

    Every turn also times the machine's own matrix product in the model's shapes. Before all turns each contender trains
    on the same batches once in a process of its own, of which the first update, peak memory and host costs are; a
    reference that fails there has no row. It gets a line in `notes`, as does a contender that could be faster.
    `done` is called after each turn of each, and after each of those processes.
    """

    def attempt(name: str) -> dict[str, Any]:
        costs = in_fresh_process(_train_once, name, task)
        done()
        return costs

    alone = first_tries(names, attempt, notes)
    dataset = task.dataset()
    contenders = {name: make_contender(name, task) for name in alone}
    notes += [f"{name}: {contender.slower}" for name, contender in contenders.items() if contender.slower]
    for contender in contenders.values():
        warm_up(contender, dataset)
    seconds: dict[str, list[float]] = {name: [] for name in alone}
    products: dict[str, list[float]] = {precision_in(name): [] for name in alone}
    counts = count(dataset, task.rows)
    for _ in range(task.settings.repeats):
        for precision, found in products.items():
            found.append(_best_product(task, counts["target_tokens"] // len(task.rows), DTYPES[precision]))
        for name, contender in contenders.items():
            turn = partial(run_updates, contender, dataset, task.rows)
            seconds[name].append(timed(turn, task.device))
            done()
    return [
        _row(name, contender, task, counts, seconds[name], max(products[precision_in(name)])) | alone[name]
        for name, contender in contenders.items()
    ]


def warm_up(contender: Contender, dataset: ParallelDataset) -> None:
    """Trains on the first batches, or on all of them until whatever is made for their shapes is there."""
    task = contender.task
    first = task.rows[: task.settings.warmup_updates]
    run_updates(contender, dataset, task.rows * contender.passes or first)


def run_updates(contender: Contender, dataset: ParallelDataset, rows: Sequence[BatchRows]) -> None:
    """Reads, collates and trains on one batch after another."""
    with contender.read(collate(dataset, batch) for batch in rows) as batches:
        for batch in batches:
            contender.update(batch)


def rate(contender: Contender, dataset: ParallelDataset, rows: Sequence[BatchRows]) -> float:
    """Target tokens a second over these batches."""
    seconds = timed(lambda: run_updates(contender, dataset, rows), contender.task.device)
    return count(dataset, rows)["target_tokens"] / seconds


def count(dataset: ParallelDataset, rows: Sequence[BatchRows]) -> dict[str, int]:
    """Source and target tokens (EOS counts, padding does not), and the cells of the padded batches."""
    lengths = [(dataset.source.lengths[batch], dataset.target.lengths[batch]) for batch in rows]
    return {
        "source_tokens": sum(int(source.sum()) for source, _ in lengths),
        "target_tokens": sum(int(target.sum()) for _, target in lengths),
        "cells": sum(int(side.max()) * len(side) for pair in lengths for side in pair),
    }


def flop_of(task: Task, dataset: ParallelDataset) -> int:
    """Floating-point operations of all the task's updates, see `flops`."""
    rows = np.concatenate(task.rows)
    return update_flop(
        task.model,
        dataset.source.lengths[rows],
        dataset.target.lengths[rows],
        target_vocabulary=task.vocabularies[1],
    )


def precision_in(name: str) -> str:
    """Of the contender of that name."""
    return name.split()[1]


def _best_product(task: Task, tokens: int, precision: torch.dtype) -> float:
    """FLOP/s of the machine's fastest matrix product among the model's own shapes."""
    width = task.model.width
    inner = task.model.feed_forward
    shapes = [
        (width, width),
        (width, 3 * width),
        (width, inner),
        (inner, width),
        (width, task.vocabularies[1]),
    ]
    return max(
        product_rate(tokens, rows, columns, device=task.device, precision=precision)
        for rows, columns in shapes
    )


def _train_once(name: str, task: Task) -> dict[str, Any]:
    """Runs in a process of its own: trains on every batch, and notes as part of a row what that cost beside the
    arithmetic.
    """
    prepare_process(name, task.device)
    dataset = task.dataset()
    started = time.perf_counter()
    contender = make_contender(name, task)
    run_updates(contender, dataset, task.rows[:1])
    synchronize(task.device)
    first = time.perf_counter() - started
    if contender.graphed:
        warm_up(contender, dataset)
    with noted_waits(task.device) as waits:
        run_updates(contender, dataset, task.rows[1:])
    on_device = peak_device_memory(task.device, graphed=contender.graphed)
    return {
        "first_update_seconds": first,
        **compiled_so_far(),
        "waits_per_update": waits.total() / max(1, len(task.rows) - 1)
        if task.device.type == "cuda"
        else None,
        "waits": dict(waits),
        "peak_memory": peak_memory() if on_device is None else on_device,
    }


def prepare_process(name: str, device: torch.device) -> None:
    """What the train stage does before the first tensor, for a contender in a process of its own."""
    choose_device(str(device))  # with the kernels that are timed
    if name.startswith(OURS) and device.type == "cpu":
        keep_memory()


def _row(
    name: str,
    contender: Contender,
    task: Task,
    counts: dict[str, int],
    seconds: list[float],
    product: float,
) -> dict[str, Any]:
    tokens = counts["source_tokens"] + counts["target_tokens"]
    flop = flop_of(task, task.dataset())
    flop_rate = rates(flop, seconds)["median"]
    return {
        "size": task.model.name,
        "toolkit": name.split()[0],
        "parameters": sum(
            parameter.numel() for parameter in contender.model.parameters() if parameter.requires_grad
        ),
        "precision": precision_in(name),
        "updates": len(task.rows),
        "target_tokens": counts["target_tokens"],
        "source_tokens": counts["source_tokens"],
        "padding": 1 - tokens / counts["cells"],
        "seconds": seconds,
        "target_tokens_per_second": rates(counts["target_tokens"], seconds),
        "tokens_per_second": rates(tokens, seconds),
        "milliseconds_per_update": 1000 * statistics.median(seconds) / len(task.rows),
        "flop_per_update": flop / len(task.rows),
        "flop_per_second": flop_rate,
        "product_flop_per_second": product,
        "share_of_product": flop_rate / product,
    }
