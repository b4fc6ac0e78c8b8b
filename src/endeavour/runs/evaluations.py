"""Evaluations that lie in run folders, as objects: found by name, and read; `pipeline.evaluator` makes them.

<run>/evaluation/<test set>-<decoding>[-<engine>-<quantization>][-with-<runs>]/
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from endeavour.data.corpus import VALIDATION
from endeavour.data.perturbations import PERTURBATIONS, copy_name
from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.evaluation.config import folder_name
from endeavour.runs.command_lines import evaluate_command
from endeavour.runs.names import escaped, joined_or_digest
from endeavour.runs.run import Run
from endeavour.storage import read_lines

LONGEST_ENSEMBLE = 100  # bytes of the names of its runs in that of a folder; file systems take 255


@dataclass(frozen=True)
class Evaluation:
    """One evaluation's folder, whether it exists or not."""

    run: Run
    folder_name: str

    @property
    def folder(self) -> Path:
        return self.run.folder / "evaluation" / self.folder_name

    @property
    def scores_file(self) -> Path:
        return self.folder / "scores.json"

    @property
    def is_finished(self) -> bool:
        try:
            return self.scores_file.is_file()
        except OSError:  # too long a name, or a folder that cannot be read
            return False

    @cached_property
    def record(self) -> dict[str, Any]:
        """What scores.json holds. Raises `UserError` where it is damaged."""
        path = self.scores_file
        try:
            record = json.loads(path.read_text("utf-8"))
            if not (isinstance(record["decoding"], dict) and isinstance(record["model"]["test_set"], str)):
                raise TypeError("values of another kind")
            return record
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} is missing or damaged: delete {self.folder}, or run `{self.command}`"
            ) from error

    @property
    def test_set(self) -> str:
        return self.record["model"]["test_set"]

    @property
    def label(self) -> str:
        """How it was decoded: the folder's name without the test set."""
        return self.folder_name.removeprefix(f"{self.test_set}-")

    @property
    def command(self) -> str:
        """The command that makes it again, as far as the folder's name tells: its record may be damaged."""
        known = [VALIDATION]
        if self.run.has_config:
            evaluation = self.run.config.evaluation
            known += [*self.run.test_splits, *evaluation.files, *map(folder_name, evaluation.sacrebleu)]
        known += [copy_name(name, how) for name in known for how in PERTURBATIONS]
        begun = [name for name in known if self.folder_name.startswith(f"{name}-")]
        test_set = max(begun, key=len) if begun else self.folder_name.partition("-")[0]
        return evaluate_command(self.run, self.folder_name.removeprefix(f"{test_set}-"), test_set)

    def lines(self, column: str) -> list[str]:
        """Its `sources`, `references` or `hypotheses`. Raises `UserError` where the file is missing."""
        try:
            return read_lines(self.folder / f"{column}.txt")
        except UserError as error:
            raise UserError(f"{error}: run `{self.command}`") from error


def decoding_label(decoding: DecodingConfig, others: Sequence[Run] = ()) -> str:
    """How something is decoded, as it stands in the names of folders: `beam`, `beam-ctranslate2-int8` …

    `others` are the further runs of an ensemble; their order does not matter.
    """
    label = decoding.name
    if decoding.engine != "pytorch":
        label += f"-{decoding.engine}-{decoding.export_quantization}"
    return f"{label}-with-{joined_names(others)}" if others else label


def joined_names(runs: Sequence[Run]) -> str:
    """The names of runs, in whatever order, as one that a file can have."""
    # Escaped, so that x/y and x_y, or b+c and b with c, have folders of their own.
    return joined_or_digest(sorted(escaped(run.name) for run in runs), "+", "runs", LONGEST_ENSEMBLE)


def evaluations_of(run: Run) -> list[Evaluation]:
    """The finished ones, by name."""
    return [
        Evaluation(run, path.parent.name) for path in sorted(run.folder.glob("evaluation/[!.]*/scores.json"))
    ]
