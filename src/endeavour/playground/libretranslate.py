"""LibreTranslate's interface, which many programs speak: what its requests mean here, and its answers.

https://docs.libretranslate.com. Knows texts and one direction; not how they are translated.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from endeavour.decoding.sentences import split_sentences
from endeavour.decoding.translator import Translation, best_first, join_parts
from endeavour.directions import NAMES, Direction, languages_of
from endeavour.errors import UserError
from endeavour.playground.limits import Limits
from endeavour.playground.schemas import TranslateRequest

Line = list[tuple[str, str]]  # its sentences, and the space after each

# A sentence of more characters is translated in parts, as the worker may turn to others between two of them only.
LONGEST = 2_000
# As much as possible up to the end, to that of a sentence, to that of a word, or else in its midst.
_ENDS = (r"\Z", r"(?<=[.!?])(?!\S)", r"(?!\S)", "")
_PART = re.compile(rf"\s*({'|'.join(f'.{{1,{LONGEST}}}{end}' for end in _ENDS)})", re.DOTALL)


def languages(direction: Direction) -> list[dict[str, Any]]:
    """All there are, and into what each is translated."""
    source, target = languages_of(direction)
    return [
        {"code": code, "name": name, "targets": [target] if code == source else []}
        for code, name in NAMES.items()
    ]


def check_translate(asked: TranslateRequest, direction: Direction, settings: Limits) -> None:
    """Raises `UserError` for another direction than the model's, or too much."""
    source, target = languages_of(direction)
    if asked.source not in (source, "auto") or asked.target != target:
        raise UserError(
            f"source={asked.source[:20]}, target={asked.target[:20]}: this model translates {source} to {target} only"
        )
    characters = sum(max(len(text), 1) for text in texts_of(asked))  # an empty one is work too
    if characters > settings.characters:
        raise UserError(
            f"q has {characters:,} characters; at most {settings.characters:,} are translated at a time"
        )
    if asked.alternatives > settings.alternatives:
        raise UserError(f"alternatives: at most {settings.alternatives}")


def texts_of(asked: TranslateRequest) -> list[str]:
    return [asked.q] if isinstance(asked.q, str) else asked.q


def lines_of(text: str, language: str | None) -> list[Line]:
    """The lines of a text, by which paragraphs remain, and the sentences of each, by which the worker counts.

    A sentence that is longer than `LONGEST` is several.

    Args:
        language: of the text; None where each line is translated as one sentence.
    """
    lines = text.split("\n")
    sentences = [[(line, "")] if language is None else split_sentences(line, language) for line in lines]
    return [[part for one in line for part in _parts(*one)] or [("", "")] for line in sentences]


def lines_of_all(asked: TranslateRequest, language: str | None) -> list[list[Line]]:
    """Those of each of its texts, see `lines_of`."""
    return [lines_of(text, language) for text in texts_of(asked)]


def answer(
    asked: TranslateRequest,
    direction: Direction,
    texts: Sequence[Sequence[Line]],
    translated: Iterable[list[Translation]],
    *,
    drawn: bool,
) -> dict[str, Any]:
    """The answer's JSON.

    Args:
        texts: the lines of each.
        translated: the best translations of each sentence, best first, or samples in the order drawn.
        drawn: see `join_parts`.
    """
    each = iter(translated)

    def join(line: Line) -> list[Translation]:
        translated = [(next(each), space) for _, space in line]
        # What is empty once it is normalised has one translation, however many samples the others have.
        found = [(some, space) for some, space in translated if some[0].text or some[0].parts]
        parts, spaces = [some for some, _ in found], [space for _, space in found]
        return best_first(join_parts(parts, spaces, drawn=drawn))

    joined = [_join_lines([join(line) for line in lines], asked.alternatives + 1) for lines in texts]
    best = [rows[0] for rows in joined]
    others = [rows[1:] for rows in joined]
    # Nothing is detected: there is only one language that it could be.
    language = {"confidence": 100.0, "language": languages_of(direction)[0]}
    one = isinstance(asked.q, str)
    found: dict[str, Any] = {"translatedText": best[0] if one else best}
    if asked.alternatives:
        found["alternatives"] = others[0] if one else others
    if asked.source == "auto":
        found["detectedLanguage"] = language if one else [language] * len(best)
    return found


def _parts(sentence: str, space: str) -> Line:
    parts = _PART.findall(sentence) or [""]
    return [*((part, " ") for part in parts[:-1]), (parts[-1], space)]


def _join_lines(lines: Sequence[list[Translation]], count: int) -> list[str]:
    """Up to `count` different translations of a text; a line that has fewer of its own keeps its last one."""
    most = max(len(line) for line in lines)
    joined = ["\n".join(line[min(rank, len(line) - 1)].text for line in lines) for rank in range(most)]
    return list(dict.fromkeys(joined))[:count]
