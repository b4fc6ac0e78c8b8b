"""Preparing a corpus from nothing, in a process of its own.

Imports no torch, so that the peak memory is that of `endeavour prepare`.
"""

import time
from pathlib import Path
from typing import Any

from endeavour.benchmark.process import in_fresh_process, peak_memory
from endeavour.data.corpus import RARE, TRAIN
from endeavour.data.preparing import prepare_data
from endeavour.data.recipe import DataRecipe


def measure_preparation(recipe: DataRecipe, folder: Path) -> dict[str, Any]:
    """Pairs a second over all splits, from raw text to ids on disk, and the peak memory in bytes.

    Args:
        folder: an empty data root, to be written to.
    """
    pairs, seconds, peak = in_fresh_process(_prepare, recipe, folder)
    return {
        "corpus": recipe.corpus.name,
        "tokenizer": recipe.tokenizer.name,
        "pairs": pairs,
        "seconds": seconds,
        "pairs_per_second": pairs / seconds,
        "peak_memory": peak,
    }


def _prepare(recipe: DataRecipe, folder: Path) -> tuple[int, float, int | None]:
    """Runs in a process of its own: pairs read (training before cleaning, the other splits), seconds, peak memory."""
    started = time.perf_counter()
    data = prepare_data(recipe, folder)
    seconds = time.perf_counter() - started
    read: int = data.report["read"]
    others = sum(counts["pairs"] for split, counts in data.splits.items() if split not in (TRAIN, RARE))
    return read + others, seconds, peak_memory()
