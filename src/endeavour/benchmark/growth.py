"""How the speed of training grows with the batch and falls with the width: numbers, and a picture of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from endeavour.benchmark.contenders import TrainingTask, make_contender
from endeavour.benchmark.measure import rates, timed
from endeavour.benchmark.training import count, draw_rows, flop_of, run_updates, warm_up
from endeavour.data.dataset import ParallelDataset
from endeavour.model.config import ModelConfig

HEAD_WIDTH = 64  # as in both models of Vaswani et al. 2017, table 3


def measure_growth(
    task: TrainingTask,
    name: str,
    *,
    tokens: int,
    tokens_per_batch: int,
    batches: Sequence[int],
    widths: Sequence[int],
    repeats: int,
    done: Callable[[], None],
) -> list[dict[str, Any]]:
    """One row a point: the batch varied at the task's width, then the width at `tokens_per_batch`.

    Args:
        task: whose rows are replaced by enough batches to hold `tokens` padded tokens.
        name: of the contender that is measured.
    """
    points = [("batch", batch, task.model) for batch in batches]
    points += [("width", tokens_per_batch, widened(task.model, width)) for width in widths]
    rows: list[dict[str, Any]] = []
    for varied, batch, model in points:
        updates = max(1, round(tokens / batch))
        drawn = draw_rows(task.data, tokens_per_batch=batch, seed=task.seed, updates=updates)
        settings = replace(task.settings, tokens_per_batch=batch)
        rows.append(
            {"varied": varied, "tokens_per_batch": batch, "width": model.width}
            | _point(replace(task, model=model, settings=settings, rows=drawn), name, repeats)
        )
        done()
    return rows


def widened(model: ModelConfig, width: int) -> ModelConfig:
    """The model at another width, in the proportions of the literature: feed-forward 4 × width, heads of 64."""
    return replace(model, width=width, feed_forward=4 * width, num_heads=max(1, width // HEAD_WIDTH))


def _point(task: TrainingTask, name: str, repeats: int) -> dict[str, Any]:
    dataset = ParallelDataset.open(task.data, "train")
    contender = make_contender(name, task)
    warm_up(contender, dataset, task)
    seconds = [timed(lambda: run_updates(contender, dataset, task.rows), task.device) for _ in range(repeats)]
    return {
        "updates": len(task.rows),
        "seconds": seconds,
        "target_tokens_per_second": rates(count(dataset, task.rows)["target_tokens"], seconds),
        "flop_per_second": rates(flop_of(task, dataset), seconds)["median"],
    }
