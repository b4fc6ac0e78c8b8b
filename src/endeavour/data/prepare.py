"""Prepared data as a function of its config and inputs: one folder a digest, whole or not there at all.

A folder is built beside its final place under another name and renamed at the end, its manifest written last;
a lock makes a second process wait for the first; a build that was stopped goes on where it stopped. Knows no
terminal and no Hydra.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock

from endeavour.data import corpus as corpora
from endeavour.data.cleaning import CleaningConfig
from endeavour.data.corpus import TRAIN, VALIDATION, CorpusConfig, FileHashes, Further, Progress
from endeavour.data.disk import file_digest, flush, flush_entry
from endeavour.data.files import Pair
from endeavour.data.journal import Journal
from endeavour.data.prepared import FORMAT, MANIFEST, SEAL, PreparedData, seal
from endeavour.data.report import as_markdown, cleaning_report
from endeavour.data.tokenizer import TokenizerConfig, Tokenizers, load_tokenizers
from endeavour.errors import UserError

LIBRARIES = ("datasets", "numpy", "sentencepiece")
DIRECTIONS = ("en-de", "de-en")


def prepare(
    *,
    corpus: CorpusConfig,
    cleaning: CleaningConfig,
    tokenizer: TokenizerConfig,
    direction: str,
    vocabularies: Tokenizers | None = None,
    further: Sequence[Further] = (),
    folder: Path,
    progress: Progress = lambda what, done, total: None,
    hub_cache: Path | None = None,
) -> PreparedData:
    """The prepared data of these settings, built unless it is there.

    Args:
        direction: "en-de" or "de-en".
        vocabularies: for source and target, instead of those that `tokenizer` would learn.
        further: what is trained on beside the corpus.
        folder: the data root; the result lies in its `prepared/<corpus>-<digest>/`.
        progress: called as (what, done, total or None).
        hub_cache: the hub client's cache folder; None is its own default.

    Raises:
        UserError: an input or a setting is wrong, or an input cannot be had.
    """
    if direction not in DIRECTIONS:
        raise UserError(f"direction={direction}: choose {' or '.join(DIRECTIONS)}")
    corpora.check(corpus)
    cleaning.check()
    tokenizer.check()
    root = folder / "prepared"
    with _named_write_error(folder):
        root.mkdir(parents=True, exist_ok=True)
    hashes = FileHashes(root / ".hashes.json")
    recipe = {
        "format": FORMAT,
        "direction": direction,
        "corpus": {"name": corpus.name, "kind": corpus.kind},
        "inputs": corpora.fingerprint(corpus, hashes, further),
        "cleaning": asdict(cleaning),
        "tokenizer": asdict(tokenizer),
    }
    if vocabularies is not None:
        recipe["tokenizer"] = {"digests": [one.digest for one in vocabularies]}
    hashes.save()
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    final = root / f"{corpus.name}-{digest[:12]}"
    if not (final / MANIFEST).is_file():
        with _locked(root / f".{final.name}.lock", folder):
            if not (final / MANIFEST).is_file():  # another process may have built it meanwhile
                progress("obtain the corpus", 0, None)
                splits = _directed(
                    corpora.load_splits(corpus, further=further, hub_cache=hub_cache, progress=progress),
                    direction,
                )

                def unchanged() -> bool:
                    return corpora.fingerprint(corpus, hashes, further) == recipe["inputs"]

                _build(
                    final,
                    splits,
                    recipe | {"digest": digest},
                    cleaning,
                    vocabularies or tokenizer,
                    progress,
                    unchanged,
                )
    shutil.rmtree(_scratch(final), ignore_errors=True)  # of a process that was stopped in its last moment
    return PreparedData.open(final)


@contextmanager
def _named_write_error(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"data_folder={folder} cannot be written ({error.strerror}): choose another"
        ) from error


@contextmanager
def _locked(path: Path, folder: Path) -> Generator[None]:
    with _named_write_error(folder):
        lock = FileLock(path)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _directed(splits: dict[str, Iterable[Pair]], direction: str) -> dict[str, Iterable[Pair]]:
    """English–German pairs as (source, target) pairs."""

    def swapped(pairs: Iterable[Pair]) -> Iterator[Pair]:
        return ((german, english) for english, german in pairs)

    if direction == "en-de":
        return splits
    return {name: swapped(pairs) for name, pairs in splits.items()}


def _build(
    final: Path,
    splits: dict[str, Iterable[Pair]],
    recipe: dict[str, Any],
    cleaning: CleaningConfig,
    tokenizer: TokenizerConfig | Tokenizers,
    progress: Progress,
    unchanged: Callable[[], bool],
) -> None:
    """Builds the folder `final`. `unchanged` tells at the end whether the inputs still are what `recipe` says."""
    # Imported here: `datasets` takes seconds to import, and a prepare with nothing to do should take none.
    from endeavour.data.build import build

    partial, scratch = final.with_name(f".{final.name}.partial"), _scratch(final)
    # Leftovers of a process that was stopped; the lock is ours. What is in scratch is taken up.
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    journal, code = Journal(scratch), _code()
    if journal.read("code") != code:  # none, or made by other code, whose parts would not fit
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        journal.write("code", code)
    try:
        counts, account = build(
            partial,
            scratch,
            splits,
            cleaning=cleaning,
            tokenizer=tokenizer,
            progress=progress,
        )
        report = cleaning_report(**account, splits=counts)
        _write(partial / "report.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")
        _write(partial / "report.md", as_markdown(report, final.name))
        manifest = _manifest(partial, recipe, counts)
        manifest[SEAL] = seal(manifest)
        _write(partial / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        if not unchanged():
            raise UserError(
                "a file of the corpus was changed while it was read: run `endeavour prepare` again"
            )
        flush(partial)
        shutil.rmtree(final, ignore_errors=True)  # an unfinished folder somebody made by hand
        partial.rename(final)
        flush_entry(final.parent)
        shutil.rmtree(scratch, ignore_errors=True)
    except UserError:  # what has to change for it to go away changes the folder's name too
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _scratch(final: Path) -> Path:
    return final.with_name(f".{final.name}.scratch")


def _code() -> dict[str, Any]:
    """What the parts of a half-finished preparation were made by."""
    sources = {path.name: file_digest(path) for path in sorted(Path(__file__).parent.glob("*.py"))}
    return {"sources": sources, "versions": {name: version(name) for name in LIBRARIES}}


def _manifest(folder: Path, recipe: dict[str, Any], counts: dict[str, dict[str, int]]) -> dict[str, Any]:
    source, target = recipe["direction"].split("-")
    tokenizers = dict(zip(("source", "target"), load_tokenizers(folder), strict=True))
    files = sorted(path for path in folder.iterdir() if path.suffix in (".npy", ".txt", ".model"))
    return recipe | {
        "source_language": source,
        "target_language": target,
        "vocabularies": {
            side: {"size": one.vocabulary_size, "digest": one.digest} for side, one in tokenizers.items()
        },
        "splits": counts,
        "validation_split": VALIDATION,
        "test_splits": [name for name in counts if name not in (TRAIN, VALIDATION)],
        "files": {path.name: {"bytes": path.stat().st_size, "sha256": file_digest(path)} for path in files},
        "versions": {name: version(name) for name in LIBRARIES},
    }


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8", newline="\n")
