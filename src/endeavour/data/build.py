"""Fills a folder from sentence pairs: text tables, tokenizers, id arrays.

Streams batches, so memory is bounded by the batch (and by the tokenizer's sample, the validation and test sets, and
8 bytes a pair to find duplicates). The training split is processed in shards, which a journal lists once they are
done, so that an interrupted build continues where it stopped. Knows no config except those of cleaning and tokenizer,
and not whether the folder is new.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from endeavour.data.arrays import RaggedWriter
from endeavour.data.cleaning import CleaningConfig, HeldOut, LengthCleaner, Step, TextCleaner, restore_steps
from endeavour.data.corpus import TRAIN, Progress
from endeavour.data.files import Pair
from endeavour.data.journal import Journal
from endeavour.data.normalization import normalize
from endeavour.data.tables import BATCH, Table, TableWriter, batches, save_tables
from endeavour.data.tokenizer import Tokenizer, TokenizerConfig, Tokenizers
from endeavour.errors import UserError
from endeavour.special import EOS

SHARD_PAIRS = 250_000  # as read; about a minute's work, which is what an interruption loses
SIDES = ("source", "target")


def build(
    folder: Path,
    scratch: Path,
    splits: dict[str, Iterable[Pair]],
    *,
    cleaning: CleaningConfig,
    tokenizer: TokenizerConfig | Tokenizers,
    progress: Progress,
) -> tuple[dict[str, dict[str, int]], dict[str, Any]]:
    """Writes everything except the manifest and the reports into `folder`.

    Args:
        scratch: a folder for intermediate files, which the caller removes; what an interrupted build of the same
            splits and settings left there is used.
        splits: (source, target) pairs of each split, validation and test as they are to be scored.
        tokenizer: how to train tokenizers, or tokenizers that exist.

    Returns:
        The counts of each split, and what cleaning did to the training split: `read`, `kept`, `steps`.
    """
    journal = Journal(scratch)
    with _quiet():
        held_out = HeldOut()
        tables = {
            name: _read_held_out(name, pairs, folder, scratch, held_out, progress)
            for name, pairs in splits.items()
            if name != TRAIN
        }
        cleaner = TextCleaner(cleaning, held_out)
        clean = _clean_train(splits[TRAIN], cleaner, journal, progress)
        rows = sum(len(Table(path)) for path in clean)
        _require_pairs(rows, cleaner.read, cleaner.steps)
        if isinstance(tokenizer, TokenizerConfig):
            progress("train the tokenizer", 0, None)
            tokenizers = _train_tokenizers(clean, rows, tokenizer, journal)
        else:
            tokenizers = tokenizer
        for side, trained in zip(SIDES, tokenizers, strict=True):
            trained.save(folder / f"{side}.model")

        lengths = LengthCleaner(cleaning)
        encoded = _encode_train(clean, rows, tokenizers, lengths, journal, progress)
        counts = {TRAIN: _join(TRAIN, encoded, tokenizers, folder)}
        steps = [*cleaner.steps, *lengths.steps]
        _require_pairs(counts[TRAIN]["pairs"], cleaner.read, steps)
        for name, table in tables.items():
            total = len(Table(table))
            for done in _encode(table, scratch / name, tokenizers):
                progress(f"encode {name}", done, total)
            counts[name] = _join(name, [scratch / name], tokenizers, folder)
        save_tables([_text_of(prefix) for prefix in encoded], folder / "text" / TRAIN)
        for name, table in tables.items():
            save_tables([table], folder / "text" / name)
    return counts, {"read": cleaner.read, "kept": counts[TRAIN]["pairs"], "steps": steps}


def _read_held_out(
    name: str, pairs: Iterable[Pair], folder: Path, scratch: Path, held_out: HeldOut, progress: Progress
) -> Path:
    """Keeps the untouched lines beside the normal form, and every row. Returns the table of the latter."""
    path = scratch / f"{name}.arrow"
    with ExitStack() as stack:
        files = [
            stack.enter_context((folder / f"{name}.{side}.txt").open("w", encoding="utf-8", newline=""))
            for side in SIDES
        ]
        table = stack.enter_context(TableWriter(path))
        for batch in batches(pairs, BATCH):
            for row, pair in enumerate(batch, start=table.rows + 1):
                for file, text in zip(files, pair, strict=True):
                    if "\n" in text:
                        raise UserError(
                            f"split {name}, pair {row}: a line break inside {text[:60]!r}; each "
                            "sentence of validation and test must be one line"
                        )
                    file.write(text + "\n")
            normal = [(normalize(source), normalize(target)) for source, target in batch]
            held_out.add(normal)
            table.append(normal)
            progress(f"read {name}", table.rows, None)
    if table.rows == 0:
        raise UserError(f"the split {name} is empty; check corpus.splits.{name}")
    return path


def _clean_train(
    pairs: Iterable[Pair], cleaner: TextCleaner, journal: Journal, progress: Progress
) -> list[Path]:
    """The tables of clean pairs, a shard each."""
    remaining = iter(pairs)
    tables: list[Path] = []
    finished = False
    while not finished:
        part = f"clean-{len(tables):05d}"
        tables.append(journal.path(part, "arrow"))
        seen = journal.path(part, "seen.npy")
        done = journal.read(part)
        if done is None:
            before = cleaner.read
            with TableWriter(tables[-1]) as table:
                for batch in batches(islice(remaining, SHARD_PAIRS), BATCH):
                    table.append(cleaner.clean(batch))
                    progress("read and clean train", cleaner.read, None)
            finished = cleaner.read - before < SHARD_PAIRS
            np.save(seen, cleaner.seen.hashes)
            steps = [asdict(step) for step in cleaner.steps]
            journal.write(part, {"read": cleaner.read, "finished": finished, "steps": steps})
            if len(tables) > 1:  # a later part knows all that an earlier one knew
                journal.path(f"clean-{len(tables) - 2:05d}", "seen.npy").unlink(missing_ok=True)
        else:
            for _ in islice(remaining, done["read"] - cleaner.read):
                pass
            cleaner.read, finished = done["read"], done["finished"]
            restore_steps(cleaner.steps, done["steps"])
            if seen.is_file():  # that of the last part that was done
                cleaner.seen.hashes = np.load(seen)
            progress("read and clean train", cleaner.read, None)
    return tables


def _require_pairs(kept: int, read: int, steps: list[Step]) -> None:
    if read == 0:
        raise UserError(f"the split {TRAIN} is empty; check corpus.splits.{TRAIN}")
    if kept == 0:
        dropped = ", ".join(f"{step.name} {step.dropped}" for step in steps if step.dropped)
        raise UserError(
            f"cleaning dropped all {read} training pairs ({dropped}); check the settings under cleaning"
        )


def _train_tokenizers(
    tables: Sequence[Path], rows: int, config: TokenizerConfig, journal: Journal
) -> Tokenizers:
    """The source's and the target's tokenizer, the same one twice if joint."""
    paths = [journal.path("tokenizers", f"{side}.model") for side in SIDES]
    if journal.read("tokenizers") is None:
        stride = -(-rows // config.max_sentences)

        def sample() -> Iterator[Pair]:
            every = (pair for table in tables for batch in Table(table) for pair in batch)
            return islice(every, 0, None, stride)

        if config.joint:
            joint = Tokenizer.train((text for pair in sample() for text in pair), config)
            trained = joint, joint
        else:
            trained = (
                Tokenizer.train((source for source, _ in sample()), config),
                Tokenizer.train((target for _, target in sample()), config),
            )
        for path, one in zip(paths, trained, strict=True):
            one.save(path)
        journal.write("tokenizers", {})
    return Tokenizer.load(paths[0]), Tokenizer.load(paths[1])


def _encode_train(
    tables: Sequence[Path],
    rows: int,
    tokenizers: Tokenizers,
    lengths: LengthCleaner,
    journal: Journal,
    progress: Progress,
) -> list[Path]:
    """Encodes shard by shard what `lengths` keeps; returns the prefixes of the shards' files."""
    prefixes: list[Path] = []
    met = 0
    for number, table in enumerate(tables):
        part = f"encoded-{number:05d}"
        prefixes.append(journal.folder / part)
        done = journal.read(part)
        if done is None:
            for done_pairs in _encode(table, prefixes[-1], tokenizers, lengths):
                progress(f"encode {TRAIN}", met + done_pairs, rows)
            journal.write(part, {"steps": [asdict(step) for step in lengths.steps]})
        else:
            restore_steps(lengths.steps, done["steps"])
        met += len(Table(table))
        progress(f"encode {TRAIN}", met, rows)
    return prefixes


def _encode(
    table: Path,
    prefix: Path,
    tokenizers: Tokenizers,
    lengths: LengthCleaner | None = None,
) -> Iterator[int]:
    """Writes the ids of a table as ragged arrays; with `lengths`, of the pairs it keeps, and their text too.

    Yields the number of pairs met so far.
    """
    with ExitStack() as stack:
        writers = _writers(prefix, tokenizers, stack)
        kept = None if lengths is None else stack.enter_context(TableWriter(_text_of(prefix)))
        met = 0
        for pairs in Table(table):
            rows = list(
                zip(
                    pairs,
                    tokenizers[0].encode([source for source, _ in pairs]),
                    tokenizers[1].encode([target for _, target in pairs]),
                    strict=True,
                )
            )
            if lengths is not None and kept is not None:
                rows = [row for row in rows if lengths.keep(row[0], len(row[1]), len(row[2]))]
                kept.append([pair for pair, _, _ in rows])
            writers[0].append([ids for _, ids, _ in rows], end=EOS)
            writers[1].append([ids for _, _, ids in rows], end=EOS)
            met += len(pairs)
            yield met


def _join(name: str, prefixes: Sequence[Path], tokenizers: Tokenizers, folder: Path) -> dict[str, int]:
    """Joins the shards of a split to its arrays in `folder`, and counts it."""
    with ExitStack() as stack:
        writers = _writers(folder / name, tokenizers, stack)
        for prefix in prefixes:
            for side, writer in zip(SIDES, writers, strict=True):
                writer.extend(prefix.with_name(f"{prefix.name}.{side}"))
    return {
        "pairs": writers[0].rows,
        "source_tokens": writers[0].total,
        "target_tokens": writers[1].total,
    }


def _writers(prefix: Path, tokenizers: Tokenizers, stack: ExitStack) -> list[RaggedWriter]:
    return [
        stack.enter_context(
            RaggedWriter(prefix.with_name(f"{prefix.name}.{side}"), vocabulary_size=tokenizer.vocabulary_size)
        )
        for side, tokenizer in zip(SIDES, tokenizers, strict=True)
    ]


def _text_of(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}.arrow")


@contextmanager
def _quiet() -> Generator[None]:
    """Without the bars of `datasets`: the caller shows the progress."""
    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()
