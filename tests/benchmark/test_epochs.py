"""What an epoch meets: its shapes are counted, those of batches and those of products."""

from collections.abc import Callable

import pytest
import torch

from endeavour.benchmark import epochs, training
from endeavour.benchmark.contenders import make_contender
from endeavour.benchmark.epochs import batches_by_shape, measure_epochs, product_shapes
from endeavour.benchmark.measure import spread
from endeavour.benchmark.task import Task
from endeavour.benchmark.training import count, run_updates
from endeavour.data.batching import collate

MakeTask = Callable[..., Task]
NAME = "endeavour fp32"


def test_one_batch_of_each_shape_is_kept(make_task: MakeTask) -> None:
    task = make_task(updates=40)
    dataset = task.dataset()
    kept = batches_by_shape(dataset, [*task.rows, *task.rows])
    shapes = [collate(dataset, rows) for rows in task.rows]
    assert set(kept) == {(*batch.source.shape, batch.target_out.shape[1]) for batch in shapes}


def test_one_layer_has_the_products_of_all_layers(make_task: MakeTask) -> None:
    """So the count of the smaller model is that of the whole."""
    task = make_task("model.decoder_layers=3", updates=4)
    dataset = task.dataset()
    rows = list(batches_by_shape(dataset, task.rows).values())
    assert len(rows) > 1
    counted = product_shapes(task, NAME, rows)
    contender = make_contender(NAME, task)
    with epochs._Products() as products:  # pyright: ignore[reportPrivateUsage]
        run_updates(contender, dataset, rows)
    assert products.shapes == counted
    assert len(product_shapes(task, NAME, rows[:1])) < len(counted)


def test_a_product_counts_once_for_each_shape_and_layout() -> None:
    with epochs._Products() as products:  # pyright: ignore[reportPrivateUsage]
        for _ in range(2):
            torch.matmul(torch.ones(2, 3), torch.ones(3, 4))
            torch.matmul(torch.ones(2, 3), torch.ones(4, 3).T)
            torch.matmul(torch.ones(5, 2, 3), torch.ones(5, 3, 4))
            torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4))  # as the second
    assert len(products.shapes) == 3


def test_both_epochs_are_trained_on_and_repeated_batches_after_each(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task("bench.epoch_updates=5")
    dataset = task.dataset()
    first, second = (task.epoch(number, 5) for number in range(2))
    assert any((one[:3] != other[:3]).any() for one, other in zip(first, second, strict=True))
    trained: list[list[int]] = []

    def noting(_contender: object, _dataset: object, rows: list[list[int]]) -> None:
        trained.append([len(batch) for batch in rows])

    def nothing(*_: object) -> None:
        pass

    def at_once(function: Callable[..., object], *rest: object) -> object:
        return function(*rest)

    monkeypatch.setattr(training, "run_updates", noting)
    seconds = iter((2.0, 0.25, 0.5, 4.0, 0.5, 1.0))
    monkeypatch.setattr(training, "timed", lambda work, _: work() or next(seconds))
    monkeypatch.setattr(epochs, "prepare_process", nothing)
    monkeypatch.setattr(epochs, "in_fresh_process", at_once)
    row = measure_epochs(task, NAME)
    turns = (first, first[:2], first[:2], second, second[:2], second[:2])
    assert trained == [[len(batch) for batch in rows] for rows in turns]
    assert row["updates"] == [5, 5]
    assert row["batch_shapes"] == len(batches_by_shape(dataset, [*first, *second]))
    tokens = [count(dataset, rows)["target_tokens"] for rows in turns]
    assert row["first_epoch_tokens_per_second"] == tokens[0] / 2
    assert row["second_epoch_tokens_per_second"] == tokens[3] / 4
    assert row["repeated_tokens_per_second"] == spread(
        [tokens[1] * 4, tokens[2] * 2, tokens[4] * 2, tokens[5]]
    )
    middle = row["repeated_tokens_per_second"]["median"]
    assert row["second_by_repeated"] == row["second_epoch_tokens_per_second"] / middle
