"""A sweep's picture: which panels, which axes, which points."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from endeavour.sweeps.picture import draw_results
from endeavour.sweeps.table import Row

BLEU = "validation.bleu"


def row(status: str, bleu: float | None, **values: str) -> Row:
    return {"name": "x", "status": status, **values} | ({} if bleu is None else {BLEU: bleu})


ROWS = [
    row("finished", 30.0, rate="0.001", model="tiny", dropout="0.1"),
    row("finished", 20.0, rate="0.0001", model="small", dropout="0.2"),
    row("pruned", 3.0, rate="0.01", model="tiny", dropout="0.1"),
    row("failed", None, rate="10", model="huge", dropout="0.3"),
]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Those that are saved, besides being saved."""
    saved: list[Figure] = []
    save = Figure.savefig

    def keep(self: Figure, *arguments: Any, **more: Any) -> None:
        saved.append(self)
        save(self, *arguments, **more)

    monkeypatch.setattr(Figure, "savefig", keep)
    return saved


def test_one_panel_a_key_with_the_axis_its_values_need(tmp_path: Path, figures: list[Figure]) -> None:
    path = tmp_path / "results.png"
    assert draw_results(ROWS, ["rate", "model", "dropout"], BLEU, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    rate, model, dropout = figures[0].axes
    assert [axes.get_xlabel() for axes in (rate, model, dropout)] == ["rate", "model", "dropout"]
    assert [axes.get_xscale() for axes in (rate, model, dropout)] == ["log", "linear", "linear"]
    assert [label.get_text() for label in model.get_xticklabels()] == ["small", "tiny"]
    points = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in rate.lines}
    assert points == {
        "finished": ([0.001, 0.0001], [30.0, 20.0]),
        "pruned": ([0.01], [3.0]),
        "best": ([0.001], [30.0]),
    }


def test_four_keys_take_two_lines_and_leave_no_empty_axes(tmp_path: Path, figures: list[Figure]) -> None:
    assert draw_results(ROWS, ["rate", "model", "dropout", "seed"], BLEU, tmp_path / "results.png")
    panels = figures[0].axes
    assert [axes.axison for axes in panels] == [True] * 4 + [False] * 2
    assert [axes.get_xlabel() for axes in panels[:4]] == ["rate", "model", "dropout", "seed"]
    assert all(tick.label1.get_visible() for axes in panels[:4] for tick in axes.xaxis.get_major_ticks())


def test_nothing_is_drawn_of_failures(tmp_path: Path) -> None:
    assert not draw_results(ROWS[3:], ["rate"], BLEU, tmp_path / "results.png")
    assert not (tmp_path / "results.png").exists()
