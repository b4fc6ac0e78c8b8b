"""Sentences of a longer text, and the spaces between them. Knows one line of text and its language.

sentencex knows the abbreviations of each language. It is not sure of numbers: "am 3. Mai", "1. Open the box." What it
cuts there is joined again, because two sentences in one do a translation less harm than half a one.
"""

import re

import sentencex

# Ends in an ordinal, a day or a number in a list; a year may end a sentence.
_NUMBER = re.compile(r"(?:^|[\s.])\d{1,2}\.\s+$")


def split_sentences(line: str, language: str) -> list[tuple[str, str]]:
    """(sentence, the whitespace after it) for each sentence; together they are the line again.

    Args:
        language: "en" or "de".
    """
    sentences: list[str] = []
    for piece in sentencex.segment(language, line):  # pyright: ignore[reportAttributeAccessIssue]
        before = sentences[-1] if sentences else ""
        # Without a space between them they are no sentences: "example.com".
        if sentences and (not before[-1].isspace() or before.isspace() or _ends_in_number(before)):
            sentences[-1] += piece
        else:
            sentences.append(piece)
    split = [(sentence.rstrip(), sentence[len(sentence.rstrip()) :]) for sentence in sentences]
    if len(split) > 1 and not split[-1][0]:  # only spaces
        (text, space), (_, rest) = split[-2:]
        split[-2:] = [(text, space + rest)]
    return split


def _ends_in_number(sentence: str) -> bool:
    # Looked for at the end only: a line of 30,000 numbers, joined again one by one, took more than a minute.
    return _NUMBER.search(sentence, max(0, len(sentence.rstrip()) - 4)) is not None
