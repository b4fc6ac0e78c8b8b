"""How many sentences of a test set a training text has, which a model may know by heart.

Knows lines, and folders of prepared text; not whose they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from endeavour.data.known_sentences import pairs_with_sources, small_letters
from endeavour.data.normalization import normalize


@dataclass(frozen=True)
class Overlap:
    """Sentences of a test set that stand in a training text too, in normal form.

    Attributes:
        sources: sentences whose source is one there.
        pairs: of these, sentences that have their reference as translation there.
    """

    sources: int
    pairs: int


def measure_overlap(
    sources: Sequence[str], references: Sequence[str], folders: Sequence[Path], *, lowercase: bool = False
) -> Overlap:
    """How many of these sentences the training texts in `folders` have, together; `lowercase` ignores capitals."""
    columns = [[normalize(line) for line in lines] for lines in (sources, references)]
    if lowercase:
        columns = map(small_letters, columns)
    pairs = list(zip(*columns, strict=True))
    wanted = {source for source, _ in pairs}
    found = {pair for folder in folders for pair in pairs_with_sources(folder, wanted, lowercase=lowercase)}
    known = {source for source, _ in found}
    return Overlap(sum(source in known for source, _ in pairs), sum(pair in found for pair in pairs))
