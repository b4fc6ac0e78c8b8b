"""The training split, or a part of it: cleaned into tables and encoded in shards, going on where it was interrupted.

A journal lists the shards that are done. Knows no tokenizer's training, and nothing of the other splits and parts.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from endeavour.data.augmentation import Augmenter
from endeavour.data.cleaning import HeldOut, LengthCleaner, Step, TextCleaner, restore_steps
from endeavour.data.corpus import RARE, TRAIN, Progress
from endeavour.data.dataset import ParallelDataset
from endeavour.data.encoding import encode_train
from endeavour.data.files import Pair
from endeavour.data.journal import Journal
from endeavour.data.tables import batches, count_rows, new_table, read_tables, write
from endeavour.data.tokenizer import Tokenizers
from endeavour.errors import UserError

SHARD_PAIRS = 250_000  # as read; about a minute's work, which is what an interruption loses


@dataclass(frozen=True)
class Part:
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
