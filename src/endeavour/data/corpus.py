"""Which sentence pairs a corpus consists of: from the hub, from files, or from the textbook.

Pairs are (English, German) here; the caller decides the direction of translation. Knows nothing of cleaning
and tokenizers, and leaves the network to `hub`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic.dataclasses import dataclass

from endeavour.data import hub
from endeavour.data.file_hashes import FileHashes
from endeavour.data.files import Pair, read_pairs
from endeavour.errors import UserError
from endeavour.settings import STRICT

ExtraPairs = tuple[Path, Path]  # two line-aligned text files, English and German
Progress = Callable[[str, int, int | None], None]  # (what, done, total or None)
TRAIN = "train"
VALIDATION = "validation"
_TEXTBOOK = "endeavour.textbook"
_COMMIT = r"[0-9a-f]{40}"


def _corpus_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name):
        raise ValueError("a name consists of letters, digits, '.', '_' and '-'")
    return name


@dataclass(kw_only=True, config=STRICT)
class CorpusConfig:
    """One corpus. Every split other than `train` and `validation` is a test split, whatever its name."""

    name: Annotated[str, AfterValidator(_corpus_name)]  # the first part of the prepared folder's name
    kind: Literal["textbook", "hub", "files"]
    path: str | None  # hub: a local folder to read instead; files: the folder that relative paths start from
    repository: str | None  # hub: the dataset repository, owner/name
    revision: str | None  # hub: the full commit hash
    splits: dict[str, list[str]]  # hub and files: split → its files; an empty list is a split not given
    # hub: a file in `splits` → the files that hold the same under `path`, where it is not there by its own name
    path_files: dict[str, list[str]] | None
    english_column: str | None  # TSV, JSON lines, Parquet: name of the column, "translation.en" if nested
    german_column: str | None
    train_pairs: Annotated[int, Field(ge=1)] | None  # textbook: size of the training split
    seed: int | None  # textbook: which sentences are drawn

    @property
    def on_hub(self) -> bool:
        """Whether the files come from the hub, and not from a folder."""
        return self.kind == "hub" and self.path is None

    @property
    def given_splits(self) -> dict[str, list[str]]:
        """`splits` without the empty ones."""
        return {split: names for split, names in self.splits.items() if names}

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        """Each kind of corpus has what it needs, and nothing is set that it does not read."""
        textbook = self.kind == "textbook"
        readers = "a corpus of files: choose corpus=files or another" if textbook else "corpus=textbook"
        for key in ("path", "repository", "splits") if textbook else ("train_pairs", "seed"):
            if getattr(self, key):
                raise ValueError(f"corpus.{key}={getattr(self, key)} is for {readers}")
        if textbook:
            if self.train_pairs is None or self.seed is None:
                raise ValueError("corpus.train_pairs and corpus.seed must be set")
            return self
        for split in (TRAIN, VALIDATION):
            if not self.splits.get(split):
                raise ValueError(f"no files for split {split}; set corpus.splits.{split}=[my.en,my.de]")
        for split in self.splits:
            if not re.fullmatch(r"[A-Za-z0-9_-]+", split):
                raise ValueError(
                    f"corpus.splits.{split}: a split's name consists of letters, digits, '_' and '-'"
                )
        if self.on_hub and (self.repository is None or not re.fullmatch(_COMMIT, self.revision or "")):
            raise ValueError(
                f"corpus.revision={self.revision}: a corpus of the hub needs corpus.repository=owner/name and a "
                "full commit hash of 40 digits (what a branch stands for changes)"
            )
        return self


def load_splits(
    config: CorpusConfig,
    *,
    extra_pairs: Sequence[ExtraPairs] = (),
    progress: Progress = lambda what, done, total: None,
) -> dict[str, Iterable[Pair]]:
    """The (English, German) pairs of every split, streamed where they come from files.

    Args:
        extra_pairs: files of more training pairs, read after the corpus's own.
        progress: called as (what, done, total or None) for each file that is downloaded.

    Raises:
        UserError: a file cannot be read or downloaded.
    """
    splits: dict[str, Iterable[Pair]]
    if config.kind == "textbook":
        splits = import_module(_TEXTBOOK).textbook_splits(seed=config.seed, train_pairs=config.train_pairs)
    else:
        columns = {
            "english_column": config.english_column or "",
            "german_column": config.german_column or "",
        }
        files = _hub_files(config, progress) if config.on_hub else local_files(config)
        splits = {split: read_pairs(paths, **columns) for split, paths in files.items()}
    pairs = [read_pairs(files, english_column="", german_column="") for files in extra_pairs]
    return splits | {TRAIN: chain(splits[TRAIN], *pairs)} if pairs else splits


def _hub_files(config: CorpusConfig, progress: Progress) -> dict[str, list[Path]]:
    """Split → its files in the hub's cache, downloaded where they are not there."""
    assert config.repository is not None  # checked with the config
    assert config.revision is not None
    fetch = partial(hub.fetch, config.repository, config.revision, corpus=config.name, progress=progress)
    return {split: [fetch(name) for name in names] for split, names in config.given_splits.items()}


def local_files(config: CorpusConfig) -> dict[str, list[Path]]:
    """Split → its files on this machine, for a corpus that is read from there."""
    folder = Path(config.path or ".").expanduser()
    instead = config.path_files or {}
    try:
        if not folder.is_dir():
            raise UserError(f"corpus.path={config.path}: no such folder")
        return {
            split: [
                folder / Path(file).expanduser()
                for name in names
                for file in (instead[name] if name in instead and not (folder / name).is_file() else [name])
            ]
            for split, names in config.given_splits.items()
        }
    except OSError as error:
        raise UserError(f"corpus.path={config.path}: cannot be read ({error.strerror})") from error


def fingerprint(
    config: CorpusConfig, hashes: FileHashes, extra_pairs: Sequence[ExtraPairs] = ()
) -> dict[str, Any]:
    """What the pairs of `load_splits` depend on, as plain JSON: equal fingerprints mean equal pairs.

    Needs no network: a commit hash stands for what is in a hub repository.
    """
    columns = {"english_column": config.english_column, "german_column": config.german_column}
    inputs: dict[str, Any]
    if config.kind == "textbook":
        package = Path(import_module(_TEXTBOOK).__file__ or "").parent
        files = sorted(path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
        inputs = {
            "seed": config.seed,
            "train_pairs": config.train_pairs,
            "textbook": {str(path.relative_to(package)): hashes.of(path) for path in files},
        }
    elif config.on_hub:
        inputs = {"repository": config.repository, "revision": config.revision}
        inputs |= {"splits": config.given_splits, **columns}
    else:
        # Names without folders: the same files elsewhere are the same corpus. Suffixes decide how they are read.
        splits = {
            split: [[path.name, hashes.of(path)] for path in paths]
            for split, paths in local_files(config).items()
        }
        inputs = {"splits": splits, **columns}
    if extra_pairs:
        inputs["extra_pairs"] = [[hashes.of(path) for path in files] for files in extra_pairs]
    return inputs
