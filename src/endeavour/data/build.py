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
from itertools import islice
from pathlib import Path
from typing import Any

from endeavour.data.augmentation import AugmentationConfig, Augmenter
from endeavour.data.cleaning import HeldOut, TextCleaner, summed
from endeavour.data.corpus import RARE, TRAIN
from endeavour.data.dataset import ParallelDataset, join_rows, save_rows
from endeavour.data.denoising import denoising_pairs
from endeavour.data.encoding import SIDES, flat_pairs
from endeavour.data.files import Pair
from endeavour.data.journal import Journal
from endeavour.data.normalization import normalize
from endeavour.data.part import Part
from endeavour.data.protection import protect_training_pair, symbols
from endeavour.data.rare_words import rarest_pairs
from endeavour.data.recipe import DataRecipe
from endeavour.data.tables import count_rows, new_table, read_tables, save_tables, write
from endeavour.data.tokenizer import (
    Tokenizer,
    TokenizerConfig,
    Tokenizers,
    load_tokenizers,
    tag_of,
    with_tag,
)
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
        splits: (source, target) pairs of each split, validation and test as they are to be scored.
        parts: those of each part of the training split, which `splits` then lacks. Parts are cleaned and stored one
            after the other, and duplicates are looked for within each of them.
        recipe: copies of training pairs are added as ids: the text tables have none. With `denoising` all splits hold
            masked sentences in place of the pairs, in the tables too.

    Returns:
        The report, as plain JSON: the training pairs `read` and `kept`, what each of the cleaning `steps` did, the
        same and the tokens of each of the `parts` if there are any, the counts of each of the `splits`, and how many
        `copies` were added.
    """
    corpus, cleaning, augmentation = recipe.corpus, recipe.cleaning, recipe.augmentation
    languages = languages_of(recipe.direction)
    journal = Journal(scratch)
    held_out = HeldOut()
    tables = {
        name: _read_held_out(name, pairs, folder, scratch, held_out, augmentation, progress)
        for name, pairs in splits.items()
        if name != TRAIN
    }
    augmenter = Augmenter(augmentation, cleaning, languages[0], held_out.overlaps)
    training = [
        Part(
            name,
            Journal(scratch / name),
            cleaning,
            TextCleaner(cleaning, held_out, languages),
            augmenter,
        )
        for name in parts or [""]
    ]
    for part in training:
        part.clean_all(parts[part.name] if parts else splits[TRAIN], progress)
    if corpus.held_out_rare is not None:
        progress("hold out rare words", 0, None)
        rare = rarest_pairs([table for part in training for table in part.clean], corpus.held_out_rare)
        tables[RARE] = _read_held_out(RARE, rare, folder, scratch, held_out, augmentation, progress)
        for part in training:
            part.hold_out(rare, overlap=cleaning.drop_overlap)
    clean = [table for part in training for table in part.clean]
    tokenizers = recipe.tokenizers
    if tokenizers is None:
        progress("train the tokenizer", 0, None)
        own_tags = [tag_of(name) for name in parts] if corpus.tags else []
        tokenizers = _train_tokenizers(clean, augmenter, recipe.tokenizer, own_tags, journal)
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        tokenizer.save(folder / f"{side}.model")

    for part in training:
        if augmentation is not None and augmentation.denoising:
            part.mask(augmentation.denoising, augmentation.seed, progress)
        part.encode_all(with_tag(tokenizers, part.name if corpus.tags else None), progress)
    shards = [shard for part in training for shard in part.encoded]
    for side in SIDES:
        join_rows([Path(f"{shard}.{side}") for shard in shards], folder / f"{TRAIN}.{side}")
    counts = {TRAIN: ParallelDataset.open(folder, TRAIN).counts}
    save_tables([Path(f"{shard}.arrow") for shard in shards], folder / "text" / TRAIN)
    for name, table in tables.items():
        progress(f"encode {name}", 0, count_rows(table))
        rows = [flat_pairs(pairs, with_tag(tokenizers, corpus.tag)) for pairs in read_tables(table)]
        for side, one in zip(SIDES, zip(*rows, strict=True), strict=True):
            save_rows(folder / f"{name}.{side}", one)
        counts[name] = ParallelDataset.open(folder, name).counts
        save_tables([table], folder / "text" / name)
    return _report(training, counts)


def _report(training: Sequence[Part], counts: dict[str, dict[str, int]]) -> dict[str, Any]:
    copies = summed([part.copies for part in training])
    report: dict[str, Any] = {
        "read": sum(part.read for part in training),
        "kept": counts[TRAIN]["pairs"] - sum(step.changed for step in copies),
        "steps": [asdict(step) for step in summed([part.steps for part in training])],
        "splits": counts,
    }
    if training[0].name:
        report["parts"] = {part.name: part.report() for part in training}
    if copies:
        report["copies"] = [asdict(step) for step in copies]
    return report


def _read_held_out(
    name: str,
    pairs: Iterable[Pair],
    folder: Path,
    scratch: Path,
    held_out: HeldOut,
    augmentation: AugmentationConfig | None,
    progress: Report,
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
    tables: Sequence[Path],
    augmenter: Augmenter,
    config: TokenizerConfig,
    source_tags: Sequence[str],
    journal: Journal,
) -> Tokenizers:
    """The source's and the target's tokenizer, which are equal if joint."""
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
        return Tokenizer.train(texts, config, [*tags, *symbols(config.placeholders)])

    if journal.read(SIDES[-1]) is None:
        trained = (train(0, 1),) * 2 if config.joint else (train(0), train(1))
        for side, one in zip(SIDES, trained, strict=True):
            one.save(journal.path(side, "model"))
            journal.write(side, {})
    return load_tokenizers(journal.folder)
