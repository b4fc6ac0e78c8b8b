"""Which sentence pairs a corpus consists of: from the hub, from files, or from the textbook.

Pairs are (English, German) here; the caller decides the direction of translation. Knows nothing of cleaning
and tokenizers, and leaves the network to `hub`.
"""

import re
import stat
from collections.abc import Iterable, Sequence
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
from endeavour.data.text_files import mode_of
from endeavour.errors import UserError
from endeavour.progress import Report
from endeavour.settings import STRICT
from endeavour.storage import user_path

ExtraPairs = tuple[Path, Path]  # two line-aligned text files, English and German
TRAIN = "train"
VALIDATION = "validation"
RARE = "validation_rare"  # held out of the training text: the pairs with the rarest words
_TEXTBOOK = "endeavour.textbook"
_TEXTBOOK_SPLITS = (VALIDATION, "test", "test_unseen")
_COMMIT = r"[0-9a-f]{40}"
_NAME = r"[A-Za-z0-9_-]+"  # of a split
_PART = r"[A-Za-z][A-Za-z0-9_-]*"
# In angle brackets they are special pieces of every vocabulary; one that lowercases makes them of capitals too.
_TAKEN = ("pad", "unk", "s")


def _corpus_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name):
        raise ValueError("a name consists of letters, digits, '.', '_' and '-'")
    return name


def splits_to_test(names: Iterable[str]) -> list[str]:
    """Those of a corpus's splits that are for tests: all but `train` and `validation`, whatever they are called."""
    return [name for name in names if name not in (TRAIN, VALIDATION)]


@dataclass(kw_only=True, config=STRICT)
class CorpusConfig:
    """One corpus."""

    name: Annotated[str, AfterValidator(_corpus_name)]  # the first part of the prepared folder's name
    kind: Literal["textbook", "hub", "files"]
    path: str | None  # hub: a local folder to read instead; files: the folder that relative paths start from
    repository: str | None  # hub: the dataset repository, owner/name
    revision: str | None  # hub: the full commit hash
    splits: dict[str, list[str]]  # hub and files: split → its files; an empty list is a split not given
    # files: in place of splits.train, part → its files; here in the order of their names
    parts: dict[str, list[str]]
    tags: bool  # files in parts: whether each training source begins with the tag of its part
    tag: str | None  # the part whose tag all other sources begin with
    # how many training pairs, those with the rarest words, become the split `validation_rare`
    held_out_rare: Annotated[int, Field(ge=1)] | None
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

    @property
    def split_names(self) -> list[str]:
        """All that its prepared data have, whether or not the corpus can be read now."""
        held_out = _TEXTBOOK_SPLITS if self.kind == "textbook" else self.given_splits
        rare = [] if self.held_out_rare is None else [RARE]
        return list(dict.fromkeys([TRAIN, *held_out, *rare]))

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        """Each kind of corpus has what it needs, and nothing is set that only the other one reads."""
        textbook = self.kind == "textbook"
        readers = "a corpus of files: choose corpus=files or another" if textbook else "corpus=textbook"
        files = (
            "path",
            "repository",
            "revision",
            "splits",
            "parts",
            "path_files",
            "english_column",
            "german_column",
        )
        for key in files if textbook else ("train_pairs", "seed"):
            if getattr(self, key):
                raise ValueError(f"corpus.{key}={getattr(self, key)} is for {readers}")
        if textbook:
            if self.train_pairs is None or self.seed is None:
                raise ValueError("corpus.train_pairs and corpus.seed must be set")
        else:
            self._check_splits()
        for key in ("repository", "revision") if self.kind == "files" else ():
            if getattr(self, key):
                raise ValueError(
                    f"corpus.{key}={getattr(self, key)} is for a corpus of the hub, as corpus=multi30k is"
                )
        if self.held_out_rare is not None and self.splits.get(RARE):
            raise ValueError(
                f"corpus.held_out_rare makes the split {RARE}: give corpus.splits.{RARE} another name"
            )
        self._check_parts()
        return self

    def _check_splits(self) -> None:
        for split in (VALIDATION,) if self.parts else (TRAIN, VALIDATION):
            if not self.splits.get(split):
                raise ValueError(f"no files for split {split}; set corpus.splits.{split}=[my.en,my.de]")
        for split in self.splits:
            if not re.fullmatch(_NAME, split):
                raise ValueError(
                    f"corpus.splits.{split}: a split's name consists of letters, digits, '_' and '-'"
                )
        if self.on_hub and (self.repository is None or not re.fullmatch(_COMMIT, self.revision or "")):
            raise ValueError(
                f"corpus.revision={self.revision}: a corpus of the hub needs corpus.repository=owner/name and a "
                "full commit hash of 40 digits (what a branch stands for changes)"
            )

    def _check_parts(self) -> None:
        if self.parts and self.kind != "files":
            raise ValueError("corpus.parts is for corpus=files")
        if self.parts and self.splits.get(TRAIN):
            raise ValueError(
                "corpus.parts are the training split: give the files of corpus.splits.train as one of them"
            )
        for part, names in self.parts.items():
            if not re.fullmatch(_PART, part) or part.lower() in _TAKEN:
                raise ValueError(
                    f"corpus.parts.{part}: a part's name begins with a letter, consists of letters, digits, '_' and "
                    f"'-', and is none of {', '.join(_TAKEN)}, in whatever case"
                )
            if not names:
                raise ValueError(f"corpus.parts.{part} has no files")
        if self.tags and not self.parts:
            raise ValueError("corpus.tags=true needs corpus.parts")
        if self.tag is not None:
            self.require_tag("corpus.tag", self.tag)
        self.parts = dict(sorted(self.parts.items()))

    def require_tag(self, key: str, part: str) -> None:
        """Raises `ValueError` unless the sources of `part`, the value of `key`, begin with a tag."""
        if not self.tags or part not in self.parts:
            known = ", ".join(self.parts) if self.tags else "none, as corpus.tags=false"
            raise ValueError(f"{key}={part} has no tag; these have: {known}")


def load_splits(
    config: CorpusConfig,
    *,
    extra_pairs: Sequence[ExtraPairs] = (),
    progress: Report = lambda what, done, total: None,
) -> dict[str, Iterable[Pair]]:
    """The (English, German) pairs of every split, streamed where they come from files; training may be in parts.

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
        files = _hub_files(config, progress) if config.on_hub else _local_files(config, config.given_splits)
        splits = _read(config, files)
    pairs = [read_pairs(files, english_column="", german_column="") for files in extra_pairs]
    return splits | {TRAIN: chain(splits[TRAIN], *pairs)} if pairs else splits


def load_parts(config: CorpusConfig) -> dict[str, Iterable[Pair]]:
    """The same of each part of the training split, in which case `load_splits` has none of it."""
    return _read(config, _local_files(config, config.parts))


def _read(config: CorpusConfig, files: dict[str, list[Path]]) -> dict[str, Iterable[Pair]]:
    columns = {"english_column": config.english_column or "", "german_column": config.german_column or ""}
    return {name: read_pairs(paths, section="corpus", **columns) for name, paths in files.items()}


def _hub_files(config: CorpusConfig, progress: Report) -> dict[str, list[Path]]:
    """Split → its files in the hub's cache, downloaded where they are not there."""
    assert config.repository is not None  # checked with the config
    assert config.revision is not None
    fetch = partial(hub.fetch, config.repository, config.revision, corpus=config.name, progress=progress)
    return {split: [fetch(name) for name in names] for split, names in config.given_splits.items()}


def _local_files(config: CorpusConfig, named: dict[str, list[str]]) -> dict[str, list[Path]]:
    """Split or part → its files on this machine, for a corpus that is read from there."""
    folder = user_path(config.path or ".")
    instead = config.path_files or {}
    try:
        mode = mode_of(folder)
        if mode is None or not stat.S_ISDIR(mode):
            raise UserError(f"corpus.path={config.path}: no such folder")
        return {
            key: [
                folder / user_path(file)
                for name in names
                for file in (instead[name] if name in instead and not (folder / name).is_file() else [name])
            ]
            for key, names in named.items()
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
        inputs = {"splits": _hashed(config, config.given_splits, hashes), **columns}
        if config.parts:
            inputs["parts"] = _hashed(config, config.parts, hashes)
    if extra_pairs:
        inputs["extra_pairs"] = [[hashes.of(path) for path in files] for files in extra_pairs]
    return inputs


def _hashed(
    config: CorpusConfig, named: dict[str, list[str]], hashes: FileHashes
) -> dict[str, list[list[str]]]:
    return {
        key: [[path.name, hashes.of(path)] for path in paths]
        for key, paths in _local_files(config, named).items()
    }
