"""The compare stage: what several runs' evaluations of one test set say about which run is better, and what
translations of it that were made elsewhere say beside them.

    <output_folder>/comparisons/<run>-vs-<run>/<evaluation>/    comparison.json, report.md, report.html
It reads what evaluation wrote, and those files; nothing is decoded anew.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Console

from endeavour.config import Config
from endeavour.data.disk import file_digest
from endeavour.data.files import read_lines as read_text_lines
from endeavour.errors import UserError
from endeavour.evaluation.comparison import Comparison, System, compare_systems
from endeavour.evaluation.words import TrainingText
from endeavour.nested import flatten
from endeavour.reports.comparison_report import show_comparison, write_comparison
from endeavour.stages.evaluated import (
    Evaluated,
    eval_command,
    files_of_systems,
    find_evaluations,
    lines_of,
    prepared_of,
    read_lines,
    remedy,
)
from endeavour.stages.prepare import progress_bar
from endeavour.stages.run_folder import named_write_error

LONGEST_NAME = 150  # of a comparison's folder; file systems take 255 bytes


def compare(config: Config) -> Comparison:
    """Compares the runs and files that `config` names, the first run being the baseline; prints and writes the result.

    Raises:
        UserError: a run or its evaluation, or a file of `config.systems`, is not there, or two were not made on the
            same test set.
    """
    evaluated = find_evaluations(config)
    baseline, *others = evaluated
    sources, references = (lines_of(baseline, side, config) for side in ("sources", "references"))
    for other in others:
        _check_same_test_set(baseline, other, (sources, references), config)
    files = files_of_systems(config, evaluated)
    systems = [
        *(_system(one, len(references), config) for one in evaluated),
        *(_made_elsewhere(file, len(references)) for file in files),
    ]
    names = [system.name for system in systems]
    title = " vs. ".join(names) if len(names) < 4 else f"{names[0]} vs. {len(names) - 1} others"
    with progress_bar(Console(stderr=True)) as progress:
        task = progress.add_task("reading the training text", total=None)
        training = _training_text(baseline, config)
        progress.update(task, total=1, completed=1)
        progress.add_task("testing", total=None)
        comparison = compare_systems(
            systems,
            title=f"{title}: {baseline.folder.name}",
            sources=sources,
            references=references,
            training=training,
            config=config.compare,
            notes=[
                _training_note(baseline, training, config),
                *(f"{file}: SHA-256 {file_digest(file)}" for file in files),
            ],
        )
    folder = _result_folder(config, evaluated, files)
    with named_write_error(folder):
        write_comparison(folder, comparison)
    console = Console(width=None if sys.stdout.isatty() else 120)
    show_comparison(console, comparison)
    console.print(f"report: {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
    return comparison


def _check_same_test_set(
    baseline: Evaluated, other: Evaluated, wanted: tuple[list[str], list[str]], config: Config
) -> None:
    for column, lines in zip(("sources", "references"), wanted, strict=True):
        theirs = lines_of(other, column, config)
        if theirs != lines:
            pairs = enumerate(zip(lines, theirs, strict=False), start=1)
            line = next((number for number, (one, two) in pairs if one != two), None)
            where = f"{len(lines)} and {len(theirs)} lines" if line is None else f"line {line} differs"
            raise UserError(
                f"{baseline.name} and {other.name} were evaluated on different {column} ({where}): "
                "only outputs for the same test set can be compared"
            )


def _system(one: Evaluated, sentences: int, config: Config) -> System:
    hypotheses = read_lines(one.folder / "hypotheses.txt")
    if len(hypotheses) != sentences:
        raise UserError(
            f"{one.folder / 'hypotheses.txt'} has {len(hypotheses)} lines for {sentences} references: "
            f"{remedy(one, config)}"
        )
    path = one.folder / "scores.json"
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
        settings = flatten({key: record[key] for key in ("decoding", "model")})
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: {remedy(one, config)}") from error
    return System(one.name, hypotheses, settings)


def _made_elsewhere(file: Path, sentences: int) -> System:
    hypotheses = list(read_text_lines(file))
    if len(hypotheses) != sentences:
        raise UserError(
            f"{file} has {len(hypotheses):,} lines for {sentences:,} references; "
            "line n of each must belong to the same sentence"
        )
    return System(str(file), hypotheses, {})


def _training_text(one: Evaluated, config: Config) -> TrainingText | None:
    data = prepared_of(one, config)
    if data is None or not (data.folder / "text" / "train").is_dir():
        return None
    # Imported here: `datasets` takes seconds to import.
    from endeavour.data.tables import read_tables

    training = TrainingText()
    for pairs in read_tables(data.folder / "text" / "train"):
        training.add(pairs)
    return training


def _training_note(one: Evaluated, training: TrainingText | None, config: Config) -> str:
    if training is None:
        return (
            f"The prepared data of {one.name} are not at hand, so there are no figures by word frequency and "
            f"none of unseen characters; `{eval_command(one.run, config)}` makes them."
        )
    return f"Word frequencies are those in the training text of {one.name}, cased."


def _result_folder(config: Config, evaluated: list[Evaluated], files: list[Path]) -> Path:
    # No run's name has an @ once it is quoted, and files of one name differ by what they hold.
    parts = [quote(one.name, safe=" ,=") for one in evaluated]
    parts += [f"{quote(str(file), safe=' ,=')}@{file_digest(file)[:8]}" for file in files]
    name = "-vs-".join(parts)
    if len(name.encode()) > LONGEST_NAME:
        name = f"{len(parts)}-systems-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return Path(config.output_folder) / "comparisons" / name / evaluated[0].folder.name
