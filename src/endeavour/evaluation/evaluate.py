"""One test split, translated, scored and reported: lines in, a folder out.

Knows sentences, scores and the report; not how the model was found or trained.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rich.progress import Progress

from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.alignment import attention_picture
from endeavour.decoding.translator import Translator
from endeavour.errors import UserError
from endeavour.evaluation.metrics import MIN_BOOTSTRAP_SAMPLES, Score, score
from endeavour.evaluation.report import write_report
from endeavour.model.transformer import Transformer


@dataclass(kw_only=True)
class EvaluationConfig:
    """Values and their meaning: conf/evaluation/default.yaml."""

    splits: list[str] | None
    files: dict[str, list[str]]
    english_column: str
    german_column: str
    bootstrap_samples: int
    num_pictures: int
    tokenized_bleu: bool
    tokenized_references: str | None

    def check(self) -> None:
        if self.bootstrap_samples < MIN_BOOTSTRAP_SAMPLES:
            raise UserError(
                f"evaluation.bootstrap_samples={self.bootstrap_samples}: "
                f"a 95% interval needs at least {MIN_BOOTSTRAP_SAMPLES}"
            )
        for name in self.files:
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise UserError(f"evaluation.files.{name}: a name consists of letters, digits, '_' and '-'")
        if self.num_pictures < 0:
            raise UserError(f"evaluation.num_pictures={self.num_pictures}: must not be negative")
        if self.tokenized_references is not None and not self.tokenized_bleu:
            raise UserError("evaluation.tokenized_references needs evaluation.tokenized_bleu=true")


def evaluate_split(
    translator: Translator,
    tokenizers: Tokenizers,
    *,
    model: Transformer,
    title: str,
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    tokenized_references: Sequence[str] | None,
    config: EvaluationConfig,
    seed: int,
    decoding: Mapping[str, object],
    description: Mapping[str, object],
    folder: Path,
    progress: Progress,
) -> dict[str, Score]:
    """Translates `sources`, scores them against the untouched `references`, and writes the report to `folder`.

    `language` is that of the references, and `tokenized_references` are those of a file, if that is asked for.
    `decoding` and `description` (of the model) are settings to show; the pictures are `model`'s own attention,
    whichever engine translates.

    Raises:
        UserError: the two sides differ in length.
    """
    task = progress.add_task(f"translating {title}", total=len(sources))
    hypotheses: list[str] = []
    for hypothesis in translator.translate(sources):
        hypotheses.append(hypothesis)
        progress.update(task, completed=len(hypotheses))
    task = progress.add_task(f"scoring {title}", total=None)
    scores = score(
        hypotheses,
        references,
        bootstrap_samples=config.bootstrap_samples,
        seed=seed,
        tokenized_as=language if config.tokenized_bleu else None,
        tokenized_references=tokenized_references,
    )
    progress.update(task, total=1, completed=1)
    texts = zip(sources, hypotheses, strict=True)
    shown = (row for row, pair in enumerate(texts) if all(map(str.strip, pair)) and translator.whole(*pair))
    write_report(
        folder,
        title=title,
        sources=sources,
        hypotheses=hypotheses,
        references=references,
        scores=scores,
        decoding=decoding,
        model=description,
        seed=seed,
        attention=[
            attention_picture(model, tokenizers, sources[row], hypotheses[row])
            for row in islice(shown, config.num_pictures)
        ],
    )
    return scores
