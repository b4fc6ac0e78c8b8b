"""Which sentence pairs a corpus consists of: from the hub, from files, or from the textbook.

Pairs are (English, German) here; the caller decides the direction of translation. Knows nothing of cleaning
and tokenizers, and leaves the network to `hub`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
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

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        """Each kind of corpus has what it needs, and nothing is set that it does not read."""
        if self.kind == "textbook":
            unread, readers = (
                ("path", "repository", "splits"),
                "a corpus of files: choose corpus=files or another",
            )
        else:
            unread, readers = ("train_pairs", "seed"), "corpus=textbook"
        for key in unread:
            if getattr(self, key):
                raise ValueError(f"corpus.{key}={getattr(self, key)} is for {readers}")
        if self.kind == "textbook":
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
    hub_cache: Path | None = None,
    progress: Progress = lambda what, done, total: None,
) -> dict[str, Iterable[Pair]]:
    """The (English, German) pairs of every split, streamed where they come from files.

    Args:
        extra_pairs: files of more training pairs, read after the corpus's own.
        hub_cache: the hub client's cache folder; None is its own default (`HF_HOME`).
        progress: called as (what, done, total or None) for each file that is downloaded.

    Raises:
        UserError: a file cannot be read or downloaded.
    """
    splits = _own_splits(config, hub_cache, progress)
    pairs = [read_pairs(files, english_column="", german_column="") for files in extra_pairs]
    return splits | {TRAIN: chain(splits[TRAIN], *pairs)} if pairs else splits


def _own_splits(
    config: CorpusConfig, hub_cache: Path | None, progress: Progress
) -> dict[str, Iterable[Pair]]:
    if config.kind == "textbook":
        return dict(
            import_module(_TEXTBOOK).textbook_splits(seed=config.seed, train_pairs=config.train_pairs)
        )
    if config.on_hub:
        repository, revision = _repository(config)
        files = {
            split: hub.fetch(
                repository, revision, names, corpus=config.name, cache=hub_cache, progress=progress
            )
            for split, names in _split_files(config).items()
        }
    else:
        files = local_files(config)
    english, german = config.english_column or "", config.german_column or ""
    return {
        split: read_pairs(paths, english_column=english, german_column=german)
        for split, paths in files.items()
    }


def local_files(config: CorpusConfig) -> dict[str, list[Path]]:
    """Split → its files on this machine, for a corpus read from files; empty for the others."""
    if config.kind == "textbook" or config.on_hub:
        return {}
    folder = Path(config.path or ".").expanduser()
    try:
        if not folder.is_dir():
            raise UserError(f"corpus.path={config.path}: no such folder")
    except OSError as error:
        raise UserError(f"corpus.path={config.path}: cannot be read ({error.strerror})") from error
    return {
        split: [folder / Path(name).expanduser() for name in names]
        for split, names in _split_files(config).items()
    }


def fingerprint(
    config: CorpusConfig, hashes: FileHashes, extra_pairs: Sequence[ExtraPairs] = ()
) -> dict[str, Any]:
    """What the pairs of `load_splits` depend on, as plain JSON: equal fingerprints mean equal pairs.

    Needs no network: a commit hash stands for what is in a hub repository.
    """
    own = _own_fingerprint(config, hashes)
    if extra_pairs:
        own["extra_pairs"] = [[hashes.of(path) for path in files] for files in extra_pairs]
    return own


def _own_fingerprint(config: CorpusConfig, hashes: FileHashes) -> dict[str, Any]:
    if config.kind == "textbook":
        package = Path(import_module(_TEXTBOOK).__file__ or "").parent
        files = sorted(path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
        return {
            "seed": config.seed,
            "train_pairs": config.train_pairs,
            "textbook": {str(path.relative_to(package)): hashes.of(path) for path in files},
        }
    columns = {"english_column": config.english_column, "german_column": config.german_column}
    files = local_files(config)
    if not files:
        repository, revision = _repository(config)
        return {"repository": repository, "revision": revision, "splits": _split_files(config), **columns}
    # Names without folders: the same files elsewhere are the same corpus. Suffixes decide how they are read.
    return {
        "splits": {split: [[path.name, hashes.of(path)] for path in paths] for split, paths in files.items()},
        **columns,
    }


def _split_files(config: CorpusConfig) -> dict[str, list[str]]:
    return {
        split: [file for name in names for file in _under_path(config, name)]
        for split, names in config.splits.items()
        if names
    }


def _under_path(config: CorpusConfig, name: str) -> list[str]:
    """The files under `path` for one of `splits`: itself where it is there, or those of another name."""
    with suppress(OSError):  # whoever reads it will say so
        if config.path is not None and not (Path(config.path).expanduser() / name).is_file():
            return (config.path_files or {}).get(name, [name])
    return [name]


def _repository(config: CorpusConfig) -> tuple[str, str]:
    assert config.repository is not None  # checked with the config
    assert config.revision is not None
    return config.repository, config.revision
