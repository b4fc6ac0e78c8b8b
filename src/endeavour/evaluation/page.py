"""A report as Markdown and as a self-contained HTML page: pure functions from figures to text.

Knows how a report looks; not where its figures come from or where it is written. The page needs no scripts,
fonts or images from elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from endeavour.evaluation.metrics import LengthBucket, OutputRates, Score

# Source pieces (S), target pieces (T) and weights (T, S), each row a distribution over the source.
AttentionMap = tuple[Sequence[str], Sequence[str], Sequence[Sequence[float]]]

FEW_SENTENCES = 30  # a length bucket with fewer is drawn pale: its BLEU is mostly noise

_RATES = {
    "empty": "empty lines",
    "copied": "copies of the source",
    "repetitive": "repeating: 1–4 words three times in a row",
    "length_ratio": "length ÷ reference length, in words",
}


@dataclass(frozen=True)
class Example:
    """One sentence of the sample: its line number (from 1), its texts and its sentence chrF2."""

    line: int
    source: str
    reference: str
    hypothesis: str
    chrf: float


@dataclass(frozen=True)
class Report:
    title: str
    sentences: int
    scores: Mapping[str, Score]
    buckets: list[LengthBucket]
    rates: dict[str, OutputRates]  # of the outputs, and of the references for comparison
    examples: dict[str, list[Example]]  # best, worst, random
    decoding: Mapping[str, object]
    model: Mapping[str, object]


def _score_rows(report: Report) -> list[list[str]]:
    return [
        [score.name, f"{score.value:.2f}", f"{score.low:.2f} – {score.high:.2f}", score.signature]
        for score in report.scores.values()
    ]


def _bucket_rows(report: Report) -> list[list[str]]:
    return [
        [bucket.label, str(bucket.sentences), f"{bucket.bleu:.2f}", f"{bucket.length_ratio:.3f}"]
        for bucket in report.buckets
    ]


def _rate_rows(report: Report) -> list[list[str]]:
    rows: list[list[str]] = []
    for key, label in _RATES.items():
        values: list[float] = [getattr(rates, key) for rates in report.rates.values()]
        form = "{:.3f}" if key == "length_ratio" else "{:.1%}"
        rows.append([label, *(form.format(value) for value in values)])
    return rows


_SCORE_HEAD = ["score", "value", "95% interval", "sacreBLEU signature"]
_BUCKET_HEAD = ["source words", "sentences", "BLEU", "length ratio"]
_RATE_HEAD = ["figure", "outputs", "references"]
_EXAMPLE_NOTE = "Best and worst by sentence chrF2."
_TER_NOTE = "TER counts edits: lower is better. Intervals: bootstrap resampling over sentences."
_THIN_NOTE = f"Pale bars: fewer than {FEW_SENTENCES} sentences, mostly noise."


def as_markdown(report: Report) -> str:
    parts = [f"# {_plain(report.title)}", f"{report.sentences} sentences."]
    parts += ["## Scores", _markdown_table(_SCORE_HEAD, _score_rows(report)), _TER_NOTE]
    parts += ["## BLEU by source length", _markdown_table(_BUCKET_HEAD, _bucket_rows(report))]
    parts += ["## Outputs", _markdown_table(_RATE_HEAD, _rate_rows(report))]
    parts += ["## Translations", _EXAMPLE_NOTE]
    for name, examples in report.examples.items():
        rows = [[str(e.line), f"{e.chrf:.1f}", e.source, e.reference, e.hypothesis] for e in examples]
        head = ["line", "chrF2", "source", "reference", "translation"]
        parts += [f"### {name.capitalize()}", _markdown_table(head, rows)]
    for name, settings in (("Decoding", report.decoding), ("Model", report.model)):
        rows = [[key, str(value)] for key, value in settings.items()]
        parts += [f"## {name}", _markdown_table(["setting", "value"], rows)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text that Markdown shows as it stands, on one line."""
    escaped = "".join(f"\\{mark}" if mark in "\\`*_[]<>|~#$&" else mark for mark in text)
    return " ".join(escaped.splitlines())


def as_html(report: Report, attention: Sequence[AttentionMap]) -> str:
    title = escape(report.title)
    cards = "".join(
        f"<div class='card'><h3>{escape(score.name)}</h3><b>{score.value:.2f}</b>"
        f"<small>{score.low:.2f} – {score.high:.2f}</small></div>"
        for score in report.scores.values()
    )
    parts = [
        "<!doctype html>",
        f"<html lang='en'><head><meta charset='utf-8'><title>{title}</title>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1><p>{report.sentences} sentences. {_TER_NOTE}</p>",
        f"<div class='cards'>{cards}</div>",
        _html_table(_SCORE_HEAD, _score_rows(report)),
        f"<h2>BLEU by source length</h2>{_bar_chart(report)}<p>{_THIN_NOTE}</p>",
        _html_table(_BUCKET_HEAD, _bucket_rows(report)),
        f"<h2>Outputs</h2>{_html_table(_RATE_HEAD, _rate_rows(report))}",
        f"<h2>Translations</h2><p>{_EXAMPLE_NOTE}</p>",
    ]
    for name, examples in report.examples.items():
        items = "".join(_html_example(example) for example in examples)
        parts.append(
            f"<details open><summary>{name.capitalize()} ({len(examples)})</summary>{items}</details>"
        )
    if attention:
        parts.append("<h2>Cross-attention</h2><p>Rows: pieces put out; columns: pieces of the source.</p>")
        parts += [_heatmap(*picture) for picture in attention]
    for name, settings in (("Decoding", report.decoding), ("Model", report.model)):
        rows = [[key, str(value)] for key, value in settings.items()]
        parts.append(f"<h2>{name}</h2>{_html_table(['setting', 'value'], rows)}")
    return "\n".join([*parts, "</body></html>", ""])


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _html_example(example: Example) -> str:
    texts = {"source": example.source, "reference": example.reference, "translation": example.hypothesis}
    pairs = "".join(f"<dt>{name}</dt><dd dir='auto'>{escape(text)}</dd>" for name, text in texts.items())
    return f"<article><small>line {example.line} · chrF2 {example.chrf:.1f}</small><dl>{pairs}</dl></article>"


def _bar_chart(report: Report) -> str:
    """BLEU by source length as inline SVG, with the corpus BLEU as a dashed line."""
    left, top, height, step = 40, 20, 180, 80
    width = left + step * len(report.buckets) + 70
    overall = report.scores["bleu"].value
    highest = max(overall, *(bucket.bleu for bucket in report.buckets))
    tick = 5 if highest <= 25 else 10 if highest <= 50 else 20
    ceiling = tick * max(1, -(-highest // tick))  # rounded up to a whole tick

    def y(bleu: float) -> float:
        return round(top + height * (1 - bleu / ceiling), 1)

    marks = [
        f"<line class='grid' x1='{left}' x2='{width - 70}' y1='{y(level)}' y2='{y(level)}'/>"
        f"<text class='end' x='{left - 6}' y='{y(level) + 4}'>{level}</text>"
        for level in range(0, int(ceiling) + 1, tick)
    ]
    for number, bucket in enumerate(report.buckets):
        middle = left + step * number + step // 2
        thin = " thin" if bucket.sentences < FEW_SENTENCES else ""
        marks.append(
            f"<rect class='bar{thin}' x='{middle - 24}' y='{y(bucket.bleu)}' width='48' "
            f"height='{round(top + height - y(bucket.bleu), 1)}' rx='3'/>"
            f"<text x='{middle}' y='{top + height + 18}'>{bucket.label}</text>"
            f"<text class='soft' x='{middle}' y='{top + height + 34}'>n = {bucket.sentences}</text>"
        )
    marks.append(
        f"<line class='all' x1='{left}' x2='{width - 70}' y1='{y(overall)}' y2='{y(overall)}'/>"
        f"<text class='start' x='{width - 66}' y='{y(overall) + 4}'>all {overall:.1f}</text>"
    )
    marks += [  # last, so that the dashed line does not cross them out
        f"<text x='{left + step * number + step // 2}' y='{y(bucket.bleu) - 5}'>{bucket.bleu:.1f}</text>"
        for number, bucket in enumerate(report.buckets)
    ]
    size = f"viewBox='0 0 {width} {top + height + 44}' style='max-width:{width}px'"
    return f"<svg {size} role='img' aria-label='BLEU by source length, in words'>{''.join(marks)}</svg>"


def _heatmap(source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[float]]) -> str:
    """Attention weights (T, S) as inline SVG, the darker the larger."""
    assert len(weights) == len(target)
    assert all(len(row) == len(source) for row in weights)
    cell, left, top = 20, 130, 110
    marks = [
        f"<text class='start' transform='translate({left + cell * x + 14} {top - 6}) rotate(-60)'>"
        f"{escape(piece)}</text>"
        for x, piece in enumerate(source)
    ]
    for y, (piece, row) in enumerate(zip(target, weights, strict=True)):
        marks.append(f"<text class='end' x='{left - 6}' y='{top + cell * y + 14}'>{escape(piece)}</text>")
        marks += [
            f"<rect class='bar' x='{left + cell * x}' y='{top + cell * y}' width='{cell}' height='{cell}' "
            f"fill-opacity='{weight:.2f}'><title>{escape(piece)} ← {escape(source[x])}: {weight:.2f}</title>"
            "</rect>"
            for x, weight in enumerate(row)
            if weight >= 0.005  # the rest would be drawn fully transparent
        ]
    across, down = cell * len(source), cell * len(target)
    frame = f"<rect class='frame' x='{left}' y='{top}' width='{across}' height='{down}'/>"
    width, height = left + across + 60, top + down + 10
    size = f"viewBox='0 0 {width} {height}' style='max-width:{width}px'"
    return f"<svg {size} role='img' aria-label='Cross-attention weights'>{''.join(marks)}{frame}</svg>"


_STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #66727f; --page: #fbfbf9; --card: #fff;
  --line: #dfe3e6; --bar: #2b7a9e; --all: #c2571a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --soft: #98a4b0; --page: #15191d;
  --card: #1e2429; --line: #343c44; --bar: #5fb0d3; --all: #eb9660; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; } p, small, dt { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; }
.card, article { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .7rem 1rem; }
.card { flex: 1 1 8rem; } .card h3 { margin: 0; font-size: .85rem; font-weight: 500; }
.card b { display: block; font-size: 1.9rem; line-height: 1.3; } article { margin: .6rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; vertical-align: top; }
td:last-child { overflow-wrap: anywhere; } td:not(:last-child) { white-space: nowrap; }
th { color: var(--soft); font-weight: 500; } summary { cursor: pointer; font-weight: 600; margin-top: 1rem; }
dl { display: grid; grid-template-columns: 6.5rem 1fr; gap: .15rem .5rem; margin: .3rem 0 0; }
dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; } small { font-size: .8rem; }
svg { display: block; width: 100%; height: auto; font-size: 12px; }
svg text { fill: var(--ink); text-anchor: middle; stroke: var(--page); stroke-width: 3;
  paint-order: stroke; }
svg text.soft { fill: var(--soft); }
svg text.end { text-anchor: end; } svg text.start { text-anchor: start; }
.bar { fill: var(--bar); } .thin { opacity: .4; } .grid { stroke: var(--line); }
.all { stroke: var(--all); stroke-dasharray: 5 4; } .frame { fill: none; stroke: var(--line); }
"""
