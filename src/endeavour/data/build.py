"""Fills a folder from sentence pairs: text tables, tokenizers, id arrays.

Memory is bounded by a batch of text, the ids of a shard, the tokenizer's sample, the validation and test sets, and the
hashes by which duplicates are found: 8 bytes a pair, and 80 more where near-duplicates are dropped. The training split
is processed in shards, which a journal lists once they are done, so that an interrupted build continues where it
stopped. Knows no config except those of cleaning and tokenizer, and not whether the folder is new.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from endeavour.data.augmentation import AugmentationConfig, Augmenter
from endeavour.data.cleaning import (
    CleaningConfig,
    HeldOut,
    LengthCleaner,
    Step,
    TextCleaner,
    restore_steps,
    summed,
)
from endeavour.data.corpus import RARE, TRAIN, Progress
from endeavour.data.crawled import Languages
from endeavour.data.dataset import ParallelDataset, join_rows
from endeavour.data.encoding import SIDES, count_tokens, encode_split, encode_train
from endeavour.data.files import Pair
from endeavour.data.journal import Journal
from endeavour.data.normalization import normalize
from endeavour.data.protection import protect_training_pair, symbols
from endeavour.data.rare_words import rarest_pairs
from endeavour.data.tables import batches, count_rows, new_table, read_tables, save_tables, write
from endeavour.data.tokenizer import (
    Tokenizer,
    TokenizerConfig,
    Tokenizers,
    load_tokenizers,
    tag_of,
    with_tag,
)
from endeavour.errors import UserError

SHARD_PAIRS = 250_000  # as read; about a minute's work, which is what an interruption loses


def build(
    folder: Path,
    scratch: Path,
    splits: dict[str, Iterable[Pair]],
    parts: dict[str, Iterable[Pair]],
    *,
    tags: bool,
    tag: str | None,
    held_out_rare: int | None,
    languages: Languages,
    cleaning: CleaningConfig,
    augmentation: AugmentationConfig | None,
    tokenizer: TokenizerConfig | Tokenizers,
    progress: Progress,
) -> dict[str, Any]:
    """Writes everything except the manifest and the reports into `folder`.

    Args:
        scratch: a folder for intermediate files, which the caller removes; what an interrupted build of the same
            splits and settings left there is used.
        splits: (source, target) pairs of each split, validation and test as they are to be scored.
        parts: those of each part of the training split, which `splits` then lacks. Parts are cleaned and stored one
            after the other, and duplicates are looked for within each of them.
        tags, tag: whether the sources of a part begin with its tag; and of which part validation and test have it.
        held_out_rare: how many clean training pairs, those with the rarest words, are a split of their own instead.
        languages: of source and target.
        augmentation: which copies of training pairs are added, as ids: the text tables have none.
        tokenizer: how to train tokenizers, or tokenizers that exist.

    Returns:
        The report, as plain JSON: the training pairs `read` and `kept`, what each of the cleaning `steps` did, the
        same and the tokens of each of the `parts` if there are any, and the counts of each of the `splits`.
    """
    journal = Journal(scratch)
    held_out = HeldOut()
    tables = {
        name: _read_held_out(name, pairs, folder, scratch, held_out, progress)
        for name, pairs in splits.items()
        if name != TRAIN
    }
    training = [
        _Part(
            name,
            Journal(scratch / name),
            TextCleaner(cleaning, held_out, languages),
            LengthCleaner(cleaning),
            Augmenter(augmentation, cleaning, languages[0], held_out.overlaps),
        )
        for name in parts or [""]
    ]
    for part in training:
        part.clean_all(parts[part.name] if parts else splits[TRAIN], progress)
    if held_out_rare is not None:
        progress("hold out rare words", 0, None)
        rare = rarest_pairs([table for part in training for table in part.clean], held_out_rare)
        tables[RARE] = _read_held_out(RARE, rare, folder, scratch, held_out, progress)
        for part in training:
            part.hold_out(rare, overlap=cleaning.drop_overlap)
    clean = [table for part in training for table in part.clean]
    if isinstance(tokenizer, TokenizerConfig):
        progress("train the tokenizer", 0, None)
        own_tags = [tag_of(name) for name in parts] if tags else []
        tokenizer = _train_tokenizers(clean, training[0].augmenter, tokenizer, own_tags, journal)
    for side, trained in zip(SIDES, tokenizer, strict=True):
        trained.save(folder / f"{side}.model")

    for part in training:
        part.encode_all(with_tag(tokenizer, part.name if tags else None), progress)
    shards = [shard for part in training for shard in part.encoded]
    for side in SIDES:
        join_rows([Path(f"{shard}.{side}") for shard in shards], folder / f"{TRAIN}.{side}")
    counts = {TRAIN: count_tokens(folder, TRAIN)}
    save_tables([Path(f"{shard}.arrow") for shard in shards], folder / "text" / TRAIN)
    for name, table in tables.items():
        total = count_rows(table)
        for done in encode_split(table, folder / name, with_tag(tokenizer, tag)):
            progress(f"encode {name}", done, total)
        counts[name] = count_tokens(folder, name)
        save_tables([table], folder / "text" / name)
    copies = summed([part.augmenter.steps for part in training])
    report: dict[str, Any] = {
        "read": sum(part.cleaner.read for part in training),
        "kept": counts[TRAIN]["pairs"] - sum(step.changed for step in copies),
        "steps": [asdict(step) for step in summed([part.steps for part in training])],
        "splits": counts,
    }
    if parts:
        report["parts"] = {part.name: part.report() for part in training}
    if copies:
        report["copies"] = [asdict(step) for step in copies]
    return report


@dataclass(frozen=True)
class _Part:
    """One part of the training split, or all of it, which then has no name, with the tables and shards made of it."""

    name: str
    journal: Journal
    cleaner: TextCleaner
    lengths: LengthCleaner
    augmenter: Augmenter
    clean: list[Path] = field(default_factory=list[Path])
    encoded: list[Path] = field(default_factory=list[Path])
    held: list[Step] = field(default_factory=list[Step])

    @property
    def steps(self) -> list[Step]:
        return [*self.cleaner.steps, *self.held, *self.lengths.steps]

    def clean_all(self, pairs: Iterable[Pair], progress: Progress) -> None:
        self.journal.folder.mkdir(exist_ok=True)
        self.clean.extend(clean_pairs(pairs, self.cleaner, self.journal, progress))
        self._require_pairs(sum(count_rows(table) for table in self.clean))

    def hold_out(self, pairs: Sequence[Pair], *, overlap: bool) -> None:
        """Drops clean pairs that are held out after all, and with `overlap` those that share a side with one.

        A build that was stopped does this again, from the same tables to the same ones.
        """
        chosen, sides = set(pairs), HeldOut()
        sides.add(pairs if overlap else [])
        held, shared = Step("held out for its rare words"), Step(f"overlap with {RARE}")
        for number, clean in enumerate(self.clean):
            self.clean[number] = self.journal.path(f"rest-{number:05d}", "arrow")
            with new_table(self.clean[number]) as table:
                for batch in read_tables(clean):
                    dropped = [
                        held if pair in chosen else shared if sides.overlaps(pair) else None for pair in batch
                    ]
                    for pair, step in zip(batch, dropped, strict=True):
                        if step is not None:
                            step.drop(pair)
                    write(table, [pair for pair, step in zip(batch, dropped, strict=True) if step is None])
        self.held.extend([held, shared] if overlap else [held])

    def encode_all(self, tokenizers: Tokenizers, progress: Progress) -> None:
        self.encoded.extend(
            encode_train(self.clean, tokenizers, self.lengths, self.augmenter, self.journal, progress)
        )
        self._require_pairs(self.report()["pairs"])

    def report(self) -> dict[str, Any]:
        """What became of it, and its tokens."""
        shards = [ParallelDataset.open(shard.parent, shard.name) for shard in self.encoded]
        return {
            "read": self.cleaner.read,
            "pairs": sum(len(shard) for shard in shards),
            "source_tokens": sum(int(shard.source.lengths.sum()) for shard in shards),
            "target_tokens": sum(int(shard.target.lengths.sum()) for shard in shards),
            "steps": [asdict(step) for step in self.steps],
        }

    def _require_pairs(self, kept: int) -> None:
        split, key = (self.name, "parts") if self.name else (TRAIN, "splits")
        if self.cleaner.read == 0:
            raise UserError(f"the {key[:-1]} {split} is empty; check corpus.{key}.{split}")
        if kept == 0:
            dropped = ", ".join(f"{step.name} {step.dropped}" for step in self.steps if step.dropped)
            of = f" of corpus.parts.{self.name}" if self.name else ""
            raise UserError(
                f"cleaning dropped all {self.cleaner.read} training pairs{of} ({dropped}); check the settings under "
                "cleaning"
            )


def _read_held_out(
    name: str, pairs: Iterable[Pair], folder: Path, scratch: Path, held_out: HeldOut, progress: Progress
) -> Path:
    """Keeps the untouched lines beside the normal form, and every row. Returns the table of the latter."""
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
    for side, texts in zip(SIDES, zip(*rows, strict=True), strict=True):
        (folder / f"{name}.{side}.txt").write_bytes("".join(f"{text}\n" for text in texts).encode())
    normal = [(normalize(source), normalize(target)) for source, target in rows]
    held_out.add(normal)
    path = scratch / f"{name}.arrow"
    with new_table(path) as table:
        write(table, normal)
    progress(f"read {name}", len(rows), None)
    return path


def clean_pairs(
    pairs: Iterable[Pair], cleaner: TextCleaner, journal: Journal, progress: Progress
) -> list[Path]:
    """The tables of clean pairs, a shard each. What `journal` has of an interrupted attempt is not done again."""
    remaining = iter(pairs)
    tables: list[Path] = []
    finished = False
    while not finished:
        part = f"clean-{len(tables):05d}"
        tables.append(journal.path(part, "arrow"))
        seen = journal.path(part, "seen.npz")
        done = journal.read(part)
        if done is None:
            before = cleaner.read
            with new_table(tables[-1]) as table:
                for batch in batches(islice(remaining, SHARD_PAIRS)):
                    write(table, cleaner.clean(batch))
                    progress("read and clean train", cleaner.read, None)
            finished = cleaner.read - before < SHARD_PAIRS
            np.savez(seen, allow_pickle=False, **{name: one.take_new() for name, one in cleaner.seen.items()})
            steps = [asdict(step) for step in cleaner.steps]
            journal.write(part, {"read": cleaner.read, "finished": finished, "steps": steps})
        else:
            deque(islice(remaining, done["read"] - cleaner.read), maxlen=0)  # passes over them
            cleaner.read, finished = done["read"], done["finished"]
            restore_steps(cleaner.steps, done["steps"])
            with np.load(seen) as saved:
                for name, one in cleaner.seen.items():
                    one.add(saved[name])
                    one.take_new()
            progress("read and clean train", cleaner.read, None)
    return tables


def _train_tokenizers(
    tables: Sequence[Path],
    augmenter: Augmenter,
    config: TokenizerConfig,
    source_tags: Sequence[str],
    journal: Journal,
) -> Tokenizers:
    """The source's and the target's tokenizer, the same one twice if joint."""
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
