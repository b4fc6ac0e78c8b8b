"""What an evaluation leaves behind in one folder: sources.txt, references.txt, hypotheses.txt, scores.json, and
the reports report.md and report.html.

Gets finished lines and scores, and words them; it knows nothing of models, decoding or configs, whose
settings it passes on as they are given. The HTML page is self-contained: no scripts, fonts or images from
elsewhere.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from endeavour.evaluation.metrics import (
    Score,
    bleu_by_source_length,
    sentence_scores,
)
from endeavour.evaluation.page import AttentionMap, Example, Report, as_html, as_markdown
from endeavour.evaluation.rates import output_rates
from endeavour.storage import write_atomically

EXAMPLES_EACH = 10  # of the best, the worst and random translations


def write_report(
    folder: Path,
    *,
    title: str,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    scores: Mapping[str, Score],
    decoding: Mapping[str, object],
    model: Mapping[str, object],
    seed: int,
    attention: Sequence[AttentionMap] = (),
) -> None:
    """Write the six files of an evaluation to `folder` (made if need be), each whole or not at all.

    scores.json comes last: where it stands, the evaluation is complete. `scores` is what `metrics.score`
    returns, `decoding` and `model` hold settings to show (name, beam size, digest …), `seed` picks the random
    translations, and `attention` may hold a few cross-attention maps to draw on the HTML page.

    Raises UserError where the line counts differ or there are no lines.
    """
    chrf = sentence_scores(hypotheses, references)
    report = Report(
        title=title,
        sentences=len(hypotheses),
        scores=scores,
        buckets=bleu_by_source_length(sources, hypotheses, references),
        rates={
            "outputs": output_rates(sources, hypotheses, references),
            "references": output_rates(sources, references, references),
        },
        examples=pick_examples(sources, hypotheses, references, chrf, seed=seed),
        decoding=flatten(decoding),
        model=flatten(model),
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scores.json").unlink(missing_ok=True)  # of an earlier evaluation, until this one is complete
    # Byte pieces can decode to a line break, which would shift every line after it.
    lines = [" ".join(hypothesis.splitlines()) for hypothesis in hypotheses]
    for name, column in (("sources", sources), ("references", references), ("hypotheses", lines)):
        write_atomically(folder / f"{name}.txt", "".join(f"{line}\n" for line in column))
    write_atomically(folder / "report.md", as_markdown(report))
    write_atomically(folder / "report.html", as_html(report, attention))
    record = {
        "title": title,
        "sentences": report.sentences,
        "scores": {key: asdict(score) for key, score in scores.items()},
        "bleu_by_source_length": [asdict(bucket) for bucket in report.buckets],
        "output_rates": {name: asdict(rates) for name, rates in report.rates.items()},
        "decoding": dict(decoding),
        "model": dict(model),
        "seed": seed,
    }
    text = json.dumps(record, indent=2, ensure_ascii=False, default=str)
    write_atomically(folder / "scores.json", text + "\n")


def pick_examples(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    chrf: Sequence[float],
    *,
    seed: int,
    count: int = EXAMPLES_EACH,
) -> dict[str, list[Example]]:
    """Choose up to `count` `best`, `worst` and `random` translations by sentence score, no line twice.

    Of equal scores the longer source comes first: a perfect `Yes.` shows little. The random ones keep the
    order of the corpus and come of `seed` alone.
    """
    examples = [
        Example(row + 1, sources[row], references[row], hypotheses[row], chrf[row])
        for row in range(len(hypotheses))
    ]
    count = min(count, max(len(examples) // 3, 1))
    best = sorted(examples, key=lambda example: (-example.chrf, -len(example.source)))[:count]
    others = [example for example in examples if example not in best]
    worst = sorted(others, key=lambda example: (example.chrf, -len(example.source)))[:count]
    others = [example for example in others if example not in worst]
    chosen = random.Random(seed).sample(others, min(count, len(others)))
    return {"best": best, "worst": worst, "random": sorted(chosen, key=lambda example: example.line)}


def flatten(settings: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested settings as one level with dotted names, for a table of two columns."""
    flat: dict[str, object] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten({str(name): item for name, item in value.items()}, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
