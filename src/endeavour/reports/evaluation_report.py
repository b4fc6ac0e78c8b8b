"""What an evaluation writes into one folder: sources.txt, references.txt, hypotheses.txt, scores.json, and the
reports report.md and report.html; and what the terminal shows of several.

Knows the words of the report; its figures come with the result, its look from the templates.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as ScreenTable
from rich.text import Text

from endeavour.evaluation.comet import COMET_FILE
from endeavour.evaluation.metrics import METRICS
from endeavour.evaluation.result import EvaluationResult
from endeavour.evaluation.subsets import FEW_FOR_INTERVAL
from endeavour.progress import say
from endeavour.reports.figures import AttentionMap, Bars
from endeavour.reports.render import render_html, render_markdown
from endeavour.reports.tables import NOISE_NOTE, Table, rates_table, screen_table, settings_table
from endeavour.storage import write_atomically, write_json

# What sacreBLEU calls what its labels are, in words.
KINDS = {"docid": "document", "origlang": "original language"}
LONGEST_TABLE = 40  # labels; a test set may have hundreds of documents

_FALLING = ", ".join(metric.label for metric in METRICS.values() if metric.less_is_better)
CAPITALS_NOTE = "The model writes no capitals, so overlap, sentence scores, parts and rates ignore them."
COMET_NOTE = f"COMET: the mean of {COMET_FILE}, in which comet-score does not say by which model."
PERTURBED_NOTE = (
    "The same sentences, altered. upper_case, no_final_punctuation and placeholders alter the references as they do "
    "the sources; each copy has a report of its own."
)
SCORE_NOTE = f"{_FALLING}: lower is better. Intervals: bootstrap resampling over sentences."


def write_evaluation(
    folder: Path,
    result: EvaluationResult,
    attention: Sequence[AttentionMap] = (),
    *,
    play: str | None = None,
) -> None:
    """Write the six files of an evaluation to `folder` (made if need be), each whole or not at all.

    scores.json comes last: where it stands, the evaluation is complete. `attention` may hold a few cross-attention
    maps to draw on the HTML page, `play` be the command that shows more.
    """
    values = {
        "result": result,
        "tables": [
            _scores(result),
            *perturbed_tables([result]),
            _lengths(result),
            *_labels(result),
            rates_table(result.rates, {}),
        ],
        "overlap": overlap_line(result),
        "capitals": f" {CAPITALS_NOTE}" if result.lowercase else "",
        "settings": [settings_table("Decoding", result.decoding), settings_table("Model", result.model)],
        "attention": attention,
        "play": play,
    }
    columns = {"sources": result.sources, "references": result.references, "hypotheses": result.hypotheses}
    texts = {f"{name}.txt": "".join(f"{line}\n" for line in lines) for name, lines in columns.items()}
    texts["report.md"] = render_markdown("evaluation.md.j2", **values)
    texts["report.html"] = render_html("evaluation.html.j2", **values)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scores.json").unlink(missing_ok=True)  # of an earlier evaluation, until this one is complete
    for name, text in texts.items():
        write_atomically(folder / name, text)
    write_json(folder / "scores.json", result.record())


def show_evaluation(
    console: Console, results: Mapping[str, EvaluationResult], folders: Mapping[str, Path], title: str
) -> None:
    """Prints the tables, how the scores were made, what was known before, and where the reports lie.

    Args:
        results, folders: by test set.
    """
    console.print(_screen_scores(results, title))
    for table in perturbed_tables(results.values()):
        console.print(screen_table(table))
    for name, result in results.items():
        for key in (result.bleu_key, "bleu_tokenized"):
            if key in result.scores:
                say(console, f"{name}: {result.scores[key].signature}")
        if result.overlap is not None and result.overlap.sources:
            say(console, f"{name}: {overlap_line(result)}")
        say(console, f"report: {folders[name] / 'report.html'}")


def _screen_scores(results: Mapping[str, EvaluationResult], title: str) -> ScreenTable:
    """A row a score and a column a test set: as a column each, the scores would not fit a terminal."""
    table = ScreenTable("score", title=Text(title))
    for name in results:
        table.add_column(name, justify="right")
    names = {key: score.name for result in results.values() for key, score in result.scores.items()}
    for key, name in names.items():
        found = [result.scores.get(key) for result in results.values()]
        cells = ["–" if one is None else f"{one.value:.2f} [{one.low:.1f}, {one.high:.1f}]" for one in found]
        table.add_row(name, *cells)
    return table


def overlap_line(result: EvaluationResult) -> str:
    """How many sentences of the test set the training text has."""
    if result.overlap is None:
        return "The training text is not at hand, so it is not known how many of them occur in it."
    known, pairs, count = result.overlap.sources, result.overlap.pairs, len(result.sources)
    if not known:
        return "None of them occurs in the training text."
    return (
        f"{known:,} of them ({known / count:.1%}) occur in the training text as sources, {pairs:,} "
        f"({pairs / count:.1%}) with the same translation as here."
    )


def perturbed_tables(results: Iterable[EvaluationResult]) -> list[Table]:
    """For each that has altered copies of its test set their scores, and how far these are from its own."""
    tables: list[Table] = []
    for result in results:
        if result.perturbed:
            own = {key: result.scores[key].value for key in _perturbed_metrics(result)}
            rows = [["none", "–", *(cell for value in own.values() for cell in (f"{value:.2f}", "–"))]]
            for how, copy in result.perturbed.items():
                row = [how, f"{copy.altered / len(result.sources):.1%}"]
                for key, value in own.items():
                    row += [f"{copy.scores[key]:.2f}", f"{copy.scores[key] - value:+.2f}"]
                rows.append(row)
            labels = [label for key in own for label in (METRICS[key].label, "difference")]
            head = ["perturbation", "altered", *labels]
            tables.append(Table(f"Perturbed input: {result.title}", head, rows, PERTURBED_NOTE))
    return tables


def _perturbed_metrics(result: EvaluationResult) -> tuple[str, ...]:
    """chrF has capitals, which altered references may be in."""
    return (result.bleu_key,) if result.lowercase else (result.bleu_key, "chrf")


def _scores(result: EvaluationResult) -> Table:
    rows = [
        [score.name, f"{score.value:.2f}", f"{score.low:.2f} – {score.high:.2f}", score.signature]
        for score in result.scores.values()
    ]
    note = f"{SCORE_NOTE} {COMET_NOTE}" if "comet" in result.scores else SCORE_NOTE
    return Table("Scores", ["score", "value", "95% interval", "signature"], rows, note)


def _labels(result: EvaluationResult) -> list[Table]:
    tables: list[Table] = []
    for kind, scores in result.bleu_by_label.items():
        what = KINDS.get(kind, kind)
        rows = [
            [
                score.label,
                str(score.sentences),
                f"{score.bleu:.2f}",
                "–" if score.low is None or score.high is None else f"{score.low:.2f} – {score.high:.2f}",
            ]
            for score in scores[:LONGEST_TABLE]
        ]
        more = f" The {LONGEST_TABLE} of {len(scores)} that have most sentences; scores.json has all."
        note = f"Intervals from {FEW_FOR_INTERVAL} sentences on.{more if len(scores) > LONGEST_TABLE else ''}"
        bleu = METRICS[result.bleu_key].label
        tables.append(Table(f"{bleu} by {what}", [what, "sentences", bleu, "95% interval"], rows, note))
    return tables


def _lengths(result: EvaluationResult) -> Table:
    buckets, bleu = result.buckets, METRICS[result.bleu_key].label
    bars = Bars(
        names=[bleu],
        labels=[bucket.label for bucket in buckets],
        counts=[bucket.sentences for bucket in buckets],
        values=[[bucket.bleu] for bucket in buckets],
        overall=result.scores[result.bleu_key].value,
    )
    rows = [
        [bucket.label, str(bucket.sentences), f"{bucket.bleu:.2f}", f"{bucket.length_ratio:.3f}"]
        for bucket in buckets
    ]
    head = ["source words", "sentences", bleu, "length ratio"]
    return Table(f"{bleu} by source length", head, rows, NOISE_NOTE, bars=bars)
