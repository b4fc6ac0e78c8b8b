"""Text tables to id arrays, shard by shard, with the altered copies of training pairs behind their pairs.

Knows tokenizers and limits on length; not where the text comes from, and not what else a prepared folder holds.
"""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from endeavour.data.augmentation import Augmenter, Ids
from endeavour.data.cleaning import LengthCleaner, restore_steps
from endeavour.data.corpus import TRAIN, Progress
from endeavour.data.dataset import ParallelDataset, save_rows
from endeavour.data.files import Pair
from endeavour.data.journal import Journal
from endeavour.data.tables import count_rows, new_table, read_tables, write
from endeavour.data.tokenizer import Tokenizers, encode_pairs

SIDES = ("source", "target")


def encode_train(
    tables: Sequence[Path],
    tokenizers: Tokenizers,
    lengths: LengthCleaner,
    augmenter: Augmenter,
    journal: Journal,
    progress: Progress,
) -> list[Path]:
    """Encodes shard by shard what `lengths` keeps; returns the prefixes of the shards' files."""
    prefixes: list[Path] = []
    met, rows = 0, sum(count_rows(table) for table in tables)
    for number, table in enumerate(tables):
        part = f"encoded-{number:05d}"
        prefixes.append(journal.folder / part)
        done = journal.read(part)
        if done is None:
            for done_pairs in encode_split(table, prefixes[-1], tokenizers, lengths, augmenter):
                progress(f"encode {TRAIN}", met + done_pairs, rows)
            noted = {"steps": lengths.steps, "copies": augmenter.steps}
            journal.write(part, {name: [asdict(step) for step in steps] for name, steps in noted.items()})
        else:
            restore_steps(lengths.steps, done["steps"])
            restore_steps(augmenter.steps, done["copies"])
        met += count_rows(table)
        progress(f"encode {TRAIN}", met, rows)
    return prefixes


def encode_split(
    table: Path,
    prefix: Path,
    tokenizers: Tokenizers,
    lengths: LengthCleaner | None = None,
    augmenter: Augmenter | None = None,
) -> Iterator[int]:
    """Saves the ids of a table; with `lengths`, those of the pairs it keeps, and their text too.

    With `augmenter` the ids of copies follow those of their pair.

    Yields the number of pairs met so far.
    """
    # Each row as an array, which takes a sixth of the memory of a list.
    ids: tuple[list[array[int]], list[array[int]]] = ([], [])
    met = 0
    tag = len(tokenizers[0].tag)  # which no limit is meant for
    with nullcontext() if lengths is None else new_table(Path(f"{prefix}.arrow")) as text:
        for pairs in read_tables(table):
            sources, targets = encode_pairs(tokenizers, pairs, training=lengths is not None)
            kept: list[tuple[Pair, Ids]] = [
                (pair, (source, target))
                for pair, source, target in zip(pairs, sources, targets, strict=True)
                if lengths is None or lengths.keep(pair, len(source) - tag, len(target))
            ]
            genuine = [pair for pair, _ in kept]
            copies: dict[int, list[Ids]] = {}
            if augmenter is not None:
                copies = augmenter.encoded_copies(genuine, tokenizers)
            for number, (_, own) in enumerate(kept):
                for source, target in (own, *copies.get(number, [])):
                    ids[0].append(array("I", source))
                    ids[1].append(array("I", target))
            if text is not None:
                write(text, genuine)
            met += len(pairs)
            yield met
    for side, rows, tokenizer in zip(SIDES, ids, tokenizers, strict=True):
        save_rows(Path(f"{prefix}.{side}"), rows, vocabulary_size=tokenizer.vocabulary_size)


def count_tokens(folder: Path, split: str) -> dict[str, int]:
    data = ParallelDataset.open(folder, split)
    return {
        "pairs": len(data),
        "source_tokens": int(data.source.lengths.sum()),
        "target_tokens": int(data.target.lengths.sum()),
    }
