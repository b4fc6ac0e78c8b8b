"""Millions of sentence pairs: how long preparing them takes, how soon training begins, and in how much memory.

The pairs are two textbook sentences a line, so that they are as long as those of news, and never run out.
Imports torch only in the process that measures training.
"""

import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from endeavour.benchmark.preparation import measure_preparation
from endeavour.benchmark.process import in_fresh_process, peak_memory
from endeavour.data.cleaning import CleaningConfig
from endeavour.data.corpus import CorpusConfig
from endeavour.data.files import Pair
from endeavour.data.recipe import DataRecipe
from endeavour.data.tokenizer_training import TokenizerConfig
from endeavour.textbook import textbook_splits

SENTENCES = 50_000  # that lines are made of: 2.5 billion different ones
BLOCK = 10_000


def many_pairs(count: int, seed: int) -> Iterator[Pair]:
    """`count` English-German pairs of two textbook sentences each, drawn with replacement."""
    sentences = list(textbook_splits(seed=seed, train_pairs=SENTENCES)["train"])
    random = np.random.default_rng(seed)
    for start in range(0, count, BLOCK):
        for first, second in random.integers(SENTENCES, size=(min(BLOCK, count - start), 2)).tolist():
            (english, german), (more_english, more_german) = sentences[first], sentences[second]
            yield f"{english} {more_english}", f"{german} {more_german}"


def write_corpus(folder: Path, count: int, seed: int) -> CorpusConfig:
    """Writes `count` training pairs as two aligned files, and the corpus of `corpus=files` that reads them."""
    splits = textbook_splits(seed=seed, train_pairs=0)
    splits["train"] = many_pairs(count, seed)
    for name in ("train", "validation"):
        with (
            (folder / f"{name}.en").open("w", encoding="utf-8") as english,
            (folder / f"{name}.de").open("w", encoding="utf-8") as german,
        ):
            while block := list(islice(splits[name], BLOCK)):
                english.writelines(f"{source}\n" for source, _ in block)
                german.writelines(f"{target}\n" for _, target in block)
    return CorpusConfig(
        name="scale",
        kind="files",
        path=str(folder),
        repository=None,
        revision=None,
        splits={name: [f"{name}.en", f"{name}.de"] for name in ("train", "validation")},
        parts={},
        tags=False,
        tag=None,
        held_out_rare=None,
        path_files=None,
        english_column=None,
        german_column=None,
        train_pairs=None,
        seed=None,
    )


def measure_scale(
    count: int, cleaning: CleaningConfig, tokenizer: TokenizerConfig, *, tokens_per_batch: int, seed: int
) -> dict[str, Any]:
    """Prepares `count` pairs from files on disk, and opens them for training.

    Returns:
        The row of `measure_preparation`; `training_start_seconds` from opening the data to the first batch;
        `training_start_memory` in bytes, what that added to the process; None where the system does not tell.
    """
    with tempfile.TemporaryDirectory(prefix="endeavour-bench-") as name:
        raw, prepared = Path(name) / "raw", Path(name) / "prepared"
        raw.mkdir()
        corpus = write_corpus(raw, count, seed)
        recipe = DataRecipe(corpus=corpus, cleaning=cleaning, tokenizer=tokenizer, direction="en-de")
        row = measure_preparation(recipe, prepared)
        seconds, memory = in_fresh_process(first_batch, prepared, tokens_per_batch, seed)
    return row | {"training_start_seconds": seconds, "training_start_memory": memory}


def first_batch(root: Path, tokens_per_batch: int, seed: int) -> tuple[float, int | None]:
    """From the only prepared folder below `root` to the first batch: seconds, and bytes that the process grew by."""
    from endeavour.data.dataset import ParallelDataset
    from endeavour.data.prepared import PreparedData
    from endeavour.training.updates import updates

    before, started = peak_memory(), time.perf_counter()
    (folder,) = (path for path in (root / "prepared").iterdir() if path.is_dir())
    dataset = ParallelDataset.open(PreparedData.open(folder).folder, "train")
    next(updates(dataset, tokens_per_batch=tokens_per_batch, accumulate=1, seed=seed, epoch=0, position=0))
    seconds, after = time.perf_counter() - started, peak_memory()
    return seconds, None if before is None or after is None else after - before
