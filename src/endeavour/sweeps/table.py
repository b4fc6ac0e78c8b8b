"""The table of a sweep: one row a run, read from the summary.json each run leaves in its folder.

Knows summaries only: neither how runs are started nor what a metric means, beyond whether more of it is
better.
"""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, cast

from rich.table import Table
from rich.text import Text

from endeavour.errors import UserError
from endeavour.nested import flatten
from endeavour.storage import write_atomically

# In the order of the table: a pruned run was ended early because it did worse than others.
STATUSES = FINISHED, PRUNED, FAILED = "finished", "pruned", "failed"

_LESS_IS_BETTER = {"loss", "perplexity"}

Row = dict[str, object]


def collect(run_folders: Sequence[Path], overrides: Sequence[Mapping[str, object]]) -> list[Row]:
    """Read `<run>/summary.json` of each run into one flat row, in the order given.

    `overrides` holds what each run was started with, key by key.

    Columns: `name`, the overrides in which the runs differ, `status`, the metrics by dotted name
    (`validation.bleu`, `test.<split>.chrf`), and what else the summary holds (`updates`, `minutes`,
    `error`). A row has only the columns that it has values for. A run without a readable summary is a failed row.
    """
    summaries = [_read(folder) for folder in run_folders]
    names = dict.fromkeys(name for chosen in overrides for name in chosen)
    differing = [name for name in names if len({repr(chosen.get(name)) for chosen in overrides}) > 1]
    rows: list[Row] = []
    for summary, chosen in zip(summaries, overrides, strict=True):
        row: Row = {"name": summary.pop("name")}
        row |= {name: chosen[name] for name in differing if name in chosen}
        row["status"] = summary.pop("status")
        for key, value in flatten(summary).items():
            if value is not None and value != {}:
                row[key] = " ".join(map(str, cast(list[object], value))) if isinstance(value, list) else value
        rows.append(row)
    return rows


def sort_rows(rows: Sequence[Row], sort_by: str) -> list[Row]:
    """Finished runs by the column `sort_by`, best first; then those without a number there; then pruned and
    failed ones.

    Raises UserError where there are numbers to sort by in some columns, but in no row in this one.
    """
    finished = [row for row in rows if row["status"] == FINISHED]
    if finished and not any(sort_by in row for row in finished):
        numeric = [column for column in _columns(finished) if _is_metric(column)]
        raise UserError(f"no run has a result named {sort_by!r}; there are: {', '.join(numeric) or 'none'}")
    sign = 1.0 if less_is_better(sort_by) else -1.0

    def key(row: Row) -> tuple[int, bool, float]:
        value, order = row.get(sort_by), STATUSES.index(str(row["status"]))
        if not isinstance(value, int | float) or not math.isfinite(value):
            return order, True, 0.0
        return order, False, sign * value

    return sorted(rows, key=key)


def less_is_better(column: str) -> bool:
    return column.rpartition(".")[2] in _LESS_IS_BETTER


def results_table(rows: Sequence[Row], sorted_by: str) -> Table:
    """The rows, which were sorted by this column, as a table for the terminal; failed runs stand out in red, and what
    went wrong in them stands below.
    """
    columns = [column for column in _columns(rows) if column != "error"]
    errors = [f"{row['name']}: {row['error']}" for row in rows if "error" in row]
    table = Table(
        title=f"{len(rows)} runs, by {sorted_by}",
        caption=Text("\n".join(errors)) if errors else None,
        caption_justify="left",
    )
    for column in columns:
        numeric = any(isinstance(row.get(column), int | float) for row in rows)
        heading = column.replace(".", ".\n")  # dotted names are wider than their numbers
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        style = {FAILED: "red", PRUNED: "dim"}.get(str(row["status"]), "")
        table.add_row(*(Text(_cell(column, row.get(column))) for column in columns), style=style)
    return table


def seeds_table(rows: Sequence[Row], swept: Sequence[str]) -> Table | None:
    """Mean and standard deviation of each metric over finished runs that differ in the seed alone.

    Args:
        swept: the keys that were.

    Returns:
        A row for each choice of the other keys; None where no two runs differ in the seed alone.
    """
    # A key with the same value in all rows has no column.
    others = [key for key in swept if key != "seed" and any(key in row for row in rows)]
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["status"] == FINISHED:
            groups.setdefault(tuple(str(row.get(key)) for key in others), []).append(row)
    groups = {chosen: group for chosen, group in groups.items() if len(group) > 1}
    if "seed" not in swept or not groups:
        return None
    metrics = [column for column in _columns(rows) if _is_metric(column)]
    table = Table(*others, title="mean and standard deviation over seeds")
    for heading in ("seeds", *(metric.replace(".", ".\n") for metric in metrics)):
        table.add_column(heading, justify="right")
    for chosen, group in groups.items():
        table.add_row(*map(Text, chosen), str(len(group)), *(_spread(metric, group) for metric in metrics))
    return table


def _spread(metric: str, group: Sequence[Row]) -> str:
    values = [value for row in group if isinstance(value := row.get(metric), float)]
    if len(values) < len(group) or not all(map(math.isfinite, values)):
        return "–"
    return f"{_cell(metric, mean(values))}, {_cell(metric, stdev(values))}"


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write all rows in their order under all their columns: numbers in full, missing values empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.getvalue())


def _read(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    try:
        return cast(dict[str, Any], json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        error = f"no {path.name}: the run did not start or was killed"
    except (json.JSONDecodeError, UnicodeDecodeError):
        error = f"{path.name} is not JSON"
    return {"name": folder.name, "status": FAILED, "error": error}


def _columns(rows: Sequence[Row]) -> list[str]:
    """All columns, in the order of the fullest row; columns it lacks follow, `error` last."""
    fullest_first = sorted(rows, key=len, reverse=True)
    columns = list(dict.fromkeys(column for row in fullest_first for column in row))
    return sorted(columns, key=lambda column: column == "error")


def _is_metric(column: str) -> bool:
    return column.startswith(("validation.", "test."))


def _cell(column: str, value: object) -> str:
    """Two decimals for what was measured (three for a loss); settings as they are."""
    if value is None:
        return "–"
    if isinstance(value, float) and (_is_metric(column) or column == "minutes"):
        return f"{value:.3f}" if column.endswith("loss") else f"{value:.2f}"
    return str(value)
