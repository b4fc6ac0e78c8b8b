"""Pictures of a Transformer at work, as PNGs, for docs/transformer.md.

Knows arrays, pieces and numbers as `playground.learn` and `evaluation.head_habits` give them; no model. Each function
draws one picture.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from endeavour.reports.figures import GREY, new_figure, save_png, show_shares, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

Matrix = NDArray[np.float64]
Numbers = Mapping[str, Any]

BLUE, ORANGE = "#2b50c8", "#b4540a"  # the ends of the map of signs, and what is drawn beside it
SMALL: dict[str, Any] = {"fontsize": 7, "parse_math": False}


def draw_positions(sinusoidal: Matrix, products: Matrix, turned: Matrix, path: Path) -> None:
    """Sinusoidal vectors, how alike two of them are, and how alike a query and a key are that rotation turned.

    Args:
        sinusoidal: (positions, width).
        products: cosines of two positions' vectors, (positions, positions).
        turned: dot products of one query and the same vector as key at every two positions, (positions, positions).
    """
    figure = new_figure(9, 2.9)
    panels = figure.subplots(1, 3)
    titles = ("sinusoidal vectors", "cosine of two positions", "rotary: query · key")
    labels = (("component", "position"), ("position", "position"), ("position of the key", "of the query"))
    for axes, values, title, (across, down) in zip(
        panels, (sinusoidal, products, turned), titles, labels, strict=True
    ):
        _diverging(axes, values)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel(across, fontsize=8)
        axes.set_ylabel(down, fontsize=8)
        axes.tick_params(labelsize=7)
    save_png(figure, path)


def draw_embedding(names: Sequence[str], cosines: Matrix, path: Path) -> None:
    """How alike the embeddings of some pieces are: cosines (pieces, pieces)."""
    figure = new_figure(2.0 + 0.19 * len(names), 1.5 + 0.19 * len(names))
    axes = figure.subplots()
    off = np.where(np.eye(len(names), dtype=bool), np.nan, cosines)
    _diverging(axes, off)
    _named(axes, names, names)
    axes.set_title("cosine of two embeddings", fontsize=9)
    save_png(figure, path)


def draw_head(numbers: Numbers, path: Path) -> None:
    """One head from scores to weights: Q·K, divided by √d, masked, these on one scale, and after the softmax."""
    part = numbers["attention"]
    rows, columns = _sides(numbers)
    scores = np.array(part["scores"])
    visible = np.array(part["visible"], dtype=bool)
    scaled = scores / len(part["query"][0]) ** 0.5
    masked = np.where(visible, scaled, np.nan)
    weights = np.array(part["weights"])[numbers["head"]]
    titles = ("query · key", "÷ √d", "masked: hatched is −∞", "softmax: weights")
    figure = new_figure(2.0 + 4 * (0.35 + 0.11 * len(columns)), 1.4 + 0.15 * len(rows))
    for place, (axes, values, title) in enumerate(
        zip(figure.subplots(1, 4), (scores, scaled, masked, weights), titles, strict=True)
    ):
        if title.startswith("softmax"):
            show_shares(axes, values)
        else:
            _diverging(axes, values, most=np.abs(scores).max())
        _named(axes, rows if place == 0 else None, columns)
        axes.set_title(title, fontsize=9)
    save_png(figure, path)


def draw_masks(encoder: Numbers, decoder: Numbers, path: Path) -> None:
    """What the two masks hide: padding, and the future. Two `learn` answers, of an encoder and a decoder head."""
    figure = new_figure(8, 3.4)
    for axes, numbers, title in zip(
        figure.subplots(1, 2), (encoder, decoder), ("padding", "the future"), strict=True
    ):
        part = numbers["attention"]
        visible = np.array(part["visible"], dtype=bool)
        weights = np.array(part["weights"])[numbers["head"]]
        _diverging(axes, np.where(visible, weights, np.nan), most=1.0)
        _named(axes, *_sides(numbers))
        axes.set_title(f"hatched: hidden, because it is {title}", fontsize=9)
    save_png(figure, path)


def draw_scaling(numbers: Numbers, path: Path) -> None:
    """The largest weight of each query with and without the division by √d."""
    part = numbers["attention"]
    visible = np.array(part["visible"], dtype=bool)
    scores = np.where(visible, np.array(part["scores"]), -np.inf)
    rows, _ = _sides(numbers)
    figure = new_figure(7, 2.6)
    axes = figure.subplots()
    places = np.arange(len(rows))
    for shift, divided, colour, name in (
        (-0.2, 1.0, ORANGE, "without"),
        (0.2, len(part["query"][0]) ** 0.5, BLUE, "with ÷ √d"),
    ):
        powers = np.exp((scores - scores.max(axis=1, keepdims=True)) / divided)
        weights = powers / powers.sum(axis=1, keepdims=True)
        axes.bar(places + shift, weights.max(axis=1), 0.36, color=colour, label=name)
    axes.set_xticks(places, rows, rotation=60, ha="right", rotation_mode="anchor", **SMALL)
    axes.set_ylabel("largest weight", fontsize=8)
    axes.tick_params(axis="y", labelsize=7)
    axes.legend(fontsize=7, loc="lower right")
    tidy(axes)
    save_png(figure, path)


def draw_heads(kinds: Mapping[str, Numbers], path: Path) -> None:
    """All heads of one layer of each kind; `learn` answers by the kind's name."""
    count = max(len(numbers["attention"]["weights"]) for numbers in kinds.values())
    figure = new_figure(1.2 + 1.9 * count, 0.6 + 2.1 * len(kinds))
    grid = figure.subplots(len(kinds), count, squeeze=False)
    for row, (name, numbers) in zip(grid, kinds.items(), strict=True):
        rows, columns = _sides(numbers)
        real = [column != "<pad>" for column in columns]
        for head, (axes, values) in enumerate(zip(row, numbers["attention"]["weights"], strict=True)):
            show_shares(axes, np.array(values)[:, real])
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(f"{name} {numbers['layer'] + 1}.{head + 1}", fontsize=8)
            if head == 0:
                axes.set_yticks(range(len(rows)), rows, **{**SMALL, "fontsize": 5})
                axes.tick_params(length=0)
    save_png(figure, path)


def draw_stream(lengths: Mapping[str, Matrix], added: Mapping[str, Matrix], path: Path) -> None:
    """How vectors grow from layer to layer, and how large what each sublayer adds is beside what is there.

    Args:
        lengths: by side, (layers + 1, pieces).
        added: by sublayer, length of what is added ÷ length of the stream, (layers, pieces).
    """
    figure = new_figure(9, 2.6)
    left, right = figure.subplots(1, 2)
    for (side, values), colour, style in zip(lengths.items(), (BLUE, ORANGE), ("-", "--"), strict=True):
        depth = range(len(values))
        left.plot(
            depth, values.mean(axis=1), color=colour, linestyle=style, marker="o", markersize=3, label=side
        )
        left.fill_between(depth, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.12)
    left.set_title("length of the vectors: mean, shortest to longest", fontsize=9)
    styles = zip(added.items(), (BLUE, BLUE, ORANGE, ORANGE, GREY), ("-", "--", "-", "--", ":"), strict=False)
    for (name, values), colour, style in styles:
        layers = range(1, len(values) + 1)
        right.plot(
            layers, values.mean(axis=1), color=colour, linestyle=style, marker="o", markersize=3, label=name
        )
    right.set_title("length of what is added ÷ of what is there", fontsize=9)
    for axes in (left, right):
        axes.set_xlabel("layer", fontsize=8)
        axes.set_xticks(range(int(axes is right), max(len(one) for one in lengths.values())))
        axes.tick_params(labelsize=7)
        axes.set_ylim(bottom=0)
        tidy(axes)
    left.legend(fontsize=7)
    right.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.02, 1.0))
    save_png(figure, path)


def draw_feed_forward(numbers: Numbers, query: int, path: Path) -> None:
    """One piece in the feed-forward block: its inner numbers, sorted, before and after the activation."""
    block = numbers["feed_forward"]
    inner = np.array(block["inner"][0][query])
    active = np.array(block["active"][query])
    order = inner.argsort()
    figure = new_figure(7, 2.4)
    axes = figure.subplots()
    places = np.arange(len(order))
    axes.fill_between(places, inner[order], color=GREY, alpha=0.4, step="mid", label="before the activation")
    axes.plot(places, active[order], color=BLUE, linewidth=1.5, label="after it")
    rows, _ = _sides(numbers)
    share = block["share_active"][query]
    axes.set_title(
        f"“{rows[query]}”: {share:.0%} of the inner numbers are above 0", fontsize=9, parse_math=False
    )
    axes.set_xlabel("inner numbers, sorted", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7)
    tidy(axes)
    save_png(figure, path)


def draw_layers(numbers: Numbers, path: Path) -> None:
    """What the decoder would say at each position if it ended after 0, 1, … layers, and how sure it would be."""
    top = numbers["stack"]["top"]
    shares = np.array([[best[0]["probability"] for best in positions] for positions in top])
    written = [_label(piece) for piece in numbers["tokens"]["target_out"]]
    figure = new_figure(1.0 + 0.62 * len(written), 0.9 + 0.3 * len(top))
    axes = figure.subplots()
    show_shares(axes, shares)
    for depth, positions in enumerate(top):
        for place, best in enumerate(positions):
            colour = "white" if shares[depth, place] > 0.6 else "black"
            said = _label(best[0])
            axes.text(
                place, depth, said[:9], ha="center", va="center", color=colour, fontsize=6, parse_math=False
            )
    axes.set_yticks(
        range(len(top)), ["embedding", *(f"layer {depth}" for depth in range(1, len(top)))], **SMALL
    )
    axes.set_xticks(range(len(written)), written, **SMALL)
    axes.set_xlabel("what is written at this position", fontsize=8)
    axes.tick_params(length=0)
    save_png(figure, path)


def draw_cross(numbers: Numbers, path: Path) -> None:
    """Cross-attention, averaged over the heads of a layer: what is written by where it looks."""
    weights = np.array(numbers["cross"]["weights"]).mean(axis=0)
    source = [_label(piece) for piece in numbers["tokens"]["source"]]
    written = [_label(piece) for piece in numbers["tokens"]["target_out"]]
    figure = new_figure(1.6 + 0.22 * len(source), 1.3 + 0.2 * len(written))
    axes = figure.subplots()
    show_shares(axes, weights)
    _named(axes, written, source)
    axes.set_title(f"layer {numbers['cross']['layer'] + 1}, mean of its heads", fontsize=9)
    save_png(figure, path)


def draw_prediction(numbers: Numbers, position: int, path: Path) -> None:
    """The most probable next pieces after a position."""
    best = numbers["predictions"][position]["top"][::-1]
    figure = new_figure(6, 2.4)
    axes = figure.subplots()
    axes.barh(range(len(best)), [one["probability"] for one in best], color=BLUE)
    axes.set_yticks(range(len(best)), [_label(one) for one in best], **SMALL)
    before = [_label(piece) for piece in numbers["tokens"]["target_in"][: position + 1]]
    axes.set_title(f"after “{' '.join(before)}”", fontsize=9, parse_math=False)
    axes.set_xlabel("probability", fontsize=8)
    axes.set_xlim(left=0)
    axes.tick_params(axis="x", labelsize=7)
    tidy(axes)
    save_png(figure, path)


def draw_habits(
    shares: Mapping[str, Mapping[str, Matrix]],
    even: Mapping[str, Mapping[str, float]],
    pairs: int,
    path: Path,
) -> None:
    """What single heads look at: by kind, a row for each head, a column for each habit, the mean weight as a colour.

    Args:
        shares: by kind and habit, (layers, heads).
        even: by kind and habit, the weight of a head that looks everywhere alike.
        pairs: of sentences, over which it was measured.
    """
    most = max(next(iter(habits.values())).size for habits in shares.values())
    figure = new_figure(9, 1.9 + 0.19 * (most + 1))
    figure.suptitle(f"mean weights in percent, over {pairs:,} sentence pairs", fontsize=9)
    for axes, (kind, habits) in zip(figure.subplots(1, len(shares)), shares.items(), strict=True):
        layers, heads = next(iter(habits.values())).shape
        rows = [f"{layer + 1}.{head + 1}" for layer in range(layers) for head in range(heads)]
        values = np.stack([one.reshape(-1) for one in habits.values()], axis=1)
        values = np.concatenate([values, [[even[kind][habit] for habit in habits]]])
        show_shares(axes, values)
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if value > 0.6 else "black"
            axes.text(column, row, f"{100 * value:.0f}", ha="center", va="center", color=colour, fontsize=6)
        axes.axhline(len(rows) - 0.5, color="black", linewidth=0.8)
        axes.set_yticks(range(len(rows) + 1), [*rows, "evenly"], **SMALL)
        axes.set_xticks(
            range(len(habits)), list(habits), rotation=35, ha="right", rotation_mode="anchor", **SMALL
        )
        axes.set_title(kind, fontsize=9)
        axes.tick_params(length=0)
    save_png(figure, path)


def _diverging(axes: "Axes", values: Matrix, most: float | None = None) -> None:
    """Blue above zero, orange below; hatched where there is no number."""
    shown = np.nanmax(np.abs(values)) if most is None else most
    axes.set_facecolor("#f3f3f0")
    axes.imshow(
        values, cmap=_blue_and_orange(), vmin=-shown, vmax=shown, aspect="auto", interpolation="nearest"
    )
    for row, column in zip(*np.nonzero(np.isnan(values)), strict=True):
        axes.plot(
            [column - 0.3, column + 0.3],
            [row + 0.3, row - 0.3],
            color=GREY,
            linewidth=0.7,
            solid_capstyle="round",
        )


def _blue_and_orange() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("blue and orange", [ORANGE, "#ffffff", BLUE])


def _named(axes: "Axes", rows: Sequence[str] | None, columns: Sequence[str]) -> None:
    axes.set_xticks(range(len(columns)), columns, rotation=90, **SMALL)
    axes.set_yticks(range(len(rows)) if rows else [], rows or [], **SMALL)
    axes.tick_params(length=0)


def _sides(numbers: Numbers) -> tuple[list[str], list[str]]:
    """Names of the queries and of the keys, with those of the padding."""
    tokens, part = numbers["tokens"], numbers["attention"]
    source, target = ([_label(piece) for piece in tokens[side]] for side in ("source", "target_in"))
    queries = source if numbers["kind"] == "encoder" else target
    keys = target if numbers["kind"] == "decoder" else source
    return queries, [*keys, *["<pad>"] * (len(part["key"]) - len(keys))]


def _label(piece: Mapping[str, Any]) -> str:
    text: str = piece["piece"]
    return text.replace("\u2581", "") or text
