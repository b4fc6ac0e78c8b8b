"""`endeavour evaluate`: scores a trained run, or an ensemble of several, on test splits or other files."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass

from endeavour.data.corpus import TRAIN, VALIDATION
from endeavour.decoding.config import DecodingConfig
from endeavour.evaluation.config import EvaluationConfig
from endeavour.pipeline.data import data_of
from endeavour.pipeline.evaluator import Evaluator, Values, choose_evaluation_sets
from endeavour.runs.run import select_runs
from endeavour.settings import STRICT
from endeavour.training.device import choose_device


@dataclass(kw_only=True, config=STRICT)
class EvaluateRoot:
    """Values and their meaning: conf/evaluate.yaml."""

    run: str | None
    device: str
    data_folder: str
    output_folder: str
    corpus_path: str | None
    quantization: Literal["int8", "float32"]
    decoding: DecodingConfig
    evaluation: EvaluationConfig


def evaluate(config: EvaluateRoot) -> Values:
    """Translates and scores test sets with the runs that `config` names; see `pipeline.evaluator`.

    Returns:
        Test set → metric → value.
    """
    runs = select_runs(config.run, Path(config.output_folder))
    trained = runs[0].config
    settings = _as_asked(config.evaluation, trained.evaluation)
    data = None
    if settings.splits != []:  # for other files alone the corpus may be gone
        data = data_of(runs[0], Path(config.data_folder), config.corpus_path)
    evaluator = Evaluator(
        runs=runs,
        decoding=config.decoding,
        quantization=config.quantization,
        settings=settings,
        device=choose_device(config.device),
    )
    return evaluator.evaluate(choose_evaluation_sets(settings, trained.direction, data, runs[0].splits))


def _as_asked(asked: EvaluationConfig, trained: EvaluationConfig) -> EvaluationConfig:
    """Without splits: those that the run was evaluated on after training, or none where files are given.

    Tokenized references are the run's own, and belong to what was evaluated then.
    """
    if asked.splits is None:
        asked = replace(asked, splits=[] if asked.files else trained.splits)
    same = not asked.files and not _other_splits(asked.splits, trained.splits)
    if not same and asked.tokenized_references == trained.tokenized_references:
        asked = replace(asked, tokenized_references=None)
    return asked


def _other_splits(asked: list[str] | None, evaluated: list[str] | None) -> bool:
    """Whether one that is asked for was not evaluated after training; None stands for all test splits of the corpus."""
    if asked is None or asked == evaluated:
        return False
    return any(
        split in (TRAIN, VALIDATION) if evaluated is None else split not in evaluated for split in asked
    )
