"""A comparison in the terminal, and in a folder: report.md, report.html and comparison.json.

Knows how a comparison is shown; not where its figures come from.
"""

from collections.abc import Sequence
from dataclasses import asdict
from difflib import SequenceMatcher
from pathlib import Path

from rich.console import Console

from endeavour.evaluation.comparison import Comparison, Difference
from endeavour.progress import say
from endeavour.reports.comparison_tables import (
    anomalies_line,
    differing_settings,
    result_tables,
    signatures,
)
from endeavour.reports.render import render_html, render_markdown
from endeavour.reports.tables import screen_table
from endeavour.storage import write_atomically, write_json


def write_comparison(folder: Path, comparison: Comparison) -> None:
    """Writes the three files to `folder` (made if need be), each whole or not at all; comparison.json comes last."""
    values = {
        "comparison": comparison,
        "introduction": [
            f"{comparison.sentences} sentences. Baseline: {comparison.systems[0]}.",
            anomalies_line(comparison),
            *comparison.notes,
        ],
        "tables": result_tables(comparison),
        "signatures": signatures(comparison),
        "settings": differing_settings(comparison),
        "differences": _differences(comparison),
    }
    texts = {
        "report.md": render_markdown("comparison.md.j2", **values),
        "report.html": render_html("comparison.html.j2", **values, word_diff=word_diff),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_atomically(folder / name, text)
    write_json(folder / "comparison.json", asdict(comparison))


def show_comparison(console: Console, comparison: Comparison) -> None:
    for table in result_tables(comparison):
        console.print(screen_table(table))
    for line in (anomalies_line(comparison), *comparison.notes):
        say(console, line)


def word_diff(one: str, other: str) -> list[tuple[bool, str, str]]:
    """Two lines in pieces of whole words: (whether they are the same there, text of one, text of the other)."""
    left, right = one.split(), other.split()
    return [
        (kind == "equal", " ".join(left[a:b]), " ".join(right[c:d]))
        for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    ]


def _differences(comparison: Comparison) -> list[tuple[str, str, Sequence[Difference]]]:
    """What is shown of each pair, as heading, system and sentences; nothing where there is no sentence."""
    baseline = comparison.systems[0]
    halves = [
        (f"{one.system} {word} than {baseline}: {len(shown)} of {count}", one.system, shown)
        for one in comparison.pairwise
        for word, shown, count in (
            ("better", one.most_better, one.better),
            ("worse", one.most_worse, one.worse),
        )
    ]
    return [half for half in halves if half[2]]
