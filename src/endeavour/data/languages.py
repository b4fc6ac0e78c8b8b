"""Whether a line is in the language it should be in, by the n-grams of eldc. Knows nothing of pairs.

docs/experiments.md compares it with other detectors on short lines, and says where the margin comes from.
"""

from itertools import islice
from typing import Any

from endeavour.optional import require

_LANGUAGES = 60  # all that eldc knows


class LanguageCheck:
    """Tells lines that are in another language than they should be, or of which one half is.

    Args:
        margin: by how much another language's score, from 0 to 1, must be above that of the expected one.
        from_letters: shorter lines, and shorter halves, are not judged.

    Raises:
        UserError: eldc is not installed.
    """

    def __init__(self, margin: float, from_letters: int) -> None:
        self._eldc: Any = require("eldc", "filter")
        self._eldc.init()
        self._eldc.set_scores(_LANGUAGES)
        self._margin = margin
        self._from_letters = from_letters

    def differs(self, text: str, language: str) -> bool:
        """Whether `text`, or one half of its words, is in another language than `language`, as in "de"."""
        middle = (text.count(" ") + 1) // 2
        second = text.split(" ", middle)[-1]
        halves = text.removesuffix(second), second
        if all(self._is_likely(half, language) for half in halves):
            return False  # so is the text then
        return any(self._is_other(part, language) for part in (text, *halves))

    def _is_likely(self, text: str, language: str) -> bool:
        """Whether no language has a higher score. Takes a fifth of the time of the scores."""
        return self._eldc.detect_mt(text) == language

    def _is_other(self, text: str, language: str) -> bool:
        if self._is_likely(text, language):
            return False
        if len(list(islice(filter(str.isalpha, text), self._from_letters))) < self._from_letters:
            return False
        scores: dict[str, float] = self._eldc.detect_details(text).scores
        expected = scores.pop(language, 0.0)
        return max(scores.values(), default=0.0) > expected + self._margin
