"""The table of a sweep: what stands in it, in which order, on the screen and in the file."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from endeavour.errors import UserError
from endeavour.sweeps.table import Row, collect, results_table, seeds_table, sort_rows, write_csv

BLEU = "test.heldout.bleu"


def _run(folder: Path, name: str, bleu: float | None, **more: Any) -> Path:
    summary: dict[str, Any] = {
        "name": name,
        "status": "finished",
        "error": None,
        "validation": {"bleu": 20.0, "loss": 2.0},
        "test": {"heldout": {"bleu": bleu, "chrf": 50.0}},
        "updates": 100,
        "minutes": 1.5,
    }
    run = folder / name
    run.mkdir()
    (run / "summary.json").write_text(json.dumps(summary | more), encoding="utf-8")
    return run


def _collect(folders: list[Path]) -> list[Row]:
    """As a sweep does: each run was started with the model and the seed that its name tells."""
    parts = [folder.name.split("-") for folder in folders]
    overrides = [{"model": model, "seed": int(seed), "corpus": "textbook"} for model, seed in parts]
    return collect(folders, overrides)


@pytest.fixture
def sweep(tmp_path: Path) -> list[Path]:
    """Two finished runs, one that failed, one that left nothing, and one of half a file."""
    failed = {"status": "failed", "error": "the loss is not finite", "validation": {}, "test": {}}
    killed, torn = tmp_path / "small-2", tmp_path / "base-1"
    killed.mkdir()
    torn.mkdir()
    (torn / "summary.json").write_text('{"name": "ba')
    return [
        _run(tmp_path, "tiny-2", None, **failed),
        killed,
        _run(tmp_path, "tiny-1", 21.123456789),
        torn,
        _run(tmp_path, "small-1", 30.5),
    ]


def test_runs_that_differ_in_the_seed_alone_have_a_mean_and_a_deviation(tmp_path: Path) -> None:
    bleus = {"tiny-1": 20.0, "tiny-2": 23.0, "tiny-3": 26.0, "small-1": 30.0, "small-2": None, "base-1": 40.0}
    rows = _collect([_run(tmp_path, name, bleu) for name, bleu in bleus.items()])
    rows[-1]["status"] = "pruned"
    table = seeds_table(rows, ["corpus", "model", "seed"])  # of one corpus, which is no column
    assert table is not None
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in _text(table).splitlines()]
    small, tiny = (next(line for line in lines if line[:1] == [name]) for name in ("small", "tiny"))
    column = next(i for i, cell in enumerate(tiny) if cell == "23.00, 3.00")
    assert (tiny[1], small[1], small[column]) == ("3", "2", "–")
    assert not any(line[:1] == ["base"] for line in lines)
    rows[0]["model"] = rows[1]["model"] = "[/a.tsv]"  # which is no markup
    rows[0][BLEU] = math.nan
    assert "[/a.tsv]" in _text(seeds_table(rows, ["model", "seed"]))
    assert seeds_table(rows, ["model"]) is None
    assert seeds_table(rows[3:4], ["model", "seed"]) is None


def _text(table: Table, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_rows_hold_the_overrides_that_differ_and_the_metrics(sweep: list[Path]) -> None:
    row = _collect(sweep)[4]
    assert row == {
        "name": "small-1",
        "model": "small",
        "seed": 1,
        "status": "finished",
        "validation.bleu": 20.0,
        "validation.loss": 2.0,
        BLEU: 30.5,
        "test.heldout.chrf": 50.0,
        "updates": 100,
        "minutes": 1.5,
    }


def test_columns_are_the_overrides_in_which_runs_differ_and_a_list_is_one_value(tmp_path: Path) -> None:
    runs = [_run(tmp_path, f"tiny-{seed}", 1.0, checkpoints=["update-3", "update-6"]) for seed in (1, 2)]
    first, second = collect(
        runs, [{"model": "tiny", "seed": 1}, {"model": "tiny", "seed": 2, "dropout": 0.1}]
    )
    assert "model" not in first
    assert (first["seed"], second["seed"]) == (1, 2)
    assert "dropout" not in first
    assert second["dropout"] == 0.1
    assert first["checkpoints"] == "update-3 update-6"


def test_what_no_run_has_is_no_column(tmp_path: Path) -> None:
    (row,) = collect([_run(tmp_path, "tiny-1", None, test={})], [{}])
    assert "test" not in row


def test_runs_without_a_readable_summary_are_failed_rows_with_the_reason(sweep: list[Path]) -> None:
    _, killed, _, torn, _ = _collect(sweep)
    assert (killed["name"], killed["status"]) == ("small-2", "failed")
    assert "no summary.json" in str(killed["error"])
    assert (torn["name"], torn["status"]) == ("base-1", "failed")
    assert "not JSON" in str(torn["error"])


def test_best_first_and_failed_last_however_good_its_score(sweep: list[Path], tmp_path: Path) -> None:
    sweep.append(_run(tmp_path, "big-1", 99.0, status="failed"))
    names = [row["name"] for row in sort_rows(_collect(sweep), BLEU)]
    assert names[:2] == ["small-1", "tiny-1"]
    assert set(names[2:]) == {"tiny-2", "small-2", "base-1", "big-1"}


def test_less_loss_is_better_and_no_number_is_worse_than_any(tmp_path: Path) -> None:
    losses = {"tiny-1": 3.0, "tiny-2": math.nan, "tiny-3": 2.0, "tiny-4": None}
    runs = [_run(tmp_path, name, 1.0, validation={"loss": loss}) for name, loss in losses.items()]
    names = [row["name"] for row in sort_rows(_collect(runs), "validation.loss")]
    assert names == ["tiny-3", "tiny-1", "tiny-2", "tiny-4"]


def test_an_unknown_column_is_refused_with_the_known_ones(sweep: list[Path]) -> None:
    with pytest.raises(UserError, match=r"'test\.bleu'.*validation\.bleu.*test\.heldout\.bleu"):
        sort_rows(_collect(sweep), "test.bleu")


def test_the_screen_shows_every_run_in_order_and_reasons_of_failures_below(
    sweep: list[Path], tmp_path: Path
) -> None:
    sweep.append(_run(tmp_path, "big-1", 1.0, status="failed", error="bad value [red]x[/nothing]"))
    table, _, below = _text(results_table(sort_rows(_collect(sweep), BLEU), BLEU), width=120).partition("└")
    positions = [table.index(name) for name in ("small-1", "tiny-1", "tiny-2")]
    assert positions == sorted(positions)
    for part in ("30.50", "21.12", "2.000", "6 runs"):
        assert part in table
    assert "not finite" not in table  # it would squeeze the numbers
    assert "tiny-2: the loss is not finite" in below
    assert "[red]x[/nothing]" in below
    assert "small-2" in _text(results_table(_collect(sweep[:2]), BLEU))  # though all of them failed


def test_the_csv_reads_back_with_full_numbers_and_all_columns(sweep: list[Path], tmp_path: Path) -> None:
    rows = sort_rows(_collect(sweep), BLEU)
    path = tmp_path / "sweeps" / "results.csv"
    write_csv(path, rows)
    with path.open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["name"] for row in read] == [row["name"] for row in rows]
    assert list(read[0])[:4] == ["name", "model", "seed", "status"]
    assert list(read[0])[-1] == "error"
    assert float(read[1][BLEU]) == 21.123456789
    assert read[4][BLEU] == ""
