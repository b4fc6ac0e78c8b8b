"""`endeavour evaluate`: scores a trained run, or an ensemble of several, on test splits or other files."""

from pathlib import Path

from pydantic.dataclasses import dataclass

from endeavour.commands.opened import TranslatingRoot, open_runs
from endeavour.evaluation.config import EvaluationConfig
from endeavour.pipeline.evaluator import Values
from endeavour.settings import STRICT


@dataclass(kw_only=True, config=STRICT)
class EvaluateRoot(TranslatingRoot):
    """Values and their meaning: conf/evaluate.yaml."""

    data_folder: str
    corpus_path: str | None
    evaluation: EvaluationConfig


def evaluate(config: EvaluateRoot) -> Values:
    """Translates and scores test sets with the runs that `config` names; see `TrainedRun.evaluate_as`."""
    return open_runs(config).evaluate_as(
        config.evaluation, data_folder=Path(config.data_folder), corpus_path=config.corpus_path
    )
