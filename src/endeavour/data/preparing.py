"""Prepared data as a function of their config and inputs: one folder for each digest, whole or not there at all.

A lock makes a second process wait for the first, and a build that was stopped continues where it stopped. Knows no
terminal and no Hydra.
"""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from endeavour.data.cleaning import CleaningConfig
from endeavour.data.cleaning_report import as_markdown
from endeavour.data.corpus import TRAIN, fingerprint, load_parts, load_splits
from endeavour.data.file_hashes import FileHashes
from endeavour.data.files import directed
from endeavour.data.journal import begin
from endeavour.data.prepared import HASHES, MANIFEST, PreparedData
from endeavour.data.recipe import DataRecipe
from endeavour.data.tokenizer import SIDES, load_tokenizers
from endeavour.directions import languages_of
from endeavour.errors import UserError
from endeavour.progress import Report
from endeavour.storage import (
    atomic_folder,
    file_digest,
    hidden_beside,
    json_digest,
    waiting_lock,
    write_atomically,
    write_errors,
    write_json,
)


def prepare_data(
    recipe: DataRecipe, folder: Path, progress: Report = lambda what, done, total: None
) -> PreparedData:
    """The prepared data of this recipe, built unless they are there.

    Args:
        folder: the data root; the result is in its `prepared/<corpus>-<digest>/`.
        progress: called as (what, done, total or None).

    Raises:
        UserError: an input or a setting is wrong, or an input cannot be read or downloaded.
    """
    root = folder / "prepared"
    with write_errors(folder, "data_folder"):
        root.mkdir(parents=True, exist_ok=True)
    inputs = _inputs_of(recipe, root)
    described = recipe.as_json(inputs.content)
    described["digest"] = json_digest(described)
    final = root / f"{recipe.corpus.name}-{described['digest'][:12]}"
    if not (final / MANIFEST).is_file():
        with write_errors(folder, "data_folder"), waiting_lock(final, f"preparing {final}"):
            _build_once(recipe, inputs, described, final, progress)
    shutil.rmtree(hidden_beside(final, "scratch"), ignore_errors=True)
    return PreparedData.open(final)


class _Inputs(NamedTuple):
    """What a corpus is read from.

    Attributes:
        content: its fingerprint.
        stamps: size and times of change of each file. Without them, files that were changed for a while and put back
            would not be noticed.
    """

    content: dict[str, Any]
    stamps: dict[str, list[int]]


def _inputs_of(recipe: DataRecipe, root: Path) -> _Inputs:
    hashes = FileHashes(root / HASHES)
    content = fingerprint(recipe.corpus, hashes, recipe.extra_pairs)
    hashes.save()
    return _Inputs(content, hashes.stamps)


def _build_once(
    recipe: DataRecipe, inputs: _Inputs, described: dict[str, Any], final: Path, progress: Report
) -> None:
    """Builds the folder `final`, unless another process has done so meanwhile."""
    if (final / MANIFEST).is_file():
        return
    # Imported here: `datasets` takes seconds to import, and nothing to do should not wait for it.
    from endeavour.data.build import build

    corpus = recipe.corpus
    progress("load the corpus", 0, None)
    splits = load_splits(corpus, extra_pairs=recipe.extra_pairs, progress=progress)
    parts = load_parts(corpus) or {"": splits.pop(TRAIN)}
    code = code_for(recipe.cleaning)
    begun_with = code | {"files": inputs.stamps}
    with _scratch_folder(final, begun_with) as scratch, atomic_folder(final) as partial:
        report = build(
            partial,
            scratch,
            {name: directed(pairs, recipe.direction) for name, pairs in splits.items()},
            {name: directed(pairs, recipe.direction) for name, pairs in parts.items()},
            recipe,
            progress,
        )
        _describe(partial, final.name, described | {"versions": code["versions"]}, report)
        if _inputs_of(recipe, final.parent) != inputs:
            raise UserError(
                f"corpus {corpus.name}: a file changed while it was read; run `endeavour prepare` again"
            )


@contextmanager
def _scratch_folder(final: Path, begun_with: dict[str, Any]) -> Generator[Path]:
    """Yields the folder of intermediate files, with what a stopped build that began with the same left there.

    It stays when this build is stopped, or a file cannot be read for the moment, but not after another `UserError`:
    once the user has put right what is wrong, the prepared folder has another name.
    """
    scratch = hidden_beside(final, "scratch")
    begin(scratch, begun_with)
    try:
        yield scratch
    except UserError as error:
        if not isinstance(error.__cause__, OSError):
            shutil.rmtree(scratch, ignore_errors=True)
        raise


def code_for(cleaning: CleaningConfig) -> dict[str, dict[str, str]]:
    """What may make other intermediate files: digests of these modules, and versions of packages.

    Raises:
        UserError: one of an extra is not installed.
    """
    packages = ["datasets", "numpy", "sentencepiece"]
    if cleaning.crawled is not None:
        packages += cleaning.crawled.packages
    return {
        "sources": {path.name: file_digest(path) for path in sorted(Path(__file__).parent.glob("*.py"))},
        "versions": {name: version(name) for name in packages},
    }


def _describe(folder: Path, name: str, recipe: dict[str, Any], report: dict[str, Any]) -> None:
    """Writes the report and, last, the manifest: the recipe and what came of it."""
    write_json(folder / "report.json", report)
    write_atomically(folder / "report.md", as_markdown(report, name))
    source, target = languages_of(recipe["direction"])
    tokenizers = dict(zip(SIDES, load_tokenizers(folder), strict=True))
    result = {
        "source_language": source,
        "target_language": target,
        "vocabularies": {
            side: {"size": one.vocabulary_size, "digest": one.digest} for side, one in tokenizers.items()
        },
        "splits": report["splits"],
    }
    if "parts" in report:
        counted = ("pairs", "source_tokens", "target_tokens", "longer_tokens")
        result["parts"] = {
            name: {key: part[key] for key in counted} for name, part in report["parts"].items()
        }
    write_json(folder / MANIFEST, recipe | result)
