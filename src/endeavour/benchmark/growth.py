"""How the speed of training grows with the batch and falls with the width: numbers, and a picture of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from endeavour.benchmark.contenders import TrainingTask, make_contender
from endeavour.benchmark.measure import spread, timed
from endeavour.benchmark.training import count, draw_rows, flop_of, run_updates
from endeavour.data.dataset import ParallelDataset
from endeavour.model.transformer import ModelConfig

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
        rows.append(
            {"varied": varied, "tokens_per_batch": batch, "width": model.width}
            | _point(replace(task, model=model, rows=drawn), name, repeats)
        )
        done()
    return rows


def widened(model: ModelConfig, width: int) -> ModelConfig:
    """The model at another width, in the proportions of the literature: feed-forward 4 × width, heads of 64."""
    return replace(model, width=width, feed_forward=4 * width, num_heads=max(1, width // HEAD_WIDTH))


def _point(task: TrainingTask, name: str, repeats: int) -> dict[str, Any]:
    dataset = ParallelDataset.open(task.data, "train")
    contender = make_contender(name, task)
    run_updates(contender, dataset, task.rows[: max(1, task.warmup)])
    seconds = [timed(lambda: run_updates(contender, dataset, task.rows), task.device) for _ in range(repeats)]
    return {
        "updates": len(task.rows),
        "seconds": seconds,
        "target_tokens_per_second": spread(count(dataset, task.rows)["target_tokens"], seconds),
        "flop_per_second": spread(flop_of(task, dataset), seconds)["median"],
    }


def draw_growth(rows: Sequence[dict[str, Any]], path: Path, *, title: str) -> None:
    """Draws target tokens/s against batch size and against width into a PNG; bars reach from lowest to highest."""
    # Imported here: it takes half a second that no other stage should pay.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, parse_math=False)
    panels = (
        ("batch", "tokens_per_batch", "tokens per batch"),
        ("width", "width", "width (feed-forward 4 × width)"),
    )
    for axes, (varied, key, label) in zip(figure.subplots(1, 2), panels, strict=True):
        points = sorted((row for row in rows if row["varied"] == varied), key=lambda row: row[key])
        places = [row[key] for row in points]
        rates = [row["target_tokens_per_second"] for row in points]
        axes.errorbar(
            places,
            [rate["median"] for rate in rates],
            yerr=[
                [rate["median"] - rate["lowest"] for rate in rates],
                [rate["highest"] - rate["median"] for rate in rates],
            ],
            color="#1d4ed8",
            marker="o",
            markersize=4,
            capsize=3,
        )
        axes.set_xscale("log", base=2)
        axes.set_xticks(places, [str(place) for place in places])
        axes.minorticks_off()
        axes.set_xlabel(label)
        axes.set_ylabel("target tokens/s")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
