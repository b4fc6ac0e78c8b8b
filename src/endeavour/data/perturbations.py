"""Altered copies of sentence pairs, as people type them: for training on them, and for testing on them.

A copy depends on its pair and a seed alone, so neither shards nor batches nor an interruption change it. Tags,
placeholders and addresses stay as they are. Knows no files, no tokenizer, and not of which pairs copies are made.

The practice: typing errors with neighbouring keys are from Belinkov and Bisk 2018, "Synthetic and Natural Noise Both
Break Neural Machine Translation"; copies in capitals on both sides from Bérard et al. 2019, "Naver Labs Europe's
Systems for the WMT19 Machine Translation Robustness Task"; scores of an altered test set beside the clean one from Niu
et al. 2020, "Evaluating Robustness to Input Perturbations for Neural Machine Translation".
"""

import random
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Literal, get_args

from endeavour.data.files import Pair
from endeavour.data.protection import SPAN
from endeavour.directions import Language

Perturbation = Literal[
    "upper_case", "title_case", "typos", "no_final_punctuation", "no_umlauts", "placeholders"
]
PERTURBATIONS: tuple[Perturbation, ...] = get_args(Perturbation)
GERMAN_ONLY: Perturbation = "no_umlauts"

TYPOS_PER_WORD = 0.2
# What is put before and after a word or a sentence; with nothing after it, it stands by itself.
_MARKUP = (
    ("<b>", "</b>"),
    ('<a href="https://example.org">', "</a>"),
    ("{name}", ""),
    ("%s", ""),
    ("%(count)d", ""),
    ("https://example.org/page", ""),
    ("mail@example.org", ""),
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_INITIAL = re.compile(r"(?<![\w'’])[^\W\d_]")
_ENDS = f"{string.whitespace}\u00a0.!?…"
_UMLAUT = re.compile("[äöüßÄÖÜẞ]")
_PLAIN = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ẞ": "SS"} | {"Ä": "Ae", "Ö": "Oe", "Ü": "Ue"}
_KEYBOARDS: dict[Language, tuple[str, ...]] = {
    "en": ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "de": ("qwertzuiopü", "asdfghjklöä", "yxcvbnm"),
}


def perturbed(pair: Pair, how: Perturbation, language: Language, draw: random.Random) -> Pair:
    """A (source, target) pair altered, or the same where there is nothing to alter.

    Args:
        language: of the source.
        draw: for `typos`; see `draw_for`.
    """
    source, target = pair
    match how:
        case "upper_case":
            return _outside_markup(str.upper, source), _outside_markup(str.upper, target)
        case "title_case":
            return _outside_markup(_title_case, source), target
        case "typos":
            return _with_typos(source, language, draw), target
        case "no_final_punctuation":
            bare = _without_end(source)
            return (source, target) if bare == source else (bare, _without_end(target))
        case "no_umlauts":
            return _outside_markup(_without_umlauts, unicodedata.normalize("NFC", source)), target
        case "placeholders":
            return _with_placeholders(source, target, draw)


def draw_for(pair: Pair, how: Perturbation, seed: int) -> random.Random:
    """The draws of one pair and perturbation: the same in every process and on every machine."""
    return random.Random(f"{seed} {how} {len(pair[0])} {pair[0]} {pair[1]}")


def copy_name(test_set: str, how: Perturbation) -> str:
    """What the altered copy of a test set is called: a name with a full stop, which those of test sets do not have."""
    return f"{test_set}.{how}"


def copy_of(name: str) -> tuple[str, Perturbation | None]:
    """The test set that `name` is a copy of, and how it is altered; None for a name that is no copy's."""
    for how in PERTURBATIONS:
        if name.endswith(f".{how}"):
            return name.removesuffix(f".{how}"), how
    return name, None


def _outside_markup(alter: Callable[[str], str], text: str) -> str:
    return "".join(part if kept else alter(part) for part, kept in _parts(text))


def _parts(text: str) -> list[tuple[str, bool]]:
    """`text` in pieces, and whether each is markup and the like, which stays as it is."""
    parts: list[tuple[str, bool]] = []
    end = 0
    for found in SPAN.finditer(text):
        parts += [(text[end : found.start()], False), (found[0], True)]
        end = found.end()
    return [*parts, (text[end:], False)]


def _with_placeholders(source: str, target: str, draw: random.Random) -> Pair:
    """Markup where both sides have the same place: at a word that they share, around all of it, or at an end."""
    if SPAN.search(source) or SPAN.search(target) or not (source.strip() and target.strip()):
        return source, target
    counts = [Counter(text.split()) for text in (source, target)]
    shared = [word for word in counts[0] if counts[0][word] == counts[1][word] == 1]
    before, after = draw.choice(_MARKUP)
    if after and shared and draw.random() < 0.5:
        word = draw.choice(shared)
        return _around(source, word, before, after), _around(target, word, before, after)
    if after:
        return f"{before}{source}{after}", f"{before}{target}{after}"
    if draw.random() < 0.5:
        return f"{before} {source}", f"{before} {target}"
    return _before_end(source, before), _before_end(target, before)


def _around(text: str, word: str, before: str, after: str) -> str:
    return " ".join(f"{before}{one}{after}" if one == word else one for one in text.split())


def _before_end(text: str, span: str) -> str:
    """`text` with `span` as its last word, before a final full stop or mark."""
    bare = text.rstrip(_ENDS)
    return f"{bare} {span}{text[len(bare) :]}"


def _title_case(text: str) -> str:
    return _INITIAL.sub(lambda found: found[0].upper(), text)


def _without_end(text: str) -> str:
    """Without final full stops, marks and spaces, unless nothing would be left."""
    return text.rstrip(_ENDS) or text if text.rstrip().endswith(tuple(".!?…")) else text


def _without_umlauts(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        letters = _PLAIN[found[0]]
        before, after = text[max(found.start() - 1, 0) : found.start()], text[found.end() : found.end() + 1]
        in_capitals = after.isupper() or (before.isupper() and not after.isalpha())
        return letters.upper() if found[0].isupper() and in_capitals else letters

    return _UMLAUT.sub(plain, text)


def _with_typos(text: str, language: Language, draw: random.Random) -> str:
    """About one word in five mistyped, and at least one of those with two letters or more."""
    pieces = _parts(text)
    parts = [part for part, _ in pieces]
    words = [
        (number, found.span())
        for number, (part, kept) in enumerate(pieces)
        if not kept
        for found in _WORD.finditer(part)
    ]
    chosen = [word for word in words if draw.random() < TYPOS_PER_WORD]
    if words and not chosen:
        chosen = [draw.choice(words)]
    for number, (start, end) in reversed(chosen):  # from the end, so that the places of the others stay
        part = parts[number]
        parts[number] = part[:start] + _mistyped(part[start:end], language, draw) + part[end:]
    return "".join(parts)


def _mistyped(word: str, language: Language, draw: random.Random) -> str:
    """`word`, of two letters or more, with one key wrong, too many, missing, or before its time."""
    place = draw.randrange(len(word))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    match draw.randrange(4):
        case 0 if beside := _neighbours(language).get(letter.lower()):
            wrong = draw.choice(beside)
            return before + (wrong.upper() if letter.isupper() else wrong) + after
        case 1 if after and after[0] != letter:
            return before + after[0] + letter + after[1:]
        case 2:
            return before + after
        case _:
            return before + letter + letter + after


@cache
def _neighbours(language: Language) -> dict[str, str]:
    """Letter → those whose keys touch its key: each row is half a key to the right of the one above."""
    rows = _KEYBOARDS[language]
    keys = {letter: (row, column) for row, line in enumerate(rows) for column, letter in enumerate(line)}
    return {
        letter: "".join(
            other
            for other, (below, there) in keys.items()
            if (below - row, there - column) in {(0, -1), (0, 1), (1, -1), (1, 0), (-1, 0), (-1, 1)}
        )
        for letter, (row, column) in keys.items()
    }
