"""Tables of text: what stands in which cell, for a page and for the terminal.

Knows neither HTML nor Markdown.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from rich.table import Table as ScreenTable
from rich.text import Text

from endeavour.evaluation.rates import OutputRates
from endeavour.nested import flatten
from endeavour.reports.figures import FEW_SENTENCES, Bars

NOISE_NOTE = f"Scores of fewer than {FEW_SENTENCES} sentences or words (pale in charts) are mostly noise."

RATE_LABELS = {
    "empty": "empty lines",
    "copied": "copies of the source",
    "repetitive": "repeating: 1–4 words three times in a row",
    "too_long": "too long: over twice the source's words, and 3 more",
    "too_short": "too short: the source over twice as long, and 3 words more",
    "untranslated": "words that stand in the source as they are",
    "unseen_characters": "lines with characters not in the training text",
    "lost_spans": "tags, placeholders and addresses of the source that are missing",
    "length_ratio": "length ÷ reference length, in words",
}


class Table(NamedTuple):
    """A table of plain text.

    Attributes:
        marked: the (row, column) of cells that stand out.
        bars: a chart of the same figures, where a page can show one.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    marked: Collection[tuple[int, int]] = ()
    bars: Bars | None = None

    @property
    def numeric(self) -> set[int]:
        """The columns that hold numbers alone, which stand best on the right."""
        columns = range(1, len(self.head))
        return {column for column in columns if all(_is_number(row[column]) for row in self.rows)}


def settings_table(title: str, settings: Mapping[str, object]) -> Table:
    return Table(title, ["setting", "value"], [[key, str(value)] for key, value in flatten(settings).items()])


def rates_table(
    columns: Mapping[str, OutputRates], anomalies: Mapping[str, Collection[str]], note: str = ""
) -> Table:
    """A row a rate that anyone has, a column a system; its `anomalies` are marked by a `!`."""
    names = [
        name for name in RATE_LABELS if any(getattr(rates, name) is not None for rates in columns.values())
    ]
    rows = [[RATE_LABELS[name], *(rate_text(rates, name) for rates in columns.values())] for name in names]
    marked = {
        (row, column)
        for row, name in enumerate(names)
        for column, system in enumerate(columns, start=1)
        if name in anomalies.get(system, ())
    }
    for row, column in marked:
        rows[row][column] += " !"
    return Table("Outputs", ["figure", *columns], rows, note, marked)


def rate_text(rates: OutputRates, name: str) -> str:
    value: float | None = getattr(rates, name)
    if value is None:
        return "–"
    return f"{value:.3f}" if name == "length_ratio" else f"{value:.1%}"


def screen_table(table: Table) -> ScreenTable:
    """The table for the terminal; what is marked stands out."""
    screen = ScreenTable(title=Text(table.title), title_justify="left")
    for number, column in enumerate(table.head):
        justify = "right" if number in table.numeric else "left"
        screen.add_column(Text(column), justify=justify, overflow="fold")
    for row, texts in enumerate(table.rows):
        styles = ("bold red" if (row, column) in table.marked else "" for column in range(len(texts)))
        screen.add_row(*(Text(text, style) for text, style in zip(texts, styles, strict=True)))
    return screen


def _is_number(cell: str) -> bool:
    return not cell or cell[0] in "+-–0123456789" or cell == "baseline"
