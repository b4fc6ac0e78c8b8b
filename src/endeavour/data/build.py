"""Fills a prepared folder from sentence pairs: text tables, vocabularies, id arrays, the report.

Streams batches, so memory is bounded by the batch (and by the tokenizer's sample, the validation and test
sets, and 8 bytes a pair to find duplicates). Knows no config but its own parts', and not whether the folder
is new.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import datasets
from datasets.arrow_writer import ArrowWriter

from endeavour.data.arrays import RaggedWriter
from endeavour.data.cleaning import CleaningConfig, HeldOut, LengthFilter, Step, TextCleaner
from endeavour.data.corpus import TRAIN, Progress
from endeavour.data.files import Pair
from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizer, TokenizerConfig
from endeavour.errors import UserError
from endeavour.special import EOS

_BATCH = 10_000
_FEATURES = datasets.Features({"source": datasets.Value("string"), "target": datasets.Value("string")})


class _TextTable:
    """An Arrow file of text pairs: written in batches, then read back memory-mapped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = ArrowWriter(path=str(path), features=_FEATURES)
        self.rows = 0

    def append(self, pairs: Sequence[Pair]) -> None:
        if pairs:
            self._writer.write_batch(
                {"source": [source for source, _ in pairs], "target": [target for _, target in pairs]}
            )
            self.rows += len(pairs)

    def batches(self) -> Iterator[list[Pair]]:
        for batch in datasets.Dataset.from_file(str(self._path)).iter(_BATCH):
            columns = cast("dict[str, list[str]]", batch)
            yield list(zip(columns["source"], columns["target"], strict=True))

    def save(self, folder: Path) -> None:
        """Writes the table the way `datasets.load_from_disk` reads it."""
        datasets.Dataset.from_file(str(self._path)).save_to_disk(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.finalize()


def build(
    folder: Path,
    scratch: Path,
    splits: dict[str, Iterable[Pair]],
    *,
    cleaning: CleaningConfig,
    tokenizer: TokenizerConfig,
    progress: Progress,
) -> tuple[dict[str, dict[str, int]], dict[str, Any]]:
    """Writes everything but the manifest and the reports into `folder`.

    Args:
        scratch: an empty folder for intermediate tables, which the caller removes.
        splits: (source, target) pairs of each split, validation and test as they are to be scored.

    Returns:
        The counts of each split, and the account of the training split: `read`, `kept`, `steps`.
    """
    with _quiet():
        held_out = HeldOut()
        tables = {
            name: _read_held_out(name, pairs, folder, scratch, held_out, progress)
            for name, pairs in splits.items()
            if name != TRAIN
        }
        cleaner = TextCleaner(cleaning, held_out)
        clean = _read_train(splits[TRAIN], cleaner, scratch, progress)
        _require_pairs(clean.rows, cleaner.read, cleaner.steps)
        progress("train the tokenizer", 0, None)
        tokenizers = _train_tokenizers(clean, tokenizer)
        for side, trained in zip(("source", "target"), tokenizers, strict=True):
            trained.save(folder / f"{side}.model")

        lengths = LengthFilter(cleaning)
        counts: dict[str, dict[str, int]] = {}
        with _TextTable(scratch / "train.arrow") as kept:
            counts[TRAIN] = _encode(TRAIN, clean, tokenizers, folder, progress, lengths=lengths, kept=kept)
        steps = [*cleaner.steps, *lengths.steps]
        _require_pairs(kept.rows, cleaner.read, steps)
        for name, table in tables.items():
            counts[name] = _encode(name, table, tokenizers, folder, progress)
        for name, table in {TRAIN: kept, **tables}.items():
            table.save(folder / "text" / name)
    return counts, {"read": cleaner.read, "kept": kept.rows, "steps": steps}


def _read_held_out(
    name: str, pairs: Iterable[Pair], folder: Path, scratch: Path, held_out: HeldOut, progress: Progress
) -> _TextTable:
    """Keeps the untouched lines beside the normal form, and every row."""
    with ExitStack() as stack:
        files = [
            stack.enter_context((folder / f"{name}.{side}.txt").open("w", encoding="utf-8", newline=""))
            for side in ("source", "target")
        ]
        table = stack.enter_context(_TextTable(scratch / f"{name}.arrow"))
        for batch in _batches(pairs):
            for row, pair in enumerate(batch, start=table.rows + 1):
                for file, text in zip(files, pair, strict=True):
                    if "\n" in text:
                        raise UserError(
                            f"split {name}, pair {row}: a line break inside {text[:60]!r}; references "
                            "are lines and never altered, so put each sentence on one line"
                        )
                    file.write(text + "\n")
            normal = [(normalize(source), normalize(target)) for source, target in batch]
            held_out.add(normal)
            table.append(normal)
            progress(f"read {name}", table.rows, None)
    if table.rows == 0:
        raise UserError(f"the split {name} is empty; check corpus.splits.{name}")
    return table


def _read_train(pairs: Iterable[Pair], cleaner: TextCleaner, scratch: Path, progress: Progress) -> _TextTable:
    with _TextTable(scratch / "train.clean.arrow") as table:
        for batch in _batches(pairs):
            table.append(cleaner.clean(batch))
            progress("read and clean train", cleaner.read, None)
    return table


def _require_pairs(kept: int, read: int, steps: list[Step]) -> None:
    if read == 0:
        raise UserError(f"the split {TRAIN} is empty; check corpus.splits.{TRAIN}")
    if kept == 0:
        dropped = ", ".join(f"{step.name} {step.dropped}" for step in steps if step.dropped)
        raise UserError(
            f"cleaning dropped all {read} training pairs ({dropped}); check the settings under cleaning"
        )


def _train_tokenizers(table: _TextTable, config: TokenizerConfig) -> tuple[Tokenizer, Tokenizer]:
    """The source's and the target's tokenizer, the same one twice if joint."""
    stride = -(-table.rows // config.max_sentences)

    def sample() -> Iterator[Pair]:
        return islice((pair for batch in table.batches() for pair in batch), 0, None, stride)

    if config.joint:
        joint = Tokenizer.train((text for pair in sample() for text in pair), config)
        return joint, joint
    return (
        Tokenizer.train((source for source, _ in sample()), config),
        Tokenizer.train((target for _, target in sample()), config),
    )


def _encode(
    name: str,
    table: _TextTable,
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: Path,
    progress: Progress,
    *,
    lengths: LengthFilter | None = None,
    kept: _TextTable | None = None,
) -> dict[str, int]:
    """Appends the ids of a table to the split's arrays; with `lengths`, only of the pairs it keeps."""
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                RaggedWriter(folder / f"{name}.{side}", vocabulary_size=tokenizer.vocabulary_size)
            )
            for side, tokenizer in zip(("source", "target"), tokenizers, strict=True)
        ]
        done = 0
        for pairs in table.batches():
            rows = list(
                zip(
                    pairs,
                    tokenizers[0].encode([source for source, _ in pairs]),
                    tokenizers[1].encode([target for _, target in pairs]),
                    strict=True,
                )
            )
            if lengths is not None:
                rows = [row for row in rows if lengths.keep(row[0], len(row[1]), len(row[2]))]
            if kept is not None:
                kept.append([pair for pair, _, _ in rows])
            writers[0].append([ids for _, ids, _ in rows], end=EOS)
            writers[1].append([ids for _, _, ids in rows], end=EOS)
            done += len(pairs)
            progress(f"encode {name}", done, table.rows)
    return {
        "pairs": writers[0].rows,
        "source_tokens": writers[0].total,
        "target_tokens": writers[1].total,
    }


def _batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    iterator = iter(pairs)
    while batch := list(islice(iterator, _BATCH)):
        yield batch


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
