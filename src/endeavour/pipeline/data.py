"""Prepared data, of settings or of a run: built if they are missing, verified, and shown where they lie."""

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol

from rich.console import Console

from endeavour.data.augmentation import AugmentationConfig
from endeavour.data.cleaning import CleaningConfig
from endeavour.data.corpus import CorpusConfig, ExtraPairs, fingerprint
from endeavour.data.file_hashes import FileHashes
from endeavour.data.prepared import HASHES, PreparedData, find_prepared
from endeavour.data.preparing import prepare_data
from endeavour.data.recipe import DataRecipe
from endeavour.data.tokenizer import Tokenizers
from endeavour.data.tokenizer_training import TokenizerConfig
from endeavour.directions import Direction
from endeavour.errors import UserError
from endeavour.progress import reported_progress, say
from endeavour.runs.run import Run
from endeavour.settings import validated
from endeavour.storage import user_path, verify

OTHER_TEXT = "`endeavour evaluate +evaluation.files.NAME=[FILE,FILE]` scores other text"


class DataSettings(Protocol):
    """What the configs of trainings and of benchmarks say of their data."""

    corpus: CorpusConfig
    cleaning: CleaningConfig
    tokenizer: TokenizerConfig
    direction: Direction
    data_folder: str

    @property
    def augmentation(self) -> AugmentationConfig | None: ...


def recipe_of(settings: DataSettings) -> DataRecipe:
    """The data of these settings, without what other runs add to it."""
    return DataRecipe(
        corpus=settings.corpus,
        cleaning=settings.cleaning,
        augmentation=settings.augmentation,
        tokenizer=settings.tokenizer,
        direction=settings.direction,
    )


def prepare(
    settings: DataSettings,
    *,
    tokenizers: Tokenizers | None = None,
    extra_pairs: Sequence[ExtraPairs] = (),
    console: Console | None = None,
) -> PreparedData:
    """The prepared data of these settings, verified; see `DataRecipe`.

    Raises:
        UserError: the corpus or a setting is wrong, or the data was altered since it was prepared.
    """
    console = console or Console(stderr=True)
    with reported_progress(console) as progress:
        recipe = replace(recipe_of(settings), tokenizers=tokenizers, extra_pairs=extra_pairs)
        data = prepare_data(recipe, Path(settings.data_folder), progress)
    _verified(data, console)
    read, kept = data.report["read"], data.report["kept"]
    if kept < read:
        say(console, f"left of {read:,} training pairs: {kept:,}; report.md in that folder says why")
    return data


def data_of(run: Run, folder: Path, corpus_path: str | None = None) -> PreparedData:
    """What a finished run was trained on: the same content, prepared again if it is no longer in the data folder.

    Args:
        corpus_path: the folder that relative paths of its corpus start from now, if its files were moved.

    Raises:
        UserError: both it and the corpus are missing; or the corpus has changed since.
    """
    console = Console(stderr=True)
    digest = run.data_digest
    if run.is_imported:
        raise UserError(f"{run} came without data: name other text, or a run trained from it")
    if digest is None:
        raise UserError(f"{run} is not finished: {run.continuation}")
    if found := find_prepared(folder, digest):
        return _verified(found, console)
    config = copy(run.config)
    config.data_folder = str(folder)
    if corpus_path is not None:
        if not user_path(corpus_path).is_dir():
            raise UserError(f"corpus_path={corpus_path}: no such folder")
        config.corpus = validated(CorpusConfig, asdict(config.corpus) | {"path": corpus_path}, "corpus")
    try:
        data = prepare(
            config,
            tokenizers=run.load_tokenizers(),
            extra_pairs=teacher_pairs(run) if config.teachers else (),
            console=console,
        )
    except UserError as error:
        raise UserError(
            f"{error}\nthe data of {run} are not in {folder}, and cannot be prepared again: restore either, or name "
            f"its place (data_folder=…, corpus_path=…); {OTHER_TEXT}"
        ) from error
    if data.content_digest != digest:
        raise UserError(
            f"{run} was trained on other data: the corpus has changed since; restore its files, or train anew under "
            f"another name=…; {OTHER_TEXT}"
        )
    return data


def files_changed(run: Run, corpus: CorpusConfig, folder: Path) -> bool:
    """Whether the files of this corpus are others than a finished run was trained on, though perhaps of the same text.

    Taken for the same are those that are gone or on the hub, and any where what the run was trained on is not in the
    data folder.
    """
    data = find_prepared(folder, run.data_digest or "")
    if data is None or corpus.on_hub:
        return False
    hashes = FileHashes(data.folder.parent / HASHES)
    try:
        inputs = fingerprint(corpus, hashes)
    except UserError:
        return False
    hashes.save()
    noted = data.manifest["corpus"]["inputs"]  # perhaps with teachers' texts
    return not inputs.items() <= noted.items()


def training_texts(runs: Sequence[Run], folder: Path) -> list[Path] | None:
    """The training texts of runs in `folder`, or else in their own data folders, each once; None where one is missing.

    Nothing is built.
    """
    texts: list[Path] = []
    for run in runs:
        digest, data = run.data_digest, None
        if digest is not None:
            data = find_prepared(folder, digest) or find_prepared(Path(run.config.data_folder), digest)
        if data is None or data.training_text is None:
            return None
        texts.append(data.training_text)
    return list(dict.fromkeys(texts))


def teacher_pairs(run: Run) -> list[ExtraPairs]:
    """The copies of its teachers' translations that a run is trained on; see `pipeline.distillation`."""
    folder = run.teacher_data_folder
    if not folder.is_dir():
        raise UserError(f"{folder} is missing, and the data of this run is made of it: restore it")
    verify(folder)
    stems = sorted({path.name.partition(".")[0] for path in folder.glob("*.txt")})
    return [(folder / f"{stem}.en.txt", folder / f"{stem}.de.txt") for stem in stems]


def _verified(data: PreparedData, console: Console) -> PreparedData:
    data.verify()
    sizes = ", ".join(f"{split} {counts['pairs']:,}" for split, counts in data.splits.items())
    say(console, f"data: {data.folder} ({sizes} pairs)")
    return data
