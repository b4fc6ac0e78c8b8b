"""A comparison's files and its tables in the terminal."""

import io
import json
from pathlib import Path

import pytest
from html_page import Page
from hypothesis import given
from hypothesis import strategies as st
from invented import comparison
from rich.console import Console

from endeavour import storage
from endeavour.evaluation.comparison import Comparison
from endeavour.reports import comparison_report
from endeavour.reports.comparison_report import show_comparison, word_diff, write_comparison
from endeavour.reports.comparison_tables import anomalies_line, result_tables


def written(folder: Path, compared: Comparison) -> tuple[Page, str]:
    """The text of the page and that of the Markdown report, as they are read."""
    write_comparison(folder, compared)
    page = Page((folder / "report.html").read_text("utf-8"))
    return page, (folder / "report.md").read_text("utf-8").replace("\\", "")


def test_both_reports_tell_all_figures_signatures_sentences_and_settings(tmp_path: Path) -> None:
    compared = comparison("run0", "run1", "run2", notes=["A note."])
    page, markdown = written(tmp_path, compared)
    for text in (page.text, markdown):
        for table in result_tables(compared):
            assert table.title in text
            assert table.note in text
            assert all(cell in text for row in table.rows for cell in row)
        for test in compared.tests:
            assert test.bootstrap_signature in text
            assert test.randomization_signature in text
        for part in (
            "a comparison",
            "40 sentences",
            "A note.",
            "decoding.name",
            "Baseline: run0",
            "Anomalies:",
        ):
            assert part in text
    for pair in compared.pairwise:
        for one in (*pair.most_better, *pair.most_worse):
            texts = one.source, one.reference, one.baseline, one.hypothesis
            assert all(text in markdown for text in texts)
            assert one.reference in page.text
    for part in compared.bleu_by_source_length:
        for name, value in zip(compared.systems, part.values, strict=True):
            assert f"{name}, {part.label}: {value:.2f}" in page.text  # a bar tells its value


def test_json_is_written_last_and_writing_again_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared, order, write = comparison("run0", "run1"), list[str](), comparison_report.write_atomically

    def note(path: Path, text: str) -> None:
        order.append(path.name)
        write(path, text)

    for module in (comparison_report, storage):  # which writes the JSON
        monkeypatch.setattr(module, "write_atomically", note)
    for folder in ("one", "again"):
        write_comparison(tmp_path / folder, compared)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    assert order == ["report.md", "report.html", "comparison.json"] * 2
    assert json.loads((tmp_path / "one" / "comparison.json").read_text("utf-8"))["systems"] == [
        "run0",
        "run1",
    ]


def test_anomalies_are_named_with_what_is_normal_and_flagged(tmp_path: Path) -> None:
    compared = comparison("run0", "run1", references=["word" if row % 2 else "" for row in range(40)])
    label = "length ÷ reference length, in words"
    assert f"run0: {label}" in anomalies_line(compared)
    assert "(references 1.000)" in anomalies_line(compared)
    page, markdown = written(tmp_path, compared)
    assert any(cell.endswith("!") for cell in page.flagged)
    assert " ! |" in markdown
    assert anomalies_line(comparison("run0", "run1")) == "Anomalies: none."


def test_settings_that_differ_stand_out(tmp_path: Path) -> None:
    page, _ = written(tmp_path, comparison("run0", "run1"))
    assert page.flagged[-1:] == ["model.run"]


def test_a_system_may_be_called_as_what_stands_beside_it(tmp_path: Path) -> None:
    compared = comparison("reference", "source")
    page, _ = written(tmp_path, compared)
    (pair,) = compared.pairwise
    for one in (*pair.most_better, *pair.most_worse):
        assert one.source in page.text
        assert one.reference in page.text


def test_tables_fit_the_terminal_with_every_cell() -> None:
    console = Console(width=120, file=io.StringIO())
    show_comparison(console, comparison("run0", "run1", notes=["A [note]."]))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    for part in ("p bootstrap", "p randomisation", "run1", "empty lines", "6–10", "Anomalies", "A [note]."):
        assert part in printed


lines = st.text("ab c", max_size=20)


@given(lines, lines)
def test_a_word_diff_loses_no_word_of_either_line(one: str, other: str) -> None:
    pieces = word_diff(one, other)
    assert " ".join(text for _, text, _ in pieces if text).split() == one.split()
    assert " ".join(text for _, _, text in pieces if text).split() == other.split()
    assert all((left == right) for same, left, right in pieces if same)


def test_a_word_diff_marks_what_differs() -> None:
    assert word_diff("ein alter Hund schläft", "ein Hund schläft tief") == [
        (True, "ein", "ein"),
        (False, "alter", ""),
        (True, "Hund schläft", "Hund schläft"),
        (False, "", "tief"),
    ]
