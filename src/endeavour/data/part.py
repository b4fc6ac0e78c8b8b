"""The training split, or a part of it: cleaned into tables and encoded in shards, going on where it was interrupted.

A journal lists the shards that are done. Knows no tokenizer's training, and nothing of the other splits and parts.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from endeavour.data.augmentation import Augmenter
from endeavour.data.cleaning import (
    CleaningConfig,
    HeldOut,
    LengthCleaner,
    Step,
    TextCleaner,
    add_steps,
    restore_steps,
    summed,
)
from endeavour.data.corpus import RARE, TRAIN
from endeavour.data.dataset import ParallelDataset, Rows, save_rows
from endeavour.data.denoising import MASKING, denoising_pairs
from endeavour.data.encoding import Encoded, TrainingEncoder
from endeavour.data.files import Pair
from endeavour.data.journal import Journal
from endeavour.data.parallel import map_in_order
from endeavour.data.tables import batches, count_rows, new_table, read_tables, write
from endeavour.data.tokenizer import SIDES, Tokenizers
from endeavour.errors import UserError
from endeavour.progress import Report

SHARD_BATCHES = 25  # of 10,000 pairs as read; some seconds' work, which is what an interruption loses


class Part:
    """One part of the training split, or all of it, which then has no name.

    Attributes:
        clean: the tables of clean pairs, a shard each.
        encoded: of the shards of ids and text the beginnings of their files' names.
        copies: how many copies were added, by perturbation.
        masked: how many pairs masked sentences stand in place of.
    """

    def __init__(
        self,
        name: str,
        journal: Journal,
        cleaning: CleaningConfig,
        cleaner: TextCleaner,
        augmenter: Augmenter,
    ) -> None:
        self.name = name
        self.clean: list[Path] = []
        self.encoded: list[Path] = []
        self.copies = augmenter.new_steps()
        self.masked = 0
        self._journal = journal
        self._cleaning = cleaning
        self._cleaner = cleaner
        self._augmenter = augmenter
        self._after_cleaning: list[Step] = []
        self._lengths = LengthCleaner(cleaning).steps

    @property
    def read(self) -> int:
        return self._cleaner.read

    @property
    def steps(self) -> list[Step]:
        return [*self._cleaner.steps, *self._after_cleaning, *self._lengths]

    def clean_all(self, pairs: Iterable[Pair], progress: Report) -> None:
        self._journal.folder.mkdir(exist_ok=True)
        self.clean.extend(clean_pairs(pairs, self._cleaner, self._journal, progress))
        self._require_pairs(sum(count_rows(table) for table in self.clean))

    def hold_out(self, pairs: Sequence[Pair], *, overlap: bool, lowercase: bool) -> None:
        """Drops clean pairs that are held out after all, and with `overlap` those that share a side with one, as
        `HeldOut` compares them.

        A build that was stopped does this again, from the same tables to the same ones.
        """
        sides = HeldOut(lowercase=lowercase)
        sides.add(pairs if overlap else [])
        chosen = set(map(sides.key, pairs))
        held, shared = Step("held out for its rare words"), Step(f"overlap with {RARE}")

        def rest(batch: list[Pair]) -> list[Pair]:
            kept: list[Pair] = []
            for pair in batch:
                if sides.key(pair) in chosen:
                    held.drop(pair)
                elif sides.overlaps(pair):
                    shared.drop(pair)
                else:
                    kept.append(pair)
            return kept

        self._rewrite("rest", rest)
        self._after_cleaning.extend([held, shared] if overlap else [held])
        self._require_pairs(sum(count_rows(table) for table in self.clean))

    def mask(self, copies: int, seed: int, progress: Report) -> None:
        """Puts masked sentences in the place of the pairs; see `denoising_pairs`."""
        masking = Step(MASKING)
        met, self.masked = 0, sum(map(count_rows, self.clean))

        def masks(batch: list[Pair]) -> list[Pair]:
            nonlocal met
            pairs = denoising_pairs(batch, copies, seed)
            for masked, whole in pairs:
                masking.change(whole, masked)
            met += len(batch)
            progress(f"mask {TRAIN}", met, self.masked)
            return pairs

        self._rewrite("masked", masks)
        self._after_cleaning.append(masking)

    def _rewrite(self, name: str, changed: Callable[[list[Pair]], list[Pair]]) -> None:
        """Puts in place of each clean table one of that name, of the batches as they are `changed`."""
        for number, clean in enumerate(self.clean):
            self.clean[number] = self._journal.path(f"{name}-{number:05d}", "arrow")
            with new_table(self.clean[number]) as table:
                for batch in read_tables(clean):
                    write(table, changed(batch))

    def encode_all(self, tokenizers: Tokenizers, progress: Report) -> None:
        """Encodes what is not too long, a shard for each clean table."""
        shards = {
            f"encoded-{number:05d}": table for number, table in enumerate(self.clean) if count_rows(table)
        }
        missing = [name for name in shards if self._journal.read(name) is None]
        encoder = TrainingEncoder(tokenizers, self._cleaning, self._augmenter)
        batches = chain.from_iterable(read_tables(shards[name]) for name in missing)
        met, total = 0, sum(map(count_rows, shards.values()))
        with closing(map_in_order(encoder, batches)) as encoded:
            for name, table in shards.items():
                if name in missing:
                    for pairs in self._write_shard(name, encoded, count_rows(table)):
                        progress(f"encode {TRAIN}", met + pairs, total)
                met += count_rows(table)
                progress(f"encode {TRAIN}", met, total)
        for noted in map(self._journal.read, shards):
            assert noted is not None
            add_steps([*self._lengths, *self.copies], [Step(**values) for values in noted["steps"]])
        self.encoded.extend(self._journal.folder / name for name in shards)
        self._require_pairs(self.report()["pairs"])

    def _write_shard(self, name: str, batches: Iterator[Encoded], pairs: int) -> Iterator[int]:
        """Writes the batches of so many pairs; yields the number of those met so far."""
        met = 0
        rows: list[tuple[Rows, Rows]] = []
        steps: list[list[Step]] = []
        with new_table(self._journal.path(name, "arrow")) as text:
            while met < pairs:
                batch = next(batches)
                write(text, batch.pairs)
                rows.append(batch.rows)
                steps.append(batch.steps)
                met += batch.met
                yield met
        for side, one in zip(SIDES, zip(*rows, strict=True), strict=True):
            save_rows(self._journal.path(name, side), one)
        self._journal.write(name, {"steps": [asdict(step) for step in summed(steps)]})

    def report(self) -> dict[str, Any]:
        """What became of it, and its tokens."""
        shards = [ParallelDataset.open(shard.parent, shard.name).counts for shard in self.encoded]
        counts = {name: sum(counts[name] for counts in shards) for name in shards[0]}
        return {"read": self.read, **counts, "steps": [asdict(step) for step in self.steps]}

    def _require_pairs(self, kept: int) -> None:
        split, key = (self.name, "parts") if self.name else (TRAIN, "splits")
        if self.read == 0:
            raise UserError(f"the {key[:-1]} {split} is empty; check corpus.{key}.{split}")
        if kept == 0:
            dropped = ", ".join(f"{step.name} {step.dropped}" for step in self.steps if step.dropped)
            of = f" of corpus.parts.{self.name}" if self.name else ""
            raise UserError(
                f"cleaning dropped all {self.read} training pairs{of} ({dropped}); check the settings under "
                "cleaning, and corpus.held_out_rare"
            )


def clean_pairs(
    pairs: Iterable[Pair], cleaner: TextCleaner, journal: Journal, progress: Report
) -> list[Path]:
    """The tables of clean pairs, a shard each. What `journal` has of an interrupted attempt is not done again.

    At the end `cleaner` forgets the pairs, which takes most of the memory.
    """
    remaining = iter(pairs)
    tables: list[Path] = []
    while (done := journal.read(name := _shard(len(tables)))) is not None:
        deque(islice(remaining, done["read"] - cleaner.read), maxlen=0)  # passes over them
        cleaner.read = done["read"]
        restore_steps(cleaner.steps, done["steps"])
        with np.load(journal.path(name, "seen.npz")) as saved:
            for step, one in cleaner.seen.items():
                one.add(saved[step])
                one.take_new()
        tables.append(journal.path(name, "arrow"))
        progress("read and clean train", cleaner.read, None)
    with closing(map_in_order(cleaner.judge, batches(remaining))) as judged:
        while batch := next(judged, None):
            name = _shard(len(tables))
            tables.append(journal.path(name, "arrow"))
            with new_table(tables[-1]) as table:
                for one in chain([batch], islice(judged, SHARD_BATCHES - 1)):
                    write(table, cleaner.settle(one))
                    progress("read and clean train", cleaner.read, None)
            seen = {step: one.take_new() for step, one in cleaner.seen.items()}
            np.savez(journal.path(name, "seen.npz"), allow_pickle=False, **seen)
            steps = [asdict(step) for step in cleaner.steps]
            journal.write(name, {"read": cleaner.read, "steps": steps})
    cleaner.seen.clear()
    return tables


def _shard(number: int) -> str:
    return f"clean-{number:05d}"
