"""`endeavour filter`: which pairs of a noisy corpus are worth training on, by cleaning and by two trained runs."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.data.cleaning import CleaningConfig
from endeavour.data.cleaning_report import filter_as_markdown
from endeavour.data.file_hashes import FileHashes
from endeavour.data.files import Pair, read_pairs
from endeavour.data.journal import begin
from endeavour.data.preparing import code_for
from endeavour.data.scored_pairs import select_pairs
from endeavour.errors import UserError
from endeavour.pipeline.filtering import SCORES, DualScorer, write_scores
from endeavour.progress import reported_progress, say
from endeavour.runs.choice import named_runs, require_trained, require_translators
from endeavour.runs.run import Run
from endeavour.runs.translators import load_runs
from endeavour.settings import STRICT
from endeavour.storage import (
    atomic_folder,
    hidden_beside,
    read_json_object,
    user_path,
    verify,
    waiting_lock,
    write_atomically,
    write_errors,
    write_json,
)
from endeavour.training.device import choose_device

KEPT = "kept.tsv"
MANIFEST = "filter.json"


@dataclass(kw_only=True, config=STRICT)
class FilterRoot:
    """Values and their meaning: conf/filter.yaml."""

    pairs: list[str]
    english_column: str
    german_column: str
    runs: str | None
    output: str
    keep: Annotated[float, Field(gt=0, le=1)]
    min_score: Annotated[float, Field(ge=0, le=1)]
    device: str
    output_folder: str
    cleaning: CleaningConfig

    @model_validator(mode="after")
    def _check_overlap(self) -> Self:
        if self.cleaning.drop_overlap:
            raise ValueError(
                "cleaning.drop_overlap=true: filter has no validation or test split; `endeavour train` drops such pairs"
            )
        return self


def filter(config: FilterRoot) -> Path:
    """Scores what cleaning leaves of the pairs, unless that is done, and writes those worth training on.

    Returns:
        The file of the pairs that were kept.

    Raises:
        UserError: no such run or file, or the folder holds the scores of something else.
    """
    runs = _one_for_each_direction(config)
    output = user_path(config.output).resolve()
    if not (config.output and output.name):
        raise UserError(f"output={config.output}: name a folder to be made")
    pairs, hashes = _pairs(config), FileHashes()
    recipe = _recipe(config, runs, hashes)
    console = Console(stderr=True)
    with write_errors(output, "output"):
        output.parent.mkdir(parents=True, exist_ok=True)
        with waiting_lock(output, f"filling {output}"):
            if not _has_scores(output, recipe):
                _score(config, runs, pairs, hashes, output, console)
            shutil.rmtree(hidden_beside(output, "scratch"), ignore_errors=True)
            report = read_json_object(output / MANIFEST)["report"]
            kept = output / KEPT
            selection = select_pairs(output / SCORES, kept, keep=config.keep, min_score=config.min_score)
            write_atomically(output / "report.md", filter_as_markdown(report, selection, output.name))
            if not selection.kept:
                raise UserError(
                    f"{kept} is empty: of {report['read']:,} pairs cleaning left {selection.pairs:,}, and "
                    f"keep and min_score none; {output / 'report.md'} has the scores and what cleaning drops"
                )
    say(
        console,
        f"pairs read {report['read']:,}, scored {selection.pairs:,}, kept {selection.kept:,} "
        f"(score {selection.lowest:g} and above): {kept}",
    )
    return kept


def _one_for_each_direction(config: FilterRoot) -> tuple[Run, Run]:
    """The run from English to German, and the other one."""
    runs = named_runs("runs", config.runs, Path(config.output_folder))
    for run in runs:
        require_trained(run, "name another with runs=…, or train it first")
    require_translators(runs)
    if sorted(run.config.direction for run in runs) != ["de-en", "en-de"]:
        raise UserError(
            f"runs={config.runs}: filter needs two, one trained with direction=en-de and one with direction=de-en: "
            'runs="NAME NAME"'
        )
    forward, backward = sorted(runs, key=lambda run: run.config.direction, reverse=True)
    return forward, backward


def _pairs(config: FilterRoot) -> Iterator[Pair]:
    if not config.pairs:
        raise UserError("filter needs pairs=[a.en,a.de] or pairs=[pairs.tsv]: the corpus to be filtered")
    return read_pairs(config.pairs, english_column=config.english_column, german_column=config.german_column)


def _recipe(config: FilterRoot, runs: tuple[Run, Run], hashes: FileHashes) -> dict[str, Any]:
    """All that the scores depend on."""
    return {
        "pairs": [hashes.of(user_path(path)) for path in config.pairs],
        "columns": [config.english_column, config.german_column],
        "cleaning": asdict(config.cleaning),
        "runs": [run.weights_digest for run in runs],
        "tags": [run.source_tag(run.config.decoding.tag) for run in runs],
    }


def _has_scores(output: Path, recipe: dict[str, Any]) -> bool:
    """Whether the folder holds the scores of this recipe. Raises `UserError` where it holds something else."""
    if not output.exists():
        return False
    remedy = "choose another output=…"
    if not (output / MANIFEST).is_file():
        raise UserError(f"output={output} holds something else than scores: {remedy}")
    remedy += ", or delete it"
    verify(output, remedy)
    saved = read_json_object(output / MANIFEST)["recipe"]
    if differing := [key for key, value in recipe.items() if saved[key] != value]:
        raise UserError(f"output={output} holds the scores of other {' and '.join(differing)}: {remedy}")
    return True


def _score(
    config: FilterRoot,
    runs: tuple[Run, Run],
    pairs: Iterator[Pair],
    hashes: FileHashes,
    output: Path,
    console: Console,
) -> None:
    """Fills the folder, or continues to."""
    recipe, stamps = _recipe(config, runs, hashes), dict(hashes.stamps)
    if (first := next(pairs, None)) is None:
        raise UserError(f"pairs=[{','.join(config.pairs)}]: no pair in it, so there is nothing to filter")
    scratch = hidden_beside(output, "scratch")
    begin(scratch, recipe | code_for(config.cleaning) | {"files": stamps})
    device = choose_device(config.device)
    scorer = DualScorer(*(load_runs([run], device, run.config.decoding.tag) for run in runs))
    with atomic_folder(output) as partial, reported_progress(console) as progress:
        report = write_scores(chain([first], pairs), config.cleaning, scorer, partial, scratch, progress)
        if (_recipe(config, runs, hashes), hashes.stamps) != (recipe, stamps):
            shutil.rmtree(scratch, ignore_errors=True)
            raise UserError(
                f"pairs=[{','.join(config.pairs)}]: a file, or one of the runs, changed while it was read; run "
                "`endeavour filter` again"
            )
        write_json(
            partial / MANIFEST, {"recipe": recipe, "report": report, "runs": [run.name for run in runs]}
        )
