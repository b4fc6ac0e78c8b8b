"""A report as Markdown and as a self-contained HTML page: pure functions from figures to text.

Knows how a report looks; not where its figures come from or where it is written. The page needs no scripts,
fonts or images from elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from endeavour.evaluation.markup import html_page, html_table, markdown_table, plain
from endeavour.evaluation.metrics import LengthBucket, Score
from endeavour.evaluation.rates import OutputRates, rate_rows

# Source pieces (S), target pieces (T) and weights (T, S), each row a distribution over the source.
AttentionMap = tuple[Sequence[str], Sequence[str], Sequence[Sequence[float]]]

FEW_SENTENCES = 30  # a length bucket with fewer is drawn pale: its BLEU is mostly noise


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


_SCORE_HEAD = ["score", "value", "95% interval", "sacreBLEU signature"]
_BUCKET_HEAD = ["source words", "sentences", "BLEU", "length ratio"]
_RATE_HEAD = ["figure", "outputs", "references"]
_EXAMPLE_NOTE = "Best and worst by sentence chrF2."
_TER_NOTE = "TER counts edits: lower is better. Intervals: bootstrap resampling over sentences."
_THIN_NOTE = f"Pale bars: fewer than {FEW_SENTENCES} sentences, mostly noise."


def as_markdown(report: Report) -> str:
    parts = [f"# {plain(report.title)}", f"{report.sentences} sentences."]
    parts += ["## Scores", markdown_table(_SCORE_HEAD, _score_rows(report)), _TER_NOTE]
    parts += ["## BLEU by source length", markdown_table(_BUCKET_HEAD, _bucket_rows(report))]
    parts += ["## Outputs", markdown_table(_RATE_HEAD, rate_rows(list(report.rates.values())))]
    parts += ["## Translations", _EXAMPLE_NOTE]
    for name, examples in report.examples.items():
        rows = [[str(e.line), f"{e.chrf:.1f}", e.source, e.reference, e.hypothesis] for e in examples]
        head = ["line", "chrF2", "source", "reference", "translation"]
        parts += [f"### {name.capitalize()}", markdown_table(head, rows)]
    for name, settings in (("Decoding", report.decoding), ("Model", report.model)):
        rows = [[key, str(value)] for key, value in settings.items()]
        parts += [f"## {name}", markdown_table(["setting", "value"], rows)]
    return "\n\n".join(parts) + "\n"


def as_html(report: Report, attention: Sequence[AttentionMap]) -> str:
    cards = "".join(
        f"<div class='card'><h3>{escape(score.name)}</h3><b>{score.value:.2f}</b>"
        f"<small>{score.low:.2f} – {score.high:.2f}</small></div>"
        for score in report.scores.values()
    )
    parts = [
        f"<h1>{escape(report.title)}</h1><p>{report.sentences} sentences. {_TER_NOTE}</p>",
        f"<div class='cards'>{cards}</div>",
        html_table(_SCORE_HEAD, _score_rows(report)),
        f"<h2>BLEU by source length</h2>{_bar_chart(report)}<p>{_THIN_NOTE}</p>",
        html_table(_BUCKET_HEAD, _bucket_rows(report)),
        f"<h2>Outputs</h2>{html_table(_RATE_HEAD, rate_rows(list(report.rates.values())))}",
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
        parts.append(f"<h2>{name}</h2>{html_table(['setting', 'value'], rows)}")
    return html_page(report.title, parts)


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
