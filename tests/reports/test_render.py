"""Escaping: whatever a text holds, it is shown and never obeyed, and no page asks anything of another place."""

import re
from pathlib import Path

import pytest
from html_page import Page
from hypothesis import example, given
from hypothesis import strategies as st
from invented import comparison, evaluation

from endeavour.reports.comparison_report import write_comparison
from endeavour.reports.evaluation_report import write_evaluation
from endeavour.reports.figures import Bars, bar_chart, heatmap
from endeavour.reports.render import escape_markdown

NASTY = "<script>alert(1)</script> | *bold* `code` &amp; 'quoted\" \\| {{ 1 }} <!-- tip: url(x)"


@pytest.fixture(scope="module")
def nasty_folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """An evaluation and a comparison in which every text that comes from outside is a nasty one."""
    one, other = tmp_path_factory.mktemp("evaluation"), tmp_path_factory.mktemp("comparison")
    lines = {side: [NASTY] for side in ("sources", "hypotheses", "references")}
    settings = {NASTY: NASTY}
    write_evaluation(
        one,
        evaluation(lines, title=NASTY, model=settings, decoding=settings),
        [([NASTY], [NASTY], [[1.0]])],
    )
    write_comparison(other, comparison(NASTY, "b", first=NASTY, title=NASTY, notes=[NASTY]))
    return [one, other]


def test_pages_show_text_and_never_obey_it(nasty_folders: list[Path]) -> None:
    for folder in nasty_folders:
        page = Page((folder / "report.html").read_text("utf-8"))
        assert "script" not in page.tags
        assert page.text.count(NASTY) >= 6


def test_pages_are_self_contained(nasty_folders: list[Path]) -> None:
    for folder in nasty_folders:
        page = Page((folder / "report.html").read_text("utf-8"))
        assert not {"script", "link", "img", "image", "iframe", "use", "object"} & set(page.tags)
        assert not {"src", "href", "xlink:href", "onclick"} & set(page.attributes)
        assert "style" in page.attributes
        for css in page.styles:
            assert "url(" not in css
            assert "@import" not in css


def test_every_chart_has_a_label_and_follows_the_colours_of_the_page(nasty_folders: list[Path]) -> None:
    for folder in nasty_folders:
        text = (folder / "report.html").read_text("utf-8")
        charts = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
        assert charts
        for chart in charts:
            assert re.match(r'<svg [^>]*role="img" aria-label="[^"]+"', chart)
            assert not re.findall(r"(?:fill|stroke): #", chart)


def test_markdown_tables_keep_their_columns(nasty_folders: list[Path]) -> None:
    for folder in nasty_folders:
        columns = 0
        for line in (folder / "report.md").read_text("utf-8").splitlines():
            bars = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))
            assert not line or bars == (columns or bars), line  # as in the heading, until a line is empty
            columns = bars
        text = re.sub(r"\\(.)", r"\1", (folder / "report.md").read_text("utf-8"))
        assert text.count(NASTY) >= 5


@given(st.text())
@example("a\nb\x85c\u2028d\\")
def test_escaped_markdown_is_one_line_that_reads_as_the_text(text: str) -> None:
    escaped = str(escape_markdown(text))
    assert len(escaped.splitlines()) <= 1
    assert re.sub(r"\\(.)", r"\1", escaped, flags=re.DOTALL) == " ".join(text.splitlines())
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>|~#$&]", escaped)


@pytest.mark.parametrize("text", [NASTY, "$x^2$", "\x00\x1b\ud800\uffff", "猫\u0301", "", "\n", "]]>"])
def test_any_text_can_stand_in_a_chart(text: str) -> None:
    shown = re.sub("[\x00-\x1f\ud800\uffff]", "\ufffd", text)
    picture = Page(str(heatmap(([text], [text, text], [[1.0], [0.5]]), text)))
    assert f"{shown} ← {shown}: 0.50" in picture.text
    assert "script" not in picture.tags
    bars = Page(str(bar_chart(Bars([text, "b"], [text], [3], [[1.0, 0.0]]), text)))
    assert f"{shown}, {shown}: 1.00" in bars.text


@pytest.mark.parametrize("value", [0.0, 0.4, 24.9, 25.0, 100.0])
def test_every_bar_ends_within_the_chart(value: float) -> None:
    chart = str(bar_chart(Bars(["BLEU"], ["1–5"], [40], [[value]], overall=value / 2), "title"))
    (path,) = re.findall(r'<path d="([^"]+)" style="fill: var\(--blue\)', chart)
    heights = [float(y) for y in re.findall(r"[-\d.]+ ([-\d.]+)", path)]
    assert all(20 <= height <= 200.1 for height in heights)
