"""Tokenizers learnt from some hundred sentences of the textbook, and these sentences."""

from collections.abc import Sequence
from functools import cache
from itertools import islice

from endeavour.data.tokenizer import Tokenizer, TokenizerConfig
from endeavour.textbook import textbook_splits


@cache
def sides() -> tuple[list[str], list[str]]:
    english, german = zip(*islice(textbook_splits(1, 600)["train"], 600), strict=True)
    return list(english), list(german)


def english() -> list[str]:
    return sides()[0]


def german() -> list[str]:
    return sides()[1]


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
