"""Tokenizers learnt from some hundred sentences of the textbook, and these sentences."""

from collections.abc import Sequence
from itertools import islice

from endeavour.data.tokenizer import Tokenizer, TokenizerConfig
from endeavour.textbook import textbook_splits

ENGLISH, GERMAN = (list(side) for side in zip(*islice(textbook_splits(1, 600)["train"], 600), strict=True))


def trained(
    lines: list[str],
    algorithm: str,
    size: int,
    coverage: float = 1.0,
    symbols: Sequence[str] = (),
    *,
    lowercase: bool = False,
) -> Tokenizer:
    return Tokenizer.train(
        lines,
        TokenizerConfig(
            name="test",
            algorithm=algorithm,
            vocabulary_size=size,
            joint=True,
            lowercase=lowercase,
            character_coverage=coverage,
            max_sentences=1000,
            placeholders=0,
        ),
        symbols,
    )
