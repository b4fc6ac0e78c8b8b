"""Sentences of a longer text, and the spaces between them. Knows one line of text and its language.

sentencex knows the abbreviations of each language. It is not sure of numbers: "am 3. Mai", "1. Open the box." What it
cuts there is joined again, because two sentences in one do a translation less harm than half a one.
"""

import re
from collections.abc import Generator
from itertools import pairwise

import sentencex

# Ends in an ordinal, a day or a number in a list; a year may end a sentence.
_NUMBER = re.compile(r"(?<![^\s.])\d{1,2}\.\s+$")
# Spaces beyond ASCII, of which sentencex may panic, and halves of characters, which it does not take.
_UNREADABLE = re.compile(r"(?![\x00-\x7f])\s|[\ud800-\udfff]")
# Characters that it reads at a time: for opening marks without a closing one it takes time with the square of them.
_AT_ONCE = 4_000
_QUOTES = {"en": ("“", "”"), "de": ("„", "“")}


def split_sentences(line: str, language: str) -> list[tuple[str, str]]:
    """(sentence, the whitespace after it) for each sentence; together they are the line again.

    Args:
        language: "en" or "de".
    """
    starts, end = [0], 0
    last = None  # where the last piece of the sentence begins that is more than spaces
    for piece in _pieces(_UNREADABLE.sub(" ", line), language):
        # Without a space between them they are no sentences: "example.com".
        if last is not None and line[end - 1].isspace() and not _NUMBER.search(line, last, end):
            starts.append(end)
            last = None
        if not piece.isspace():
            last = end
        end += len(piece)
    sentences = [line[start:stop] for start, stop in pairwise([*starts, end])]
    split = [(sentence.rstrip(), sentence[len(sentence.rstrip()) :]) for sentence in sentences]
    if len(split) > 1 and not split[-1][0]:  # only spaces
        (text, space), (_, rest) = split[-2:]
        split[-2:] = [(text, space + rest)]
    return split


def _pieces(line: str, language: str) -> Generator[str]:
    """What sentencex finds. What is longer than it reads at a time, a piece or a quotation, is cut."""
    start = 0
    while start < len(line):
        found: list[str] = sentencex.segment(language, line[start : start + _AT_ONCE])  # pyright: ignore[reportAttributeAccessIssue]
        if start + _AT_ONCE < len(line):  # the last may go on beyond what was read
            found = _outside_quotations(found[:-1], language) or found[:-1] or found
        yield from found
        start += sum(map(len, found))


def _outside_quotations(pieces: list[str], language: str) -> list[str]:
    """Those up to the last one after which no quotation is open."""
    opening, closing = _QUOTES[language]
    straight = curly = closed = 0
    for number, piece in enumerate(pieces, start=1):
        straight += piece.count('"')
        curly += piece.count(opening) - piece.count(closing)
        if not straight % 2 and not curly:
            closed = number
    return pieces[:closed]
