"""One test set, translated and scored: lines in, a result out.

Knows sentences and scores; not how the model was found or trained, and not how a report looks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Self

import pydantic.dataclasses
from pydantic import Field, model_validator
from rich.progress import Progress

from endeavour.data.tokenizer import Tokenizers
from endeavour.evaluation.metrics import MIN_BOOTSTRAP_SAMPLES, score
from endeavour.evaluation.result import EvaluationResult
from endeavour.evaluation.translate import Translator, attention_picture
from endeavour.model.transformer import Transformer
from endeavour.settings import STRICT


@pydantic.dataclasses.dataclass(kw_only=True, config=STRICT)
class EvaluationConfig:
    """Values and their meaning: conf/evaluation/default.yaml."""

    splits: list[str] | None
    files: dict[str, list[str]]
    english_column: str
    german_column: str
    bootstrap_samples: Annotated[int, Field(ge=MIN_BOOTSTRAP_SAMPLES)]  # fewer make no 95% interval
    num_pictures: Annotated[int, Field(ge=0)]
    tokenized_bleu: bool
    tokenized_references: str | None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.files:  # they become names of folders
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise ValueError(f"evaluation.files.{name}: a name consists of letters, digits, '_' and '-'")
        if self.tokenized_references is not None and not self.tokenized_bleu:
            raise ValueError("evaluation.tokenized_references needs evaluation.tokenized_bleu=true")
        return self


@dataclass(frozen=True)
class EvaluationSet:
    """Sentences with their references, which are in `language`; `tokenized_references` are those of a file, if any."""

    sources: Sequence[str]
    references: Sequence[str]
    language: str
    tokenized_references: Sequence[str] | None = None


def evaluate_split(
    translator: Translator,
    split: EvaluationSet,
    *,
    title: str,
    config: EvaluationConfig,
    seed: int,
    decoding: Mapping[str, object],
    model: Mapping[str, object],
    progress: Progress,
) -> EvaluationResult:
    """Translates the sources and scores them against the untouched references.

    `decoding` and `model` are settings to show.

    Raises:
        UserError: the two sides differ in length.
    """
    task = progress.add_task(f"translating {title}", total=len(split.sources))
    hypotheses: list[str] = []
    for hypothesis in translator.translate(split.sources):
        hypotheses.append(hypothesis)
        progress.update(task, completed=len(hypotheses))
    task = progress.add_task(f"scoring {title}", total=None)
    scores = score(
        hypotheses,
        split.references,
        bootstrap_samples=config.bootstrap_samples,
        seed=seed,
        tokenized_as=split.language if config.tokenized_bleu else None,
        tokenized_references=split.tokenized_references,
    )
    progress.update(task, total=1, completed=1)
    return EvaluationResult(
        title=title,
        sources=split.sources,
        hypotheses=hypotheses,
        references=split.references,
        scores=scores,
        decoding=decoding,
        model=model,
        seed=seed,
    )


def attention_maps(
    translator: Translator,
    model: Transformer,
    tokenizers: Tokenizers,
    result: EvaluationResult,
    *,
    count: int,
) -> list[tuple[list[str], list[str], list[list[float]]]]:
    """`model`'s own attention, whichever engine translated, in the first `count` sentences that are fit to show."""
    texts = zip(result.sources, result.hypotheses, strict=True)
    shown = (pair for pair in texts if all(map(str.strip, pair)) and translator.whole(*pair))
    return [attention_picture(model, tokenizers, *pair) for pair in islice(shown, count)]
