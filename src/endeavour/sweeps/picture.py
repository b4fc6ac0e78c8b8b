"""The picture of a sweep: the metric against each swept value, from the rows of its table alone."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from endeavour.reports.figures import BLUE, GREY, ORANGE, new_figure, save_png, tidy
from endeavour.sweeps.table import FINISHED, PRUNED, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# An axis is logarithmic from this ratio of the largest to the smallest value on.
DECADE = 10
COLUMNS = 3
# Marker and colour of each status; a pruned run is drawn where it ended.
_STYLES = {PRUNED: ("x", GREY), FINISHED: ("o", BLUE)}


def draw_results(rows: Sequence[Row], keys: Sequence[str], metric: str, path: Path) -> bool:
    """Draws one panel for each swept key into a PNG: `metric` over the key's values, in the order of `rows`.

    The first row is the best one and is ringed. Failed runs have no metric and are not there. Numbers stand on
    an axis, a logarithmic one where they span a decade; other values side by side, in the order of their names.

    Returns:
        False, and draws nothing, where no run has a metric.
    """
    drawn = [row for row in rows if isinstance(row.get(metric), int | float) and row["status"] in _STYLES]
    if not drawn or not keys:
        return False
    columns = min(COLUMNS, len(keys))
    lines = -(-len(keys) // columns)
    figure = new_figure(max(5.0, 4.2 * columns), 3.6 * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharey=True).flat
    for key, axes in zip(keys, panels, strict=False):
        _panel(axes, drawn, key, metric)
    for axes in list(panels):  # what is left of the last line
        axes.set_axis_off()
    figure.supylabel(metric, fontsize="medium")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
    save_png(figure, path)
    return True


def _panel(axes: "Axes", rows: Sequence[Row], key: str, metric: str) -> None:
    values = [str(row.get(key, "")) for row in rows]
    numbers = [_number(value) for value in values]
    places = [number for number in numbers if number is not None]
    if len(places) == len(values):
        if min(places) > 0 and max(places) / min(places) >= DECADE:
            axes.set_xscale("log")
    else:
        names = sorted(set(values))
        axes.set_xticks(range(len(names)), names, rotation=20 if len(names) > 4 else 0)
        axes.set_xlim(-0.5, len(names) - 0.5)
        places = [float(names.index(value)) for value in values]
    scores = [float(str(row[metric])) for row in rows]
    for status, (marker, color) in _STYLES.items():
        chosen = [index for index, row in enumerate(rows) if row["status"] == status]
        if chosen:
            at, reached = [places[index] for index in chosen], [scores[index] for index in chosen]
            axes.plot(at, reached, marker, color=color, markersize=5, label=status)
    if rows[0]["status"] == FINISHED:
        axes.plot(
            places[:1], scores[:1], "o", markersize=11, markerfacecolor="none", color=ORANGE, label="best"
        )
    axes.set_xlabel(key)
    tidy(axes)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
