"""The settings of an evaluation."""

import re
from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from endeavour.data.perturbations import Perturbation
from endeavour.settings import STRICT

# Below this many resamples, 1/40 from either end (a 95% interval) is not even one sample.
MIN_BOOTSTRAP_SAMPLES = 40


@dataclass(kw_only=True, config=STRICT)
class EvaluationConfig:
    """Values and their meaning: conf/evaluation/default.yaml."""

    splits: list[str] | None
    files: dict[str, list[str]]
    sacrebleu: list[str]
    labels: dict[str, str]
    perturbed: list[Perturbation]
    reuse_translations: bool
    english_column: str
    german_column: str
    bootstrap_samples: Annotated[int, Field(ge=MIN_BOOTSTRAP_SAMPLES)]
    num_pictures: Annotated[int, Field(ge=0)]
    tokenized_bleu: bool
    tokenized_references: str | None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.files:
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise ValueError(f"evaluation.files.{name}: a name consists of letters, digits, '_' and '-'")
        if self.tokenized_references is not None and not self.tokenized_bleu:
            raise ValueError(
                "evaluation.tokenized_references needs evaluation.tokenized_bleu=true: without that, set it to null"
            )
        return self


def folder_name(standard: str) -> str:
    """The name of a standard set as a file can be called: that of wmt14/full is wmt14_full."""
    return standard.replace("/", "_")
