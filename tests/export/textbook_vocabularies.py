"""Tokenizers learnt from some hundred sentences of the textbook, and these sentences."""

from collections.abc import Sequence

from endeavour.data.tokenizer import Tokenizer
from endeavour.data.tokenizer_training import TokenizerConfig, train_tokenizer
from textbook_sides import textbook_sides


def english() -> list[str]:
    return textbook_sides(600)[0]


def german() -> list[str]:
    return textbook_sides(600)[1]


def trained(
    lines: list[str],
    algorithm: str,
    size: int,
    coverage: float = 1.0,
    symbols: Sequence[str] = (),
    *,
    lowercase: bool = False,
) -> Tokenizer:
    return train_tokenizer(
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
