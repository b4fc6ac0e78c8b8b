"""Decoding, ours and that of others, measured in turn on the same sentences with translations of a fixed length.

The time a search takes depends on the length of its output, hardly on what it says; see `decoders` for how every
engine comes to the same length. Knows ids, not text.
"""

import statistics
import tempfile
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from endeavour.benchmark.config import BenchConfig
from endeavour.benchmark.decoders import Decoder, make_decoder, never_ending_model
from endeavour.benchmark.measure import first_tries, rates, timed
from endeavour.benchmark.task import Task


def measure_decoding(
    task: Task, names: Sequence[str], *, notes: list[str], done: Callable[[], None]
) -> list[dict[str, Any]]:
    """One row for each of `decoding_cases`: `bench.repeats` turns of all. `done` is called after each turn of each row.

    Before all turns each contender decodes once; a reference that fails there has no rows, and a line in `notes`.
    """
    settings = task.settings
    sources = _sources(task)
    model = never_ending_model(task)
    with tempfile.TemporaryDirectory(prefix="endeavour-bench-") as folder:

        def attempt(name: str) -> Decoder:
            decoder = make_decoder(model, task, name, Path(folder))
            for _, beam, batch in decoding_cases([name], settings):
                decoder.decode(sources[:batch], beam)  # unmeasured: first calls take longer
            return decoder

        decoders = first_tries(names, attempt, notes)
        cases = decoding_cases(list(decoders), settings)
        seconds: dict[tuple[str, int, int], list[list[float]]] = {case: [] for case in cases}
        for _ in range(settings.repeats):
            for name, beam, batch in cases:
                parts = _parts(task, sources, name, batch)
                seconds[name, beam, batch].append(
                    [_decode(decoders[name], part, beam, task) for part in parts]
                )
                done()
    return [_row(task, name, beam, batch, turns) for (name, beam, batch), turns in seconds.items()]


def decoding_cases(names: Sequence[str], settings: BenchConfig) -> list[tuple[str, int, int]]:
    """Contender, beam and batch of each row: every one of `decoding_batches`, and one sentence.

    What makes its own batches has one row for all of them, under the first.
    """
    batches = settings.decoding_batches
    return [
        (name, beam, batch)
        for beam in settings.beam_sizes
        for batch in (*batches, 1)
        for name in names
        if batch in (batches[0], 1) or not _makes_batches(name)
    ]


def _makes_batches(name: str) -> bool:
    """Whether a contender makes its own batches, and does not get one at a time."""
    return name.startswith("ctranslate2")


def _sources(task: Task) -> list[list[int]]:
    """Sources evenly spread over the training split, the longest first, as `translate` batches them."""
    dataset = task.dataset()
    rows = np.linspace(0, len(dataset) - 1, task.settings.decoding_sentences).round().astype(int)
    return sorted((dataset.source[row].tolist() for row in rows), key=len, reverse=True)


def _parts(task: Task, sources: list[list[int]], name: str, batch: int) -> list[list[list[int]]]:
    """What is decoded at a time."""
    if batch == 1:
        count = task.settings.latency_sentences
        step = max(1, len(sources) // count)
        return [[source] for source in sources[::step][:count]]
    if _makes_batches(name):
        return [sources]
    return [sources[start : start + batch] for start in range(0, len(sources), batch)]


def _decode(decoder: Decoder, sources: list[list[int]], beam_size: int, task: Task) -> float:
    """Seconds; asserts that what was decoded is what is counted."""
    lengths: list[int] = []
    tokens = task.settings.decoding_tokens
    seconds = timed(lambda: lengths.extend(decoder.decode(sources, beam_size)), task.device)
    assert lengths == [tokens] * len(sources), f"{lengths} tokens instead of {tokens}"
    return seconds


def _row(task: Task, name: str, beam: int, batch: int, turns: list[list[float]]) -> dict[str, Any]:
    tokens = task.settings.decoding_tokens
    sentences = len(turns[0]) if batch == 1 else task.settings.decoding_sentences
    seconds = [sum(turn) for turn in turns]
    toolkit, _, precision = name.partition(" ")
    return {
        "size": task.model.name,
        "toolkit": toolkit,
        "precision": precision,
        "beam_size": beam,
        "batch": None if _makes_batches(name) and batch > 1 else batch,  # null: as the engine likes
        "sentences": sentences,
        "tokens_per_sentence": tokens,
        "seconds": seconds,
        "sentences_per_second": rates(sentences, seconds),
        "tokens_per_second": rates(sentences * tokens, seconds),
        # Of one sentence alone, half of all are faster; null where sentences are decoded together.
        "latency_milliseconds": 1000 * statistics.median(chain.from_iterable(turns)) if batch == 1 else None,
    }
