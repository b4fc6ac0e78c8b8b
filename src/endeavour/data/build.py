"""Fills a folder from sentence pairs: text tables, tokenizers, id arrays.

Memory is bounded by some batches of text, the ids of a shard, the tokenizer's sample, the validation and test sets, and
the hashes by which duplicates are found: 5 bytes a pair, and 25 more where near-duplicates are dropped. The training
split is processed in shards, see `part`, so that an interrupted build continues where it stopped. Knows no config of a
run, and not whether the folder is new.
"""

import gc
import math
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from endeavour.data.augmentation import AugmentationConfig, Augmenter
from endeavour.data.cleaning import HeldOut, TextCleaner, summed
from endeavour.data.corpus import RARE, TRAIN
from endeavour.data.dataset import ParallelDataset, join_rows, save_rows
from endeavour.data.denoising import denoising_pairs
from endeavour.data.encoding import flat_pairs
from endeavour.data.files import Pair
from endeavour.data.journal import Journal
from endeavour.data.normalization import normalize
from endeavour.data.part import Part
from endeavour.data.protection import protect_training_pair, symbols
from endeavour.data.rare_words import rarest_pairs
from endeavour.data.recipe import DataRecipe
from endeavour.data.tables import count_rows, new_table, read_tables, save_tables, write
from endeavour.data.tokenizer import (
    SIDES,
    Tokenizer,
    Tokenizers,
    load_tokenizers,
    save_tokenizers,
    tag_of,
    with_tag,
)
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.directions import languages_of
from endeavour.errors import UserError
from endeavour.progress import Report

# Containers that are made before Python's garbage collector looks for cycles among them.
CONTAINERS = 1_000_000


@contextmanager
def _rarely_collecting() -> Generator[None]:
    """Pairs and ids have no cycles, and looking for them took 13 to 34% of the time."""
    before = gc.get_threshold()
    gc.set_threshold(CONTAINERS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@_rarely_collecting()
def build(
    folder: Path,
    scratch: Path,
    splits: dict[str, Iterable[Pair]],
    parts: dict[str, Iterable[Pair]],
    recipe: DataRecipe,
    progress: Report,
) -> dict[str, Any]:
    """Writes everything except the manifest and the reports into `folder`.

    Args:
        scratch: a folder for intermediate files, which the caller removes; what an interrupted build of the same
            splits and recipe left there is used.
        splits: (source, target) pairs of validation and each test split, as they are to be scored.
        parts: those of each part of the training split, or of all of it under the name "". Parts are cleaned and
            stored one after the other, and duplicates are looked for within each of them.
        recipe: copies of training pairs are added as ids: the text tables have none. With `denoising` all splits hold
            masked sentences in place of the pairs, in the tables too.

    Returns:
        The report, as plain JSON: the training pairs `read` and, before masking, `kept`, what each of the cleaning
        `steps` did, the same and the tokens of each of the `parts` if there are any, the counts of each of the
        `splits`, and how many `copies` were added.
    """
    cleaning, augmentation = recipe.cleaning, recipe.augmentation
    held_out = HeldOut(lowercase=recipe.lowercase)
    read = partial(_read_held_out, folder, scratch, held_out, augmentation, progress)
    tables = {name: read(name, pairs) for name, pairs in splits.items()}
    source_language, _ = languages_of(recipe.direction)
    augmenter = Augmenter(augmentation, cleaning, source_language, held_out)
    training = _clean(parts, scratch, recipe, held_out, augmenter, progress)
    if recipe.corpus.held_out_rare is not None:
        progress("hold out rare words", 0, None)
        rare = rarest_pairs(_clean_tables(training), recipe.corpus.held_out_rare, held_out.key)
        tables[RARE] = read(RARE, rare)
        for part in training:
            part.hold_out(rare, overlap=cleaning.drop_overlap, lowercase=recipe.lowercase)
    tokenizers = recipe.tokenizers
    if tokenizers is None:
        progress("train the tokenizer", 0, None)
        tokenizers = _train_tokenizers(training, augmenter, recipe, Journal(scratch))
    save_tokenizers(folder, tokenizers)
    counts = {TRAIN: _encode_training(folder, training, tokenizers, recipe, progress)}
    for name, table in tables.items():
        progress(f"encode {name}", 0, count_rows(table))
        counts[name] = _encode_held_out(folder, name, table, with_tag(tokenizers, recipe.corpus.tag))
    return _report(training, counts)


def _clean(
    parts: dict[str, Iterable[Pair]],
    scratch: Path,
    recipe: DataRecipe,
    held_out: HeldOut,
    augmenter: Augmenter,
    progress: Report,
) -> list[Part]:
    languages = languages_of(recipe.direction)
    training: list[Part] = []
    for name, pairs in parts.items():
        cleaner = TextCleaner(recipe.cleaning, held_out, languages)
        part = Part(name, Journal(scratch / name), recipe.cleaning, cleaner, augmenter)
        part.clean_all(pairs, progress)
        training.append(part)
    return training


def _clean_tables(training: Sequence[Part]) -> list[Path]:
    return [table for part in training for table in part.clean]


def _encode_training(
    folder: Path, training: Sequence[Part], tokenizers: Tokenizers, recipe: DataRecipe, progress: Report
) -> dict[str, int]:
    """Writes ids and text; returns their counts."""
    augmentation = recipe.augmentation
    for part in training:
        if augmentation is not None and augmentation.denoising:
            part.mask(augmentation.denoising, augmentation.seed, progress)
        part.encode_all(with_tag(tokenizers, part.name if recipe.corpus.tags else None), progress)
    shards = [shard for part in training for shard in part.encoded]
    for side in SIDES:
        join_rows([Path(f"{shard}.{side}") for shard in shards], folder / f"{TRAIN}.{side}")
    save_tables([Path(f"{shard}.arrow") for shard in shards], folder / "text" / TRAIN)
    return ParallelDataset.open(folder, TRAIN).counts


def _encode_held_out(folder: Path, name: str, table: Path, tokenizers: Tokenizers) -> dict[str, int]:
    """The same of a split that is held out."""
    rows = [flat_pairs(pairs, tokenizers) for pairs in read_tables(table)]
    for side, one in zip(SIDES, zip(*rows, strict=True), strict=True):
        save_rows(folder / f"{name}.{side}", one)
    save_tables([table], folder / "text" / name)
    return ParallelDataset.open(folder, name).counts


def _report(training: Sequence[Part], counts: dict[str, dict[str, int]]) -> dict[str, Any]:
    copies = summed([part.copies for part in training])
    report: dict[str, Any] = {
        "read": sum(part.read for part in training),
        "kept": sum(part.masked for part in training)
        or counts[TRAIN]["pairs"] - sum(step.changed for step in copies),
        "steps": [asdict(step) for step in summed([part.steps for part in training])],
        "splits": counts,
    }
    if training[0].name:
        report["parts"] = {part.name: part.report() for part in training}
    if copies:
        report["copies"] = [asdict(step) for step in copies]
    return report


def _read_held_out(
    folder: Path,
    scratch: Path,
    held_out: HeldOut,
    augmentation: AugmentationConfig | None,
    progress: Report,
    name: str,
    pairs: Iterable[Pair],
) -> Path:
    """Keeps the untouched lines beside the normal form, and every row; with `denoising` masked sentences in place of
    both. Returns the table of the normal form.
    """
    rows = list(pairs)
    if not rows:
        raise UserError(f"the split {name} is empty; check corpus.splits.{name}")
    for number, pair in enumerate(rows, start=1):
        for text in pair:
            if "\n" in text:
                raise UserError(
                    f"split {name}, pair {number}: a line break inside {text[:60]!r}; each sentence of validation "
                    "and test must be one line"
                )
    normal = [(normalize(source), normalize(target)) for source, target in rows]
    held_out.add(normal)
    if augmentation is not None and augmentation.denoising:
        rows = normal = denoising_pairs(normal, 1, augmentation.seed)
    for side, texts in zip(SIDES, zip(*rows, strict=True), strict=True):
        (folder / f"{name}.{side}.txt").write_bytes("".join(f"{text}\n" for text in texts).encode())
    path = scratch / f"split {name}.arrow"  # with a space, which no other file has
    with new_table(path) as table:
        write(table, normal)
    progress(f"read {name}", len(rows), None)
    return path


def _train_tokenizers(
    training: Sequence[Part], augmenter: Augmenter, recipe: DataRecipe, journal: Journal
) -> Tokenizers:
    """The source's and the target's tokenizer, which are equal if joint."""
    config, tables = recipe.tokenizer, _clean_tables(training)
    source_tags = [tag_of(part.name) for part in training] if recipe.corpus.tags else []
    rows = sum(count_rows(table) for table in tables)
    stride = math.ceil(rows * augmenter.rows_per_pair / config.max_sentences)

    def train(*sides: int) -> Tokenizer:
        every = (pair for table in tables for batch in read_tables(table) for pair in batch)
        drawn = islice(every, 0, None, stride)
        sample = (
            protect_training_pair(one, config.placeholders)
            for pair in drawn
            for one in augmenter.with_copies(pair)
        )
        texts = (pair[side] for pair in sample for side in sides)
        tags = source_tags if SIDES.index("source") in sides else ()
        return train_tokenizer(texts, config, [*tags, *symbols(config.placeholders)])

    if journal.read(SIDES[-1]) is None:
        source = train(0, 1) if config.joint else train(0)
        target = source if config.joint else train(1)
        save_tokenizers(journal.folder, (source, target))
        for side in SIDES:
            journal.write(side, {})
    return load_tokenizers(journal.folder)
