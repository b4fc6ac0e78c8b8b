"""The pictures of a run: which of its validations are drawn, and that any text can be."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from endeavour.reports import run_pictures
from endeavour.reports.run_pictures import PICTURES, _spread, draw_attention, draw_curves


def lines(count: int, pieces: list[str]) -> list[dict[str, Any]]:
    weights = [[1.0 / len(pieces)] * len(pieces) for _ in pieces]
    shared = {"source": pieces, "target": pieces, "weights": weights}
    found: list[dict[str, Any]] = []
    for update in range(0, 10 * count, 10):
        found.append({"kind": "train", "update": update, "loss": 1.0, "learning_rate": 1e-3})
        found.append({"kind": "validation", "update": update, "loss": 1.0, "perplexity": 2.0, "bleu": 3.0})
        found.append({"kind": "attention", "update": update, **shared})
    return found


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6, 7, 30, 1000])
def test_the_first_and_the_last_are_drawn_and_more_of_the_early_ones(count: int) -> None:
    chosen = [picture["update"] for picture in _spread([{"update": number} for number in range(count)])]
    assert len(set(chosen)) == len(chosen)
    assert min(count, PICTURES - 1) <= len(chosen) <= PICTURES
    if count:
        assert (chosen[0], chosen[-1]) == (0, count - 1)
    gaps = [later - earlier for earlier, later in pairwise(chosen)]
    assert gaps == sorted(gaps)
    if count <= PICTURES or count >= 30:
        assert len(chosen) == min(count, PICTURES)


@pytest.mark.parametrize(
    "pieces", [["\u2581a", "b"], ["$x^2$", "\u2581$", "_{", "\\frac"], ["猫", "<0xE7>", "\u2581ß"] * 6]
)
def test_any_piece_can_be_drawn(pieces: list[str], tmp_path: Path) -> None:
    for draw in (draw_attention, draw_curves):
        picture = tmp_path / f"{draw.__name__}.png"
        draw(lines(9, pieces), picture, title="a$^$run")
        height, width, _ = imread(picture).shape
        assert min(height, width) > 100


def test_the_command_that_shows_more_stands_below_the_attention(tmp_path: Path) -> None:
    for name, play in (("with", "endeavour play 'run=a$^$b'"), ("without", None)):
        draw_attention(lines(2, ["▁a", "b"] * 5), tmp_path / f"{name}.png", title="run", play=play)
    pictures = [imread(tmp_path / f"{name}.png") for name in ("with", "without")]
    assert pictures[0].shape == pictures[1].shape
    assert (pictures[0] != pictures[1]).any()


@pytest.mark.parametrize(
    ("r_drop", "label"), [(0.0, "training"), (0.5, "training, with 0.5 × divergence (R-Drop)")]
)
def test_the_legend_says_what_else_the_loss_of_the_training_has(
    r_drop: float, label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Any] = []
    monkeypatch.setattr(run_pictures, "save_png", lambda figure, path: figures.append(figure))
    draw_curves(lines(2, ["a"]), tmp_path / "curves.png", title="run", r_drop=r_drop)
    legend = figures[0].axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [label, "validation"]


def test_without_anything_logged_there_is_no_picture(tmp_path: Path) -> None:
    for draw in (draw_attention, draw_curves):
        draw(
            [line for line in lines(3, ["a"]) if line["kind"] == "validation"],
            tmp_path / "none.png",
            title="run",
        )
        assert not list(tmp_path.iterdir())
