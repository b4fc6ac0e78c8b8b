"""What can be told of crawled text by its surface: markup, broken characters, repetition, sides that are copies.

Shares are between 0 and 1. Knows nothing of pairs that are kept or dropped.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, Self

_TAG = re.compile(r"</?[a-zA-Z!][^<>]*>|\[/?(?:url|img|b|i|quote)\b[^\[\]]*\]", re.I)
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{2,6});")
# Words that are addresses, names of files and variables, code, or only separate others; the last come in menus.
_MARKUP_WORD = re.compile(
    r"\S*(?:https?:|www\.|://|\w@\w+\.\w|[{}<>\\=|_^~]|\.(?:com|org|net|de|html?|php|jpe?g|png|gif|pdf)\b)\S*"
    r"|[»›•·/–—*#+-]+"
)
_SPOKEN = re.compile(r"^\s*[-–—] ")  # of subtitles
# UTF-8 that was read as Latin-1 or Windows-1252, and what was replaced because it was no UTF-8. "JOÃO" is Portuguese.
_BROKEN = re.compile("Ã(?![A-ZÀ-Þ])|Â[^\\w\\s]|â€|\ufffd")
_RUN = re.compile(r"(.)\1\1\1+")  # this way found in a sixth of the time of one for letters and signs alone
# Without any of these a text has no markup, no broken characters and no symbol that `agreement` compares.
_SIGN = re.compile(r"[<>{}\[\]&@\\=|_^~/:»›•·–—*#+\-ÃÂâ\ufffd%€$£¥°§©]")
_DOT = re.compile(r"\.\w")  # of an address or a file's name
_LATIN_WITHOUT_SIGN = bytes(code for code in range(256) if not _SIGN.match(chr(code)))


def _finder(character: str) -> Callable[[str], list[str]]:
    """Finds the runs of characters that a regular expression matches, in a third of its time where all are Latin-1."""
    runs = re.compile(f"{character}+")
    others_blank = bytes(code if runs.match(chr(code)) else ord(" ") for code in range(256))

    def find(text: str) -> list[str]:
        try:
            return text.encode("latin-1").translate(others_blank).decode("latin-1").split()
        except UnicodeEncodeError:
            return runs.findall(text)

    return find


letter_runs = _finder(r"[^\W\d_]")  # words without digits
_words = _finder(r"\w")


class Side(NamedTuple):
    """A side of a pair, in normal form and not empty, and its words, which several steps look at.

    Attributes:
        words: its runs of letters and digits, casefolded.
        letter_words: its runs of letters, casefolded.
        may_have_digits: False where `words` are all of letters, which is soon found.
        may_have_signs: False where there is no markup, broken character or symbol, which is, too.
    """

    text: str
    words: list[str]
    letter_words: list[str]
    may_have_digits: bool
    may_have_signs: bool

    @classmethod
    def of(cls, text: str) -> Self:
        folded = text.casefold()
        words = _words(folded)
        digits = not "".join(words).isalpha()
        return cls(text, words, letter_runs(folded) if digits else words, digits, _may_have_signs(text))


def _may_have_signs(text: str) -> bool:
    try:
        signs = text.encode("latin-1").translate(None, _LATIN_WITHOUT_SIGN)
    except UnicodeEncodeError:
        signs = _SIGN.search(text)
    return bool(signs) or "www" in text or _DOT.search(text) is not None


def markup_share(text: str) -> float:
    """The share of tags, entities, addresses, code and separators among the words of `text`."""
    text, tags = _TAG.subn(" ", text)
    text, entities = _ENTITY.subn(" ", text)
    words = _SPOKEN.sub("", text).split()
    marked = tags + entities + sum(_MARKUP_WORD.fullmatch(word) is not None for word in words)
    return marked / max(1, tags + entities + len(words))


def is_broken(text: str) -> bool:
    """Whether characters of `text` were lost or read in another encoding than they were written in."""
    return _BROKEN.search(text) is not None


def repetition(side: Side) -> float:
    """The share of a side that repeats itself.

    The larger one of two: the share of characters in runs of four or more of the same that is no digit, and that of
    the pairs of neighbouring words that occurred before.
    """
    repeated = 0
    if _RUN.search(side.text):  # a look that takes half as long
        repeated = sum(len(run[0]) for run in _RUN.finditer(side.text) if not run[1].isdecimal())
    bigrams = len(side.words) - 1
    again = 1 - len(set(pairwise(side.words))) / bigrams if bigrams > 1 else 0.0
    return max(repeated / len(side.text), again)


def overlap(english: Side, german: Side) -> float:
    """The share of the words of the English side that are on the German one too.

    Only words without capitals count: names need no translation. Where there are fewer than three, sides that are the
    same give 1 and others 0.
    """
    others = set(german.letter_words)
    if english.letter_words and others.isdisjoint(english.letter_words):
        return 0.0
    words = [word for word in letter_runs(english.text) if word.islower()]
    if len(words) < 3:
        return float(english.text.casefold() == german.text.casefold())
    return sum(word in others for word in words) / len(words)
