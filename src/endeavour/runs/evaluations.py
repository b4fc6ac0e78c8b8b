"""Evaluations that lie in run folders, as objects: found by name, and read; `pipeline.evaluator` makes them.

<run>/evaluation/<test set>-<decoding>[-<engine>][-with-<runs>]/
"""

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from endeavour.data.corpus import TRAIN, VALIDATION
from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.runs.run import Run
from endeavour.storage import read_lines

LONGEST_NAME = 100  # bytes of the names of an ensemble's runs in that of a folder; file systems take 255


@dataclass(frozen=True)
class Evaluation:
    """One evaluation's folder, whether it is there yet or not."""

    run: Run
    folder_name: str

    @property
    def folder(self) -> Path:
        return self.run.folder / "evaluation" / self.folder_name

    @property
    def name(self) -> str:
        """As `runs=…` of `compare` takes it."""
        return f"{self.run.name}/evaluation/{self.folder_name}"

    @property
    def is_finished(self) -> bool:
        return (self.folder / "scores.json").is_file()

    @cached_property
    def record(self) -> dict[str, Any]:
        """What scores.json holds. Raises `UserError` where it is damaged."""
        path = self.folder / "scores.json"
        try:
            record = json.loads(path.read_text("utf-8"))
            assert isinstance(record["decoding"], dict)
            assert isinstance(record["model"]["test_set"], str)
            return record
        except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
            raise UserError(f"{path} is missing or damaged: run `{self.command}`") from error

    @property
    def test_set(self) -> str:
        return self.record["model"]["test_set"]

    @property
    def label(self) -> str:
        """How it was decoded: the folder's name without the test set."""
        return self.folder_name.removeprefix(f"{self.test_set}-")

    @property
    def command(self) -> str:
        """The command that makes it anew, as far as its run and test set go."""
        return evaluate_command(self.run)

    def lines(self, column: str) -> list[str]:
        """Its `sources`, `references` or `hypotheses`. Raises `UserError` where the file is missing."""
        try:
            return read_lines(self.folder / f"{column}.txt")
        except UserError as error:
            raise UserError(f"{error}: run `{self.command}`") from error


def evaluate_command(run: Run, label: str | None = None, test_set: str | None = None) -> str:
    """What to type for an evaluation of `run`, decoded as `label` says, of `test_set`."""
    words = ["endeavour", "evaluate", f"run={run.name}"]
    if run.root != Path("outputs"):
        words.append(f"output_folder={run.root}")
    if label is not None and not (run.has_config and label == decoding_label(run.config.decoding)):
        name, engine, quantization = label.partition("-ctranslate2-")
        words.append(f"decoding={name}")
        if engine:
            words += ["decoding.engine=ctranslate2", f"quantization={quantization}"]
    if test_set is not None:
        known = test_set == VALIDATION or (run.has_config and test_set in own_test_splits(run))
        words.append(
            f"evaluation.splits=[{test_set}]" if known else f"+evaluation.files.{test_set}=[FILE,FILE]"
        )
    return shlex.join(words)


def decoding_label(decoding: DecodingConfig, quantization: str = "int8", others: Sequence[Run] = ()) -> str:
    """How something is decoded, as it stands in the names of folders: `beam`, `beam-ctranslate2-int8` …

    `others` are the further runs of an ensemble; their order does not matter.
    """
    label = decoding.name
    if decoding.engine != "pytorch":
        label += f"-{decoding.engine}-{quantization}"
    return f"{label}-with-{joined_names(others)}" if others else label


def joined_names(runs: Sequence[Run]) -> str:
    """The names of runs, in whatever order, as one that a file can have."""
    # Quoted, so that x/y and x_y, or b+c and b with c, have folders of their own.
    names = "+".join(sorted(quote(run.name, safe=" ,=") for run in runs))
    if len(names.encode()) > LONGEST_NAME:
        names = f"{len(runs)}-runs-{hashlib.sha256(names.encode()).hexdigest()[:12]}"
    return names


def evaluations_of(run: Run) -> list[Evaluation]:
    """The finished ones, by name."""
    return [
        Evaluation(run, path.parent.name) for path in sorted(run.folder.glob("evaluation/[!.]*/scores.json"))
    ]


def evaluated_runs(root: Path) -> list[str]:
    """The names of all runs below `root` that have evaluations."""
    return sorted(path.parent.relative_to(root).as_posix() for path in root.glob("**/evaluation"))


def own_test_splits(run: Run) -> list[str]:
    """The test splits of the run's corpus, as far as can be told without it."""
    return [split for split in all_splits(run) if split not in (TRAIN, VALIDATION)]


def all_splits(run: Run) -> list[str]:
    """The splits of the run's corpus, as far as can be told without it."""
    scored = [name for name in run.summary.get("test", {}) if name not in run.config.evaluation.files]
    return list(dict.fromkeys([TRAIN, VALIDATION, *run.config.corpus.splits, *scored]))
