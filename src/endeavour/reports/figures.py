"""Charts by matplotlib: as SVG inside a page, whose colours follow its stylesheet, or as PNG files.

Knows shapes and colours; not what the numbers mean. matplotlib is imported where a chart is drawn, since that takes
half a second, which other commands should not cost. The same input gives the same bytes.
"""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

# Source pieces (S), target pieces (T) and weights (T, S), each row a distribution over the source.
AttentionMap = tuple[Sequence[str], Sequence[str], Sequence[Sequence[float]]]

# Name in the stylesheet → colour by light and by dark. A chart is drawn in the light ones, which must all differ.
COLOURS = {
    "ink": ("#1f2933", "#e4e7ea"),
    "soft": ("#66727f", "#98a4b0"),
    "page": ("#fbfbf9", "#15191d"),
    "card": ("#ffffff", "#1e2429"),
    "line": ("#dfe3e6", "#343c44"),
    "blue": ("#2b7a9e", "#5fb0d3"),
    "orange": ("#c2571a", "#eb9660"),
    "violet": ("#7a5fa8", "#a48cd0"),
    "green": ("#4f9a57", "#74bf7c"),
    "yellow": ("#b8963a", "#d6b75f"),
}
_COLOUR = {name: light for name, (light, _) in COLOURS.items()}
SERIES = (
    "soft",
    "blue",
    "orange",
    "violet",
    "green",
    "yellow",
)  # of several systems; the baseline comes first

BLUE, ORANGE, GREEN, GREY = "#1d4ed8", "#c2410c", "#4d7c0f", "#7a869a"  # of charts in PNG files

FEW_SENTENCES = 30  # a bar of fewer is drawn pale: its score is mostly noise
FONT_SIZE = 12  # pixels
# Above ASCII these are no XML; below they would break the layout of a line.
_UNDRAWABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Bars(NamedTuple):
    """A bar chart: one group a label, in it one bar a name.

    Attributes:
        counts: how many sentences (or words) stand behind each group.
        values: for each group its bars, 0–100.
        overall: drawn as a dashed line across the chart.
    """

    names: Sequence[str]
    labels: Sequence[str]
    counts: Sequence[int]
    values: Sequence[Sequence[float]]
    overall: float | None = None


def bar_chart(bars: Bars, title: str) -> Markup:
    """SVG of the chart. Each bar tells its value when pointed at; up to three a group have it above them too."""
    many, only = len(bars.names) > 3, len(bars.names) == 1
    width, space = (48, 32) if only else (14, 28) if many else (26, 28)
    step, left, top, height, bottom = width * len(bars.names) + space, 40, 20, 180, 44
    right = 70 if bars.overall is not None else 10
    across = step * len(bars.labels)
    highest = max(bars.overall or 0, *(value for group in bars.values for value in group))
    tick = 5 if highest <= 25 else 10 if highest <= 50 else 20
    ceiling = tick * max(1, -int(-highest // tick))  # rounded up to a whole tick

    def draw(axes: "Axes") -> None:
        axes.set(xlim=(0, across), ylim=(0, ceiling))
        axes.set_yticks(range(0, ceiling + 1, tick))
        axes.grid(axis="y", color=_COLOUR["line"])
        axes.set_xticks([])
        if bars.overall is not None:
            axes.axhline(bars.overall, color=_COLOUR["orange"], linestyle=(0, (5, 4)), linewidth=1, zorder=3)
            _text(axes, across + 4, bars.overall, f"all {bars.overall:.1f}", va="center_baseline")
        for number, (label, count, group) in enumerate(
            zip(bars.labels, bars.counts, bars.values, strict=True)
        ):
            middle = step * (number + 0.5)
            for order, (name, value) in enumerate(zip(bars.names, group, strict=True)):
                x = middle + width * (order - len(group) / 2)
                tip = f"{label}: {value:.2f}" if only else f"{name}, {label}: {value:.2f}"
                colour = "blue" if only else SERIES[order % len(SERIES)]
                opacity = 0.4 if count < FEW_SENTENCES else 1
                _rectangle(axes, (x + 1, 0, width - 2, value), colour, opacity, tip)
                if not many:
                    shown, above = f"{value:.1f}" if only else f"{value:.0f}", value + ceiling * 4 / height
                    _text(axes, x + width / 2, above, shown, ha="center")
            _text(axes, middle, -ceiling * 18 / height, label, ha="center")
            _text(axes, middle, -ceiling * 34 / height, f"n = {count}", ha="center", color=_COLOUR["soft"])

    return _svg(draw, (left, top, right, bottom), (across, height), title)


def heatmap(attention: AttentionMap, title: str) -> Markup:
    """SVG of the attention weights (T, S), the darker the larger; each cell tells its pieces and weight."""
    source, target, weights = attention
    assert len(weights) == len(target)
    assert all(len(row) == len(source) for row in weights)
    cell = 20

    def draw(axes: "Axes") -> None:
        axes.set(xlim=(0, len(source)), ylim=(len(target), 0))
        axes.spines[:].set_visible(True)
        axes.spines[:].set_color(_COLOUR["line"])
        axes.set(xticks=[], yticks=[])
        for x, piece in enumerate(source):
            _text(axes, x + 0.6, -0.3, piece, rotation=60, rotation_mode="anchor")
        for y, (piece, row) in enumerate(zip(target, weights, strict=True)):
            _text(axes, -0.3, y + 0.5, piece, ha="right", va="center_baseline")
            for x, weight in enumerate(row):
                if weight >= 0.005:  # the rest would be drawn fully transparent
                    tip = f"{piece} ← {source[x]}: {weight:.2f}"
                    _rectangle(axes, (x, y, 1, 1), "blue", round(weight, 2), tip)

    left, above = (7 * max((len(piece) for piece in side), default=0) + 16 for side in (target, source))
    return _svg(
        draw,
        (left, round(0.87 * above) + 8, above // 2 + 8, 10),
        (cell * len(source), cell * len(target)),
        title,
    )


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure for a PNG, in inches, which finds room for its labels itself."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: "Axes") -> None:
    """A grid in place of half of the frame."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def show_shares(axes: "Axes", values: "ArrayLike") -> None:
    """A matrix of values from 0, white, to 1, blue."""
    axes.imshow(values, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")


def save_png(figure: "Figure", path: Path) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # of scripts that the font does not have
        figure.savefig(path, dpi=120)


def _text(axes: "Axes", x: float, y: float, text: str, **more: Any) -> None:
    axes.text(x, y, _UNDRAWABLE.sub("\ufffd", text), parse_math=False, **more)


def _rectangle(
    axes: "Axes", box: tuple[float, float, float, float], colour: str, opacity: float, tip: str
) -> None:
    from matplotlib.patches import Rectangle

    x, y, width, height = box
    patch = Rectangle((x, y), width, height, facecolor=_COLOUR[colour], linewidth=0, alpha=opacity)
    patch.set_gid("tip:" + _UNDRAWABLE.sub("\ufffd", tip))  # see _inline
    patch.set_zorder(2)
    axes.add_artist(patch)


def _svg(
    draw: Callable[["Axes"], None], margins: tuple[int, int, int, int], size: tuple[int, int], title: str
) -> Markup:
    """What `draw` puts on axes of `size` within `margins` (left, top, right, bottom), all in pixels."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    left, top, right, bottom = margins
    width, height = left + size[0] + right, top + size[1] + bottom
    look: dict[Any, Any] = {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "endeavour",
        "font.size": FONT_SIZE,
        "text.color": _COLOUR["ink"],
        "xtick.color": _COLOUR["ink"],
        "ytick.color": _COLOUR["ink"],
        "ytick.major.size": 0,
    }
    file = io.StringIO()
    with rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the reader's fonts count, not ours
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        axes = figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))
        axes.set_axisbelow(True)
        axes.spines[:].set_visible(False)
        draw(axes)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    return _inline(file.getvalue(), width, title)


def _inline(svg: str, width: int, title: str) -> Markup:
    """matplotlib's SVG as part of a page: without what concerns a file alone, and in the page's colours."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("metadata", "defs")):  # nothing is drawn beyond its axes: no clipping
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # HTML knows svg without a namespace
        element.tail = None
        element.attrib.pop("clip-path", None)
        name = element.attrib.pop("id", "")
        if name.startswith("tip:"):
            ElementTree.SubElement(element, "title").text = name.removeprefix("tip:")
        style = element.get("style", "")
        for colour, light in _COLOUR.items():
            style = style.replace(light, f"var(--{colour})")
        if style:
            element.set("style", style)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "style": f"max-width: {width}px",
        "role": "img",
        "aria-label": _UNDRAWABLE.sub("\ufffd", title),
    }
    return Markup(ElementTree.tostring(root, encoding="unicode"))
