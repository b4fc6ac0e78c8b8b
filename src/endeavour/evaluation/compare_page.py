"""A comparison as Markdown and as a self-contained HTML page, with the words marked in which two outputs differ.

Knows how a comparison looks; not where its figures come from or where it is written.
"""

from collections.abc import Callable
from difflib import SequenceMatcher
from html import escape

from endeavour.evaluation.compare import Comparison, Contest, Difference
from endeavour.evaluation.compare_tables import (
    Figures,
    figure_tables,
    numeric_columns,
    settings_table,
    signature_table,
    strange_line,
)
from endeavour.evaluation.markup import html_page, html_table, markdown_table, plain
from endeavour.evaluation.page import FEW_SENTENCES


def as_markdown(comparison: Comparison) -> str:
    parts = [f"# {plain(comparison.title)}", *_introduction(comparison, plain)]
    for figures in (*figure_tables(comparison), signature_table(comparison), settings_table(comparison)):
        parts += [f"## {plain(figures.title)}", *([plain(figures.note)] if figures.note else [])]
        parts.append(markdown_table([plain(cell) for cell in figures.head], figures.rows))
    parts.append("## Sentences that differ most")
    for contest in comparison.contests:
        head = ["line", "Δ chrF2", "source", "reference", comparison.systems[0], contest.system]
        for heading, differences in _halves(comparison, contest):
            rows = [
                [
                    str(one.line),
                    f"{one.chrf - one.baseline_chrf:+.1f}",
                    *(one.source, one.reference, one.baseline, one.hypothesis),
                ]
                for one in differences
            ]
            parts += [f"### {plain(heading)}", markdown_table([plain(name) for name in head], rows)]
    return "\n\n".join(parts) + "\n"


def as_html(comparison: Comparison) -> str:
    introduction = "".join(f"<p>{line}</p>" for line in _introduction(comparison, escape))
    parts = [f"<h1>{escape(comparison.title)}</h1>{introduction}", _cards(comparison)]
    parts += [_html_figures(figures) for figures in figure_tables(comparison)]
    parts.append(
        "<h2>Sentences that differ most</h2><p>Marked: words that only one of the two outputs has there.</p>"
    )
    for contest in comparison.contests:
        for heading, differences in _halves(comparison, contest):
            items = "".join(
                _html_difference(one, comparison.systems[0], contest.system) for one in differences
            )
            parts.append(f"<details open><summary>{escape(heading)}</summary>{items}</details>")
    parts += [_html_figures(signature_table(comparison)), _html_figures(settings_table(comparison))]
    return html_page(comparison.title, parts)


def word_diff(one: str, other: str) -> list[tuple[bool, str, str]]:
    """Two lines in pieces of whole words: (whether they are the same there, text of one, text of the other)."""
    left, right = one.split(), other.split()
    return [
        (kind == "equal", " ".join(left[a:b]), " ".join(right[c:d]))
        for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    ]


def _introduction(comparison: Comparison, escaped: Callable[[str], str]) -> list[str]:
    baseline = f"{comparison.sentences} sentences. Baseline: {comparison.systems[0]}."
    return [escaped(line) for line in (baseline, strange_line(comparison), *comparison.notes)]


def _halves(comparison: Comparison, contest: Contest) -> list[tuple[str, list[Difference]]]:
    """What is shown of a contest, under headings; nothing of a half without a sentence."""
    pair = f"{contest.system} than {comparison.systems[0]}"
    halves = [
        (f"Better in {pair}: {len(contest.most_better)} of {contest.better}", contest.most_better),
        (f"Worse in {pair}: {len(contest.most_worse)} of {contest.worse}", contest.most_worse),
    ]
    return [(heading, differences) for heading, differences in halves if differences]


def _cards(comparison: Comparison) -> str:
    """A row of cards a metric, one a system: the score, and how it stands to the baseline."""
    rows = ""
    for test in comparison.tests:
        cards = ""
        for score in test.systems:
            against = "baseline"
            if score.p_randomization is not None:
                against = f"{score.difference:+.2f}, p = {score.p_randomization:.4f}"
            cards += (
                f"<div class='card'><h3>{escape(test.metric)}, {escape(score.system)}</h3>"
                f"<b>{score.value:.2f}</b><small>{against}</small></div>"
            )
        rows += f"<div class='cards'>{cards}</div>"
    return rows


def _html_figures(figures: Figures) -> str:
    note = f"<p>{escape(figures.note)}</p>" if figures.note else ""
    table = html_table(figures.head, figures.rows, flagged=figures.marked, numeric=numeric_columns(figures))
    return f"<h2>{escape(figures.title)}</h2>{_chart(figures)}{note}{table}"


def _chart(figures: Figures) -> str:
    """Grouped bars, one a system and slice, as inline SVG; nothing where there is nothing to draw."""
    if not figures.slices:
        return ""
    systems = len(figures.slices[0].values)
    bar, top, height = (26 if systems < 4 else 14), 16, 150
    step = bar * systems + 28
    ceiling = max(10.0, *(value for part in figures.slices for value in part.values))
    marks = ""
    for number, part in enumerate(figures.slices):
        x = step * number + 14
        thin = " thin" if part.count < FEW_SENTENCES else ""
        for order, value in enumerate(part.values):
            tall = round(height * value / ceiling, 1)
            y = round(top + height - tall, 1)
            marks += (
                f"<rect class='bar run{order % 6}{thin}' x='{x + bar * order}' y='{y}' width='{bar - 2}' "
                f"height='{tall}' rx='2'><title>{value:.2f}</title></rect>"
            )
            if systems < 4:
                marks += f"<text x='{x + bar * order + bar // 2 - 1}' y='{y - 4}'>{value:.0f}</text>"
        middle = x + bar * systems // 2
        marks += f"<text x='{middle}' y='{top + height + 18}'>{part.label}</text>"
        marks += f"<text class='soft' x='{middle}' y='{top + height + 34}'>n = {part.count}</text>"
    names = [name for name in figures.head[2:] if name != "Δ"]
    legend = " ".join(
        f"<span><i class='run{number % 6}'></i> {escape(name)}</span>" for number, name in enumerate(names)
    )
    width = step * len(figures.slices) + 20
    size = f"viewBox='0 0 {width} {top + height + 44}' style='max-width:{width}px'"
    label = escape(figures.title, quote=True)
    return f"<p class='legend'>{legend}</p><svg {size} role='img' aria-label='{label}'>{marks}</svg>"


def _html_difference(one: Difference, baseline: str, system: str) -> str:
    pieces = word_diff(one.baseline, one.hypothesis)
    left = " ".join(_marked(text, "del", same) for same, text, _ in pieces if text)
    right = " ".join(_marked(text, "ins", same) for same, _, text in pieces if text)
    texts = [
        ("source", escape(one.source)),
        ("reference", escape(one.reference)),
        (escape(baseline), left or "<em>empty</em>"),
        (escape(system), right or "<em>empty</em>"),
    ]
    pairs = "".join(f"<dt>{name}</dt><dd dir='auto'>{text}</dd>" for name, text in texts)
    scores = f"chrF2 {one.baseline_chrf:.1f} → {one.chrf:.1f}"
    return f"<article class='two'><small>line {one.line} · {scores}</small><dl>{pairs}</dl></article>"


def _marked(text: str, tag: str, same: bool) -> str:
    return escape(text) if same else f"<{tag}>{escape(text)}</{tag}>"
