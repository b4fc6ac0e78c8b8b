"""Which sentence pairs a corpus consists of: from the hub, from files, or from the textbook.

Pairs are (English, German) here; the direction of translation is decided by who reads them. Knows nothing of
cleaning and tokenizers, and leaves the network to `hub`.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, cast

from endeavour.data import hub
from endeavour.data.files import Pair, read_pairs, require_file
from endeavour.errors import UserError

Further = tuple[Path, Path]  # two line-aligned text files, English and German
Progress = Callable[[str, int, int | None], None]  # (what, done, total or None)
TRAIN = "train"
VALIDATION = "validation"
_TEXTBOOK = "endeavour.textbook"
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(kw_only=True)
class CorpusConfig:
    """One corpus. Every split that is neither `train` nor `validation` is a test split, whatever its name."""

    name: str  # the first part of the prepared folder's name
    kind: str  # textbook, hub or files
    path: str | None  # hub: a local folder to read instead; files: the folder that relative paths start from
    repository: str | None  # hub: the dataset repository, owner/name
    revision: str | None  # hub: the full commit hash
    splits: dict[str, list[str]]  # hub and files: split → its files; an empty list is a split not given
    # hub: a file in `splits` → the files that hold the same under `path`, where it is not there by its own name
    path_files: dict[str, list[str]] | None
    english_column: str | None  # TSV, JSON lines, Parquet: name of the column, "translation.en" if nested
    german_column: str | None
    train_pairs: int | None  # textbook: size of the training split
    seed: int | None  # textbook: which sentences are drawn


def load_splits(
    config: CorpusConfig,
    *,
    further: Sequence[Further] = (),
    hub_cache: Path | None = None,
    progress: Progress = lambda what, done, total: None,
) -> dict[str, Iterable[Pair]]:
    """The (English, German) pairs of every split, streamed where they come from files.

    Args:
        further: what is trained on beside the corpus, after it.
        hub_cache: the hub client's cache folder; None is its own default (`HF_HOME`).
        progress: told of each file that is fetched.

    Raises:
        UserError: what could not be had, and what to do.
    """
    splits = _own_splits(config, hub_cache, progress)
    pairs = [read_pairs(files, english_column="", german_column="") for files in further]
    return splits | {TRAIN: chain(splits[TRAIN], *pairs)} if pairs else splits


def _own_splits(
    config: CorpusConfig, hub_cache: Path | None, progress: Progress
) -> dict[str, Iterable[Pair]]:
    if config.kind == "textbook":
        return dict(
            import_module(_TEXTBOOK).textbook_splits(seed=config.seed, train_pairs=config.train_pairs)
        )
    if config.kind == "hub" and config.path is None:
        repository, revision = _pinned(config)
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
    if config.kind == "textbook" or (config.kind == "hub" and config.path is None):
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
    config: CorpusConfig, hashes: "FileHashes", further: Sequence[Further] = ()
) -> dict[str, Any]:
    """What the pairs of `load_splits` depend on, as plain JSON: equal fingerprints mean equal pairs.

    Needs no network: a commit hash stands for what is in a hub repository.
    """
    own = _own_fingerprint(config, hashes)
    return own | {"further": [[hashes.of(path) for path in files] for files in further]} if further else own


def _own_fingerprint(config: CorpusConfig, hashes: "FileHashes") -> dict[str, Any]:
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
        repository, revision = _pinned(config)
        return {"repository": repository, "revision": revision, "splits": _split_files(config), **columns}
    # Names without folders: the same files elsewhere are the same corpus. Suffixes decide how they are read.
    return {
        "splits": {split: [[path.name, hashes.of(path)] for path in paths] for split, paths in files.items()},
        **columns,
    }


class FileHashes:
    """SHA-256 of files, remembered by path, size and time of change so that large files are read once."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._changed = False
        self._known: dict[str, list[Any]] = {}
        with suppress(OSError, ValueError):  # a lost or torn memory costs one more reading
            known = json.loads(store.read_text("utf-8"))
            if isinstance(known, dict):
                self._known = cast("dict[str, list[Any]]", known)

    def of(self, path: Path) -> str:
        """The SHA-256 of a file's content, in hex."""
        require_file(path)
        state = path.stat()
        key, stamp = str(path.resolve()), [state.st_size, state.st_mtime_ns]
        if self._known.get(key, [])[:2] != stamp:
            with path.open("rb") as file:
                self._known[key] = [*stamp, hashlib.file_digest(file, "sha256").hexdigest()]
            self._changed = True
        return self._known[key][2]

    def save(self) -> None:
        """Writes the memory to its store, atomically; of two processes at once the later one wins. Where it cannot be
        written, the files will be read once more."""
        if not self._changed:
            return
        partial = self._store.with_name(f"{self._store.name}.{uuid.uuid4().hex}")
        with suppress(OSError):
            partial.write_text(json.dumps(self._known, indent=0), "utf-8")
            partial.replace(self._store)


def check(config: CorpusConfig) -> None:
    """Raises `UserError` where a config cannot describe a corpus."""
    if config.kind not in ("textbook", "hub", "files"):
        raise UserError(f"corpus.kind={config.kind}: choose textbook, hub or files")
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", config.name):
        raise UserError(f"corpus.name={config.name}: a name consists of letters, digits, '.', '_' and '-'")
    _refuse_unread(config)
    if config.kind == "textbook":
        if config.train_pairs is None or config.train_pairs < 1 or config.seed is None:
            raise UserError("corpus.train_pairs and corpus.seed must be set (train_pairs at least 1)")
        return
    for split in (TRAIN, VALIDATION):
        if not _split_files(config).get(split):
            raise UserError(
                f"corpus {config.name}: no files for split {split}; set corpus.splits.{split}=[my.en,my.de]"
            )
    for split in _split_files(config):
        if not re.fullmatch(r"[A-Za-z0-9_-]+", split):
            raise UserError(f"corpus.splits.{split}: a split's name consists of letters, digits, '_' and '-'")


def _refuse_unread(config: CorpusConfig) -> None:
    """Raises `UserError` for a setting that this kind of corpus does not read."""
    if config.kind == "textbook":
        unread, readers = (
            ("path", "repository", "splits"),
            "corpora that are read from files: choose corpus=…",
        )
    else:
        unread, readers = ("train_pairs", "seed"), "corpus=textbook"
    for key in unread:
        if getattr(config, key):
            raise UserError(f"corpus.{key}={getattr(config, key)} is for {readers}")


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


def _pinned(config: CorpusConfig) -> tuple[str, str]:
    if config.repository is None or config.revision is None or not _COMMIT.fullmatch(config.revision):
        raise UserError(
            f"corpus {config.name}: corpus.repository must name a dataset repository, and corpus.revision "
            f"a full commit hash of 40 digits, not {config.revision!r}: a branch changes under its name"
        )
    return config.repository, config.revision
