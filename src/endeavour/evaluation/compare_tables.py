"""The tables of a comparison: rows of text, which cells stand out, and how they look in a terminal.

Knows what stands in which cell; not where the figures come from, and neither HTML nor Markdown.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from endeavour.evaluation.compare import REFERENCES, Comparison, Slice
from endeavour.evaluation.page import FEW_SENTENCES
from endeavour.evaluation.rates import NORMAL_LENGTH, RATE_LABELS, rate_rows, rate_text
from endeavour.evaluation.significance import LEVEL, SystemScore

SIGNIFICANCE_NOTE = (
    "Δ: difference to the baseline, the first run. p: probability of a Δ at least as large, were both runs equally "
    "good; by paired bootstrap resampling (on one side, as sacreBLEU has it; it also gives the 95% intervals) and by "
    f"approximate randomisation (up or down). Marked *: below {LEVEL} by both. With many runs some will be by chance."
)
NOISE_NOTE = f"What has fewer than {FEW_SENTENCES} sentences or words is mostly noise."
RATES_NOTE = (
    "Marked !: out of the ordinary beside the references: over one and a half times their share and more than two "
    f"sentences' worth besides, or a length ratio outside of {NORMAL_LENGTH[0]}–{NORMAL_LENGTH[1]}."
)


class Figures(NamedTuple):
    """A table: its title, what it says about itself, its rows, the (row, column) that stand out, what to draw."""

    title: str
    note: str
    head: list[str]
    rows: list[list[str]]
    marked: set[tuple[int, int]]
    slices: Sequence[Slice] = ()


def strange_line(comparison: Comparison) -> str:
    """Which outputs are out of the ordinary, in one line."""
    findings = [
        f"{system}: {RATE_LABELS[name].partition(':')[0]} {rate_text(comparison.rates[system], name)} "
        f"(references {rate_text(comparison.rates[REFERENCES], name)})"
        for system, names in comparison.strange_rates.items()
        for name in names
    ]
    return f"Out of the ordinary: {'; '.join(findings) or 'nothing'}."


def figure_tables(comparison: Comparison) -> list[Figures]:
    """All figures, in the order of the report."""
    figures = [
        _scores(comparison),
        _slices(comparison, "BLEU by source length", "source words", comparison.bleu_by_source_length),
    ]
    if comparison.bleu_by_rarest_source_word is not None:
        title, head = "BLEU by the sentence's rarest source word", "in training"
        figures.append(_slices(comparison, title, head, comparison.bleu_by_rarest_source_word))
    if comparison.word_f1_by_frequency is not None:
        title, head = "F1 of target words, by their frequency", "in training"
        figures.append(_slices(comparison, title, head, comparison.word_f1_by_frequency, counted="words"))
    return [*figures, _wins(comparison), _rates(comparison)]


def _scores(comparison: Comparison) -> Figures:
    rows: list[list[str]] = []
    marked: set[tuple[int, int]] = set()
    for test in comparison.tests:
        for score in test.systems:
            if score.significant:
                marked.add((len(rows), 4))
            rows.append([test.metric, score.system, f"{score.value:.2f}", _interval(score), *_tested(score)])
    head = ["metric", "run", "score", "95% interval", "Δ", "p bootstrap", "p randomisation"]
    return Figures("Scores", SIGNIFICANCE_NOTE, head, rows, marked)


def _interval(score: SystemScore) -> str:
    return f"{score.low:.2f} – {score.high:.2f}"


def _tested(score: SystemScore) -> list[str]:
    if score.p_bootstrap is None or score.p_randomization is None:
        return ["baseline", "", ""]
    star = "*" if score.significant else ""
    return [f"{score.difference:+.2f}{star}", f"{score.p_bootstrap:.4f}", f"{score.p_randomization:.4f}"]


def _slices(
    comparison: Comparison, title: str, head: str, slices: Sequence[Slice], counted: str = "sentences"
) -> Figures:
    baseline, *others = comparison.systems
    columns = [head, counted, baseline]
    for name in others:
        columns += [name, "Δ"]
    rows: list[list[str]] = []
    for part in slices:
        row = [part.label, str(part.count), f"{part.values[0]:.2f}"]
        for value in part.values[1:]:
            row += [f"{value:.2f}", f"{value - part.values[0]:+.2f}"]
        rows.append(row)
    return Figures(title, NOISE_NOTE, columns, rows, set(), slices)


def _wins(comparison: Comparison) -> Figures:
    rows = [
        [contest.system, str(contest.better), str(contest.equal), str(contest.worse)]
        for contest in comparison.contests
    ]
    note = f"Against {comparison.systems[0]}, by sentence chrF2."
    return Figures("Sentences", note, ["run", "better", "equal", "worse"], rows, set())


def _rates(comparison: Comparison) -> Figures:
    columns = [*comparison.systems, REFERENCES]
    rows = rate_rows([comparison.rates[name] for name in columns])
    marked: set[tuple[int, int]] = set()
    for number, row in enumerate(rows):
        for column, system in enumerate(comparison.systems, start=1):
            if row[0] in (RATE_LABELS[name] for name in comparison.strange_rates[system]):
                marked.add((number, column))
                row[column] += " !"
    return Figures("Outputs", RATES_NOTE, ["figure", *columns], rows, marked)


def settings_table(comparison: Comparison) -> Figures:
    """How the outputs were made, as far as it is known, run by run; what differs stands out."""
    known = {system: settings for system, settings in comparison.settings.items() if settings}
    names = dict.fromkeys(name for settings in known.values() for name in settings)
    rows = [[name, *(str(settings.get(name, "–")) for settings in known.values())] for name in names]
    differing = {(number, 0) for number, row in enumerate(rows) if len(set(row[1:])) > 1}
    return Figures("Settings", "", ["setting", *known], rows, differing)


def signature_table(comparison: Comparison) -> Figures:
    """sacreBLEU's, of each test of each metric."""
    rows = [
        [test.metric, kind, signature]
        for test in comparison.tests
        for kind, signature in (
            ("bootstrap", test.bootstrap_signature),
            ("randomisation", test.randomization_signature),
        )
    ]
    return Figures("Signatures", "", ["metric", "test", "sacreBLEU signature"], rows, set())


def numeric_columns(figures: Figures) -> set[int]:
    """The columns that hold numbers alone, which stand best on the right."""
    cells = {column: [row[column] for row in figures.rows] for column in range(1, len(figures.head))}
    return {column for column, texts in cells.items() if all(_is_number(text) for text in texts)}


def screen_table(figures: Figures) -> Table:
    """The figures for the terminal; what is marked stands out."""
    table = Table(title=Text(figures.title), title_justify="left")
    numeric = numeric_columns(figures)
    for number, column in enumerate(figures.head):
        table.add_column(Text(column), justify="right" if number in numeric else "left", overflow="fold")
    for row_number, row in enumerate(figures.rows):
        cells = [
            Text(cell, style="bold red" if (row_number, column) in figures.marked else "")
            for column, cell in enumerate(row)
        ]
        table.add_row(*cells)
    return table


def _is_number(cell: str) -> bool:
    return not cell or cell[0] in "+-–0123456789" or cell == "baseline"
