"""The picture of a benchmark's growth part: how fast training is at each batch size and each width."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from endeavour.reports.figures import BLUE, new_figure, save_png, tidy

PANELS = (
    ("batch", "tokens_per_batch", "tokens per batch"),
    ("width", "width", "width (feed-forward 4 × width)"),
)


def draw_growth(rows: Sequence[dict[str, Any]], path: Path, *, title: str) -> None:
    """Draws target tokens/s against batch size and against width into a PNG; bars reach from lowest to highest."""
    figure = new_figure(9, 3.6)
    figure.suptitle(title, parse_math=False)
    for axes, (varied, key, label) in zip(figure.subplots(1, 2), PANELS, strict=True):
        points = sorted((row for row in rows if row["varied"] == varied), key=lambda row: row[key])
        places = [row[key] for row in points]
        rates = [row["target_tokens_per_second"] for row in points]
        medians = [rate["median"] for rate in rates]
        below = [rate["median"] - rate["lowest"] for rate in rates]
        above = [rate["highest"] - rate["median"] for rate in rates]
        axes.errorbar(places, medians, yerr=[below, above], color=BLUE, marker="o", markersize=4, capsize=3)
        axes.set_xscale("log", base=2)
        axes.set_xticks(places, [str(place) for place in places])
        axes.minorticks_off()
        axes.set(xlabel=label, ylabel="target tokens/s")
        axes.set_ylim(bottom=0)
        tidy(axes)
    save_png(figure, path)
