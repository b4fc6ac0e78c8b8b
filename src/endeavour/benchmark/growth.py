"""How the speed of training grows with the batch and falls with the width."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from endeavour.benchmark.contenders import make_contender
from endeavour.benchmark.measure import rates, timed
from endeavour.benchmark.task import Task
from endeavour.benchmark.training import count, flop_of, run_updates, warm_up
from endeavour.model.config import ModelConfig

HEAD_WIDTH = 64  # as in both models of Vaswani et al. 2017, table 3


def measure_growth(task: Task, name: str, *, done: Callable[[], None]) -> list[dict[str, Any]]:
    """One row a point: the batch varied at the task's width, then the width at the batch of the settings.

    Args:
        task: without rows; those of a point hold `growth_tokens` padded tokens.
        name: of the contender that is measured.
    """
    settings = task.settings
    points = [("batch", batch, task.model) for batch in settings.growth_batches]
    points += [
        ("width", settings.tokens_per_batch, widened(task.model, width)) for width in settings.growth_widths
    ]
    rows: list[dict[str, Any]] = []
    for varied, batch, model in points:
        point = replace(task, model=model, settings=replace(settings, tokens_per_batch=batch))
        updates = max(1, round(settings.growth_tokens / batch))
        rows.append(
            {"varied": varied, "tokens_per_batch": batch, "width": model.width}
            | _point(point.with_rows(updates), name)
        )
        done()
    return rows


def widened(model: ModelConfig, width: int) -> ModelConfig:
    """The model at another width, in the proportions of the literature: feed-forward 4 × width, heads of 64."""
    return replace(model, width=width, feed_forward=4 * width, num_heads=max(1, width // HEAD_WIDTH))


def _point(task: Task, name: str) -> dict[str, Any]:
    dataset = task.dataset()
    contender = make_contender(name, task)
    warm_up(contender, dataset)
    seconds = [
        timed(lambda: run_updates(contender, dataset, task.rows), task.device)
        for _ in range(task.settings.repeats)
    ]
    return {
        "updates": len(task.rows),
        "seconds": seconds,
        "target_tokens_per_second": rates(count(dataset, task.rows)["target_tokens"], seconds),
        "flop_per_second": rates(flop_of(task, dataset), seconds)["median"],
    }
