"""How a run went, as pictures and a table, from its metric log alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from endeavour.reports.figures import BLUE, GREEN, GREY, ORANGE, new_figure, save_png, show_shares, tidy

# Rows of the table on the screen; the log has them all.
TABLE_ROWS = 12
# Pictures of the attention, from the first validation to the last.
PICTURES = 6


def draw_curves(lines: Sequence[dict[str, Any]], path: Path, *, title: str, r_drop: float = 0.0) -> None:
    """Draws loss, validation BLEU and learning rate over the updates into a PNG; nothing if nothing is logged.

    `r_drop` is the weight of the divergence in the loss of the training, which that of the validation has not.
    """
    train = [line for line in lines if line["kind"] == "train"]
    validation = [line for line in lines if line["kind"] == "validation"]
    if not train:
        return
    figure = new_figure(9, 6.5)
    loss, bleu, rate = figure.subplots(3, 1, sharex=True, height_ratios=(3, 3, 1.2))
    figure.suptitle(title, parse_math=False)
    trained = f"training, with {r_drop:g} × divergence (R-Drop)" if r_drop else "training"
    loss.plot(*_series(train, "loss"), label=trained, color=GREY, linewidth=1)
    loss.plot(*_series(validation, "loss"), label="validation", color=ORANGE, marker="o", markersize=3)
    loss.set_ylabel("loss (nats per token)")
    loss.legend()
    bleu.plot(*_series(validation, "bleu"), color=BLUE, marker="o", markersize=3)
    bleu.set_ylabel("validation BLEU")
    rate.plot(*_series(train, "learning_rate"), color=GREEN, linewidth=1)
    rate.set_ylabel("learning rate")
    rate.set_xlabel("update")
    for axes in (loss, bleu, rate):
        tidy(axes)
    save_png(figure, path)


def draw_attention(
    lines: Sequence[dict[str, Any]], path: Path, *, title: str, play: str | None = None
) -> None:
    """Draws the attention of one pair, as it was learned, into a PNG; nothing if nothing is logged.

    `play` is the command that shows it of all layers and heads.

    Rows are target pieces, columns the source pieces that they look at, the darker the more.
    """
    pictures = _spread([line for line in lines if line["kind"] == "attention"])
    if not pictures:
        return
    scores = {line["update"]: line["bleu"] for line in lines if line["kind"] == "validation"}
    source, target = (
        [piece.replace("\u2581", " ") for piece in pictures[0][side]] for side in ("source", "target")
    )
    columns = min(3, len(pictures))
    rows = -(-len(pictures) // columns)
    figure = new_figure(1.5 + columns * (0.6 + 0.17 * len(source)), 1.6 + rows * (0.5 + 0.17 * len(target)))
    figure.suptitle(f"{title}: where each target piece looks", parse_math=False)
    for place, picture in enumerate(pictures):
        axes = figure.add_subplot(rows, columns, place + 1)
        show_shares(axes, picture["weights"])
        update = picture["update"]
        axes.set_title(f"update {update:,}, BLEU {scores.get(update, 0.0):.1f}", fontsize=9)
        lowest, leftmost = place + columns >= len(pictures), place % columns == 0
        text: dict[str, Any] = {"fontsize": 7, "parse_math": False}
        axes.set_xticks(range(len(source)), source if lowest else [""] * len(source), rotation=90, **text)
        axes.set_yticks(range(len(target)), target if leftmost else [""] * len(target), **text)
        axes.tick_params(length=0)
    if play is not None:
        note = f"all layers and heads: {play}"
        figure.supxlabel(note, fontsize=7, family="monospace", color="#555555", parse_math=False)
    save_png(figure, path)


def _spread(pictures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first, the last, and some between, closer together at first, when most is learned; all if they are few."""
    if len(pictures) <= PICTURES:
        return list(pictures)
    chosen = {round(len(pictures) ** (step / (PICTURES - 1))) - 1 for step in range(PICTURES)}
    return [pictures[place] for place in sorted(chosen)]


def validation_table(lines: Sequence[dict[str, Any]]) -> Table:
    """The validations of a run, thinned to a dozen rows; the last is always there."""
    rows = [line for line in lines if line["kind"] == "validation"]
    step = max(1, -(-len(rows) // TABLE_ROWS))
    table = Table(title="validation")
    for column in ("update", "loss", "perplexity", "BLEU"):
        table.add_column(column, justify="right")
    for row in rows[::-1][::step][::-1]:
        figures = (f"{row['loss']:.3f}", f"{row['perplexity']:.2f}", f"{row['bleu']:.2f}")
        table.add_row(f"{row['update']:,}", *figures)
    return table


def _series(lines: Sequence[dict[str, Any]], key: str) -> tuple[list[int], list[float]]:
    return [line["update"] for line in lines], [line[key] for line in lines]
