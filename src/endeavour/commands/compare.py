"""`endeavour compare`: which of several runs' evaluations of one test set is better; they can be set beside
translations that were made elsewhere.

    <output_folder>/comparisons/<run>-vs-<run>/<evaluation>/    comparison.json, report.md, report.html
It reads what evaluation wrote, and those files; nothing is decoded again.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.data.text_files import aligned_lines, require_file
from endeavour.errors import UserError
from endeavour.evaluation.comet import COMET_FILE, read_comet
from endeavour.evaluation.comparison import (
    REFERENCES,
    CompareConfig,
    Comparison,
    System,
    compare_systems,
    compared_by_comet,
)
from endeavour.evaluation.subsets import without_capitals
from endeavour.evaluation.words import TrainingText
from endeavour.nested import flatten
from endeavour.pipeline.data import training_texts
from endeavour.progress import progress_bar, results_console, say
from endeavour.reports.comparison_report import show_comparison, write_comparison
from endeavour.runs.command_lines import evaluate_command, play_command
from endeavour.runs.evaluations import Evaluation
from endeavour.runs.names import escaped, joined_or_digest, names_in
from endeavour.runs.run import Run
from endeavour.runs.selection import find_evaluations
from endeavour.settings import STRICT
from endeavour.storage import file_digest, user_path, write_errors

LONGEST_FOLDER = 150  # bytes of a comparison's; file systems take 255


@dataclass(kw_only=True, config=STRICT)
class CompareRoot(CompareConfig):
    """Values and their meaning: conf/compare.yaml."""

    runs: str | None
    systems: str | None
    split: str | None
    decoding_name: str | None
    data_folder: str
    output_folder: str


def compare(config: CompareRoot) -> Comparison:
    """Compares the runs and files that `config` names, the first run being the baseline; prints and writes the result.

    Raises:
        UserError: a run or its evaluation, or a file of `config.systems`, is not there, or two were not made on the
            same test set.
    """
    files = names_in("systems", config.systems)
    evaluations = find_evaluations(
        config.runs, config.split, config.decoding_name, Path(config.output_folder), alone=bool(files)
    )
    baseline, names = evaluations[0], _names(evaluations)
    sources, references = baseline.lines("sources"), baseline.lines("references")
    own = _own_systems(evaluations, names, sources, references)
    outside = _outside_systems(files, len(references), taken=[REFERENCES, *names])
    systems = [*own, *outside]
    lowercase = [
        name for one, name in zip(evaluations, names, strict=True) if one.run.config.tokenizer.lowercase
    ]
    if lowercase:
        sources, references = without_capitals(sources), without_capitals(references)
        systems = [replace(one, hypotheses=without_capitals(one.hypotheses)) for one in systems]
    with progress_bar(Console(stderr=True)) as progress:
        task = progress.add_task("reading the training text", total=None)
        training = _training_text(baseline.run, Path(config.data_folder), lowercase=bool(lowercase))
        progress.update(task, total=1, completed=1)
        progress.add_task("testing", total=None)
        notes = [
            _training_note(names[0], baseline.run, training),
            *_case_notes(lowercase),
            *_comet_notes(systems),
            f"Sentence by sentence, in the view Runs: {play_command(baseline.run)}",
            *(f"{system.name}: SHA-256 {file_digest(Path(system.name))}" for system in outside),
        ]
        comparison = compare_systems(
            systems,
            title=f"{_title([system.name for system in systems])}: {baseline.folder_name}",
            sources=sources,
            references=references,
            training=training,
            config=config,
            lowercase=bool(lowercase),
            notes=notes,
        )
    folder = Path(config.output_folder) / "comparisons" / _folder_name(names, outside) / baseline.folder_name
    with write_errors(folder, "output_folder"):
        write_comparison(folder, comparison)
    console = results_console()
    show_comparison(console, comparison)
    say(console, f"report: {folder / 'report.html'}")
    return comparison


def _names(evaluations: Sequence[Evaluation]) -> list[str]:
    """What each is called: its run; with its folder's name where that differs, or a run is named twice."""
    runs = [one.run for one in evaluations]
    names = [
        one.run.name
        if one.folder_name == evaluations[0].folder_name and runs.count(one.run) == 1
        else f"{one.run.name}/{one.folder_name}"
        for one in evaluations
    ]
    if REFERENCES in names:
        raise UserError(f"runs: the references are called {REFERENCES} here; rename that run")
    return names


def _title(names: Sequence[str]) -> str:
    return " vs. ".join(names) if len(names) < 4 else f"{names[0]} vs. {len(names) - 1} others"


def _check_same_test_set(baseline: str, name: str, other: Evaluation, wanted: dict[str, list[str]]) -> None:
    for column, lines in wanted.items():
        theirs = other.lines(column)
        if theirs != lines:
            pairs = enumerate(zip(lines, theirs, strict=False), start=1)
            line = next((number for number, (one, two) in pairs if one != two), None)
            where = f"{len(lines)} and {len(theirs)} lines" if line is None else f"line {line} differs"
            raise UserError(
                f"{baseline} and {name} were evaluated on different {column} ({where}): only outputs for the same "
                "test set can be compared"
            )


def _own_systems(
    evaluations: Sequence[Evaluation], names: Sequence[str], sources: list[str], references: list[str]
) -> list[System]:
    """The runs' translations, all of the same text. Raises `UserError` where they are not."""
    for other, name in zip(evaluations[1:], names[1:], strict=True):
        _check_same_test_set(names[0], name, other, {"sources": sources, "references": references})
    return [_system(one, name, sources, references) for one, name in zip(evaluations, names, strict=True)]


def _system(one: Evaluation, name: str, sources: Sequence[str], references: Sequence[str]) -> System:
    hypotheses = one.lines("hypotheses")
    if len(hypotheses) != len(sources):
        raise UserError(
            f"{one.folder / 'hypotheses.txt'} has {len(hypotheses)} lines for {len(sources)} references: "
            f"run `{one.command}`"
        )
    settings = flatten({key: one.record[key] for key in ("decoding", "model")})
    return System(name, hypotheses, settings, read_comet(one.folder, sources, hypotheses, references))


def _outside_systems(names: Sequence[str], sentences: int, taken: Sequence[str]) -> list[System]:
    """The files of translations made elsewhere.

    Raises:
        UserError: one is missing, is named twice, has another number of lines, or is called as something else is.
    """
    files: list[Path] = []
    for name in names:
        file = user_path(name)
        require_file(file)
        if any(file.samefile(other) for other in files):
            raise UserError(f"systems: {name} is named twice")
        if str(file) in taken:
            raise UserError(f"systems: something else is called {file} here; rename the file")
        files.append(file)
    return [System(str(file), aligned_lines(file, sentences, "references"), {}) for file in files]


def _training_text(run: Run, folder: Path, *, lowercase: bool) -> TrainingText | None:
    texts = training_texts([run], folder)
    if texts is None:
        return None
    # Imported here: `datasets` takes seconds to import.
    from endeavour.data.tables import read_tables

    training = TrainingText()
    for pairs in read_tables(texts[0]):
        if lowercase:
            pairs = [(source.lower(), target.lower()) for source, target in pairs]
        training.add(pairs)
    return training


def _training_note(name: str, run: Run, training: TrainingText | None) -> str:
    if training is None:
        missing = "there are no figures by word frequency and none of unseen characters"
        if run.is_imported:
            return f"{name} came without training text, so {missing}."
        return f"The prepared data of {name} is not at hand, so {missing}; `{evaluate_command(run)}` prepares it."
    return f"Word frequencies are those in the training text of {name}."


def _case_notes(lowercase: Sequence[str]) -> list[str]:
    """What must be known where runs, by these names, write no capitals."""
    if not lowercase:
        return []
    return [
        f"All text is compared in small letters, because that is all that is written by {', '.join(lowercase)}."
    ]


def _comet_notes(systems: Sequence[System]) -> list[str]:
    """What must be known to read COMET, and who is not compared by it although some have it."""
    if all(system.comet is None for system in systems):
        return []
    compared = [name for name, _ in compared_by_comet(systems)]
    others = [f"{one.name} ({_comet_state(one)})" for one in systems if one.name not in compared]
    read = "COMET is that of comet-score, which does not say by which model: it must be the same for all."
    unlike = (
        f"Not compared by COMET, which must be with or without references on both sides: {', '.join(others)}."
    )
    return [*([read] if compared else []), *([unlike] if others else [])]


def _comet_state(system: System) -> str:
    if system.comet is None:
        return f"no {COMET_FILE}"
    return f"{'with' if system.comet.references else 'without'} references"


def _folder_name(names: Sequence[str], outside: Sequence[System]) -> str:
    # No run's name has an @ once it is escaped, and files of one name differ by what they hold.
    parts = [escaped(name) for name in names]
    parts += [f"{escaped(system.name)}@{file_digest(Path(system.name))[:8]}" for system in outside]
    return joined_or_digest(parts, "-vs-", "systems", LONGEST_FOLDER)
