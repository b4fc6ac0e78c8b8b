"""`endeavour evaluate`: scores a trained run, or an ensemble of several, on test splits or other files."""

from pathlib import Path

from pydantic.dataclasses import dataclass

from endeavour.commands.opened import open_runs
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ctranslate2 import Quantization
from endeavour.evaluation.config import EvaluationConfig
from endeavour.pipeline.evaluator import Values
from endeavour.settings import STRICT


@dataclass(kw_only=True, config=STRICT)
class EvaluateRoot:
    """Values and their meaning: conf/evaluate.yaml."""

    run: str | None
    device: str
    data_folder: str
    output_folder: str
    corpus_path: str | None
    quantization: Quantization
    decoding: DecodingConfig
    evaluation: EvaluationConfig


def evaluate(config: EvaluateRoot) -> Values:
    """Translates and scores test sets with the runs that `config` names; see `TrainedRun.evaluate_as`."""
    return open_runs(config).evaluate_as(
        config.evaluation, data_folder=Path(config.data_folder), corpus_path=config.corpus_path
    )
