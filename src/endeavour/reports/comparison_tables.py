"""The tables of a comparison, and what they say about themselves.

Knows what stands in which cell; not where the figures come from, and neither HTML nor Markdown.
"""

from collections.abc import Sequence

from endeavour.evaluation.comparison import REFERENCES, Comparison, Slice
from endeavour.evaluation.rates import NORMAL_LENGTH
from endeavour.evaluation.significance import LEVEL, SystemScore
from endeavour.reports.figures import Bars
from endeavour.reports.tables import NOISE_NOTE, RATE_LABELS, Table, rate_text, rates_table

SIGNIFICANCE_NOTE = (
    "Δ: difference from the baseline, the first run. p: probability of a Δ at least as large if both runs were equally "
    "good, by paired bootstrap resampling (one-sided, as in sacreBLEU; it also gives the 95% intervals) and by "
    f"approximate randomisation (two-sided). Marked *: below {LEVEL} by both. With many runs, some differ by chance."
)
RATES_NOTE = (
    "Marked !: an anomaly, more than one and a half times the share in the references plus two sentences' worth (of "
    f"tags, placeholders and addresses two), or a length ratio outside {NORMAL_LENGTH[0]}–{NORMAL_LENGTH[1]}."
)


def anomalies_line(comparison: Comparison) -> str:
    """Which rates of which outputs are not normal, in one line."""
    normal = comparison.rates[REFERENCES]
    findings = [
        f"{system}: {RATE_LABELS[name].partition(':')[0]} {rate_text(comparison.rates[system], name)} "
        f"(references {rate_text(normal, name)})"
        for system, names in comparison.anomalies.items()
        for name in names
    ]
    return f"Anomalies: {'; '.join(findings) or 'none'}."


def result_tables(comparison: Comparison) -> list[Table]:
    """All results, in the order of the report."""
    tables = [
        _scores(comparison),
        _slices(comparison, "BLEU by source length", "source words", comparison.bleu_by_source_length),
    ]
    if comparison.bleu_by_rarest_source_word is not None:
        title, head = "BLEU by the sentence's rarest source word", "in training"
        tables.append(_slices(comparison, title, head, comparison.bleu_by_rarest_source_word))
    if comparison.word_f1_by_frequency is not None:
        title, head = "F1 of target words, by their frequency", "in training"
        tables.append(_slices(comparison, title, head, comparison.word_f1_by_frequency, counted="words"))
    columns = {name: comparison.rates[name] for name in (*comparison.systems, REFERENCES)}
    return [*tables, _pairwise(comparison), rates_table(columns, comparison.anomalies, RATES_NOTE)]


def _scores(comparison: Comparison) -> Table:
    scores = [(test.metric, score) for test in comparison.tests for score in test.systems]
    rows = [
        [metric, score.system, f"{score.value:.2f}", f"{score.low:.2f} – {score.high:.2f}", *_tested(score)]
        for metric, score in scores
    ]
    marked = {(row, 4) for row, (_, score) in enumerate(scores) if score.significant}
    head = ["metric", "run", "score", "95% interval", "Δ", "p bootstrap", "p randomisation"]
    return Table("Scores", head, rows, SIGNIFICANCE_NOTE, marked)


def _tested(score: SystemScore) -> list[str]:
    if score.p_bootstrap is None or score.p_randomization is None:
        return ["baseline", "", ""]
    star = "*" if score.significant else ""
    return [f"{score.difference:+.2f}{star}", f"{score.p_bootstrap:.4f}", f"{score.p_randomization:.4f}"]


def _slices(
    comparison: Comparison, title: str, heading: str, slices: Sequence[Slice], counted: str = "sentences"
) -> Table:
    baseline, *others = comparison.systems
    head = [heading, counted, baseline, *(text for name in others for text in (name, "Δ"))]
    rows: list[list[str]] = []
    for part in slices:
        first, *rest = part.values
        differences = [text for value in rest for text in (f"{value:.2f}", f"{value - first:+.2f}")]
        rows.append([part.label, str(part.count), f"{first:.2f}", *differences])
    bars = Bars(
        names=comparison.systems,
        labels=[part.label for part in slices],
        counts=[part.count for part in slices],
        values=[part.values for part in slices],
    )
    return Table(title, head, rows, NOISE_NOTE, bars=bars)


def _pairwise(comparison: Comparison) -> Table:
    rows = [[one.system, str(one.better), str(one.equal), str(one.worse)] for one in comparison.pairwise]
    note = f"Against {comparison.systems[0]}, by sentence chrF2."
    return Table("Sentences", ["run", "better", "equal", "worse"], rows, note)


def differing_settings(comparison: Comparison) -> Table:
    """How the outputs were made, as far as it is known, run by run; what differs stands out."""
    known = {system: settings for system, settings in comparison.settings.items() if settings}
    names = dict.fromkeys(name for settings in known.values() for name in settings)
    rows = [[name, *(str(settings.get(name, "–")) for settings in known.values())] for name in names]
    differing = {(number, 0) for number, row in enumerate(rows) if len(set(row[1:])) > 1}
    return Table("Settings", ["setting", *known], rows, marked=differing)


def signatures(comparison: Comparison) -> Table:
    """sacreBLEU's, of each test of each metric."""
    rows = [
        [test.metric, kind, signature]
        for test in comparison.tests
        for kind, signature in (
            ("bootstrap", test.bootstrap_signature),
            ("randomisation", test.randomization_signature),
        )
    ]
    return Table("Signatures", ["metric", "test", "signature"], rows)
