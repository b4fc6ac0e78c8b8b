"""A corpus cleaned, and scored by two models, one for each direction, part by part: what is done is not done again.

Knows models, cleaning and the folder of the scores; not which pairs are kept.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from endeavour.data.cleaning import CleaningConfig, HeldOut, LengthCleaner, TextCleaner, restore_steps
from endeavour.data.files import Pair, directed
from endeavour.data.journal import Journal
from endeavour.data.part import clean_pairs
from endeavour.data.scored_pairs import ScoredPair, join_scored, write_scored
from endeavour.data.tables import count_rows, read_tables
from endeavour.data.tokenizer import encode_pairs
from endeavour.errors import named_memory_error
from endeavour.progress import Report
from endeavour.runs.translators import Loaded, score_pairs

SCORES = "scores.tsv"


@dataclass(frozen=True)
class DualScorer:
    """Two models that score a pair, each given the other side.

    Attributes:
        forward: from English to German.
        backward: from German to English.
    """

    forward: Loaded
    backward: Loaded

    def score(self, pairs: Sequence[Pair]) -> list[ScoredPair]:
        """The pairs, English and German, with what they cost both models."""
        forward = _cross_entropies(self.forward, pairs)
        backward = _cross_entropies(self.backward, list(directed(pairs, "de-en")))
        return [ScoredPair(*row) for row in zip(pairs, forward, backward, strict=True)]


def write_scores(
    pairs: Iterable[Pair],
    cleaning: CleaningConfig,
    scorer: DualScorer,
    folder: Path,
    scratch: Path,
    progress: Report,
) -> dict[str, Any]:
    """Writes the scores of what cleaning leaves to `folder`/scores.tsv, in order.

    Args:
        pairs: English and German.
        scratch: a folder for intermediate files; what an interrupted call with the same arguments left there is used.

    Returns:
        As plain JSON how many pairs were `read`, and what each of the cleaning `steps` did.
    """
    journal = Journal(scratch)
    cleaner = TextCleaner(cleaning, HeldOut(), ("en", "de"))
    lengths = LengthCleaner(cleaning, tag=len(scorer.forward.tokenizers[0].tag))
    tables = clean_pairs(pairs, cleaner, journal, progress)
    rows = sum(count_rows(table) for table in tables)
    parts: list[Path] = []
    met = 0
    for number, batch in enumerate(batch for table in tables for batch in read_tables(table)):
        part = f"scores-{number:06d}"
        parts.append(journal.path(part, "tsv"))
        done = journal.read(part)
        if done is None:
            write_scored(parts[-1], scorer.score(list(_of_good_length(batch, scorer.forward, lengths))))
            journal.write(part, {"steps": [asdict(step) for step in lengths.steps]})
        else:
            restore_steps(lengths.steps, done["steps"])
        met += len(batch)
        progress("score", met, rows)
    join_scored(parts, folder / SCORES)
    return {"read": cleaner.read, "steps": [asdict(step) for step in (*cleaner.steps, *lengths.steps)]}


def _of_good_length(pairs: Sequence[Pair], model: Loaded, lengths: LengthCleaner) -> Iterator[Pair]:
    english, german = encode_pairs(model.tokenizers, pairs)
    for pair, source, target in zip(pairs, english, german, strict=True):
        if lengths.keep(pair, len(source), len(target)):
            yield pair


def _cross_entropies(loaded: Loaded, pairs: Sequence[Pair]) -> list[float]:
    """Of each target given its source, in nats a token, EOS included; NaN where one is too long for the model."""
    with named_memory_error("scoring", "lower cleaning.max_tokens"):
        scores = score_pairs(loaded, pairs)
    return [math.nan if values is None else -sum(values) / len(values) for values in scores]
