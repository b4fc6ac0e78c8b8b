"""Forced prefixes: what a translation begins with, as ids or as text that may end inside a word; the model continues.

A search goes through its usual steps, but while a prefix lasts, only tokens that fit it are possible. Log-
probabilities stay the model's own, so that they are those of the whole translation. After typed text every piece that
agrees with it is possible, however the text is split into pieces: after "Hau" both "Haus" and "Haut". Greedy decoding
continues a prefix of its own translation with the rest of it; a wider beam may find a better rest, because the prefix
frees places in the beam. Knows ids and what they spell; not models.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from endeavour.data.normalization import SPACE_MARK
from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import UserError


@dataclass(frozen=True)
class Prefix:
    """These ids, then pieces that together spell `text` (UTF-8, spaces as U+2581) or begin with it."""

    ids: tuple[int, ...] = ()
    text: bytes = b""

    @property
    def longest(self) -> int:
        """The most tokens that it can take: one for each byte of the text."""
        return len(self.ids) + len(self.text)


def typed_prefix(tokenizer: Tokenizer, text: str) -> Prefix:
    """What somebody has typed so far: whole words as the tokenizer splits them, the last one open.

    A space at the end closes the last word: then another one follows.
    """
    *words, last = tokenizer.normalize(text + "|").split(" ")  # a mark, so that a space before it survives
    last = last.removesuffix("|")
    if not words and not last:
        return Prefix()
    (ids,) = tokenizer.encode([" ".join(words)])
    return Prefix(tuple(ids), (SPACE_MARK + last).encode())


class ForcedPrefix:
    """The prefix of one translation, over a target vocabulary.

    Args:
        spellings: what each id spells, see `Tokenizer.spellings`.

    Raises:
        UserError: the prefix holds an id that is no piece of a translation.
    """

    def __init__(self, prefix: Prefix, spellings: Sequence[bytes | None]) -> None:
        for number in prefix.ids:
            if not 0 <= number < len(spellings) or spellings[number] is None:
                raise UserError(
                    f"prefix: {number} is not the id of a piece; there are {len(spellings)}, of which the first "
                    "four are special"
                )
        self._prefix = prefix
        self._spellings = spellings
        # In the order of their bytes, so that all pieces that begin with something stand together.
        self._sorted = sorted((text, number) for number, text in enumerate(spellings) if text)
        self._longest = max((len(text) for text, _ in self._sorted), default=0)
        self._spellable: set[int] = set()  # places in the text from which on pieces spell the rest of it
        for start in reversed(range(len(prefix.text))):
            if self._following(start):
                self._spellable.add(start)

    def longest_within(self, positions: int | None) -> int:
        """The most tokens that it can take. Raises `UserError` where these may not fit a model's positions."""
        longest = self._prefix.longest
        if positions is not None and longest >= positions:
            raise UserError(
                f"prefix: it may take more than the {positions - 1} tokens that this model can write"
            )
        return longest

    def allowed(self, ids: Sequence[int]) -> list[int] | None:
        """The ids that may follow `ids`; None once the prefix is complete."""
        prefix = self._prefix
        if len(ids) < len(prefix.ids):
            return [prefix.ids[len(ids)]]
        spelt = sum(len(self._spellings[number] or b"") for number in ids[len(prefix.ids) :])
        return self._following(spelt) if spelt < len(prefix.text) else None

    def _following(self, start: int) -> list[int]:
        """The ids that may stand from a place in the text on: after them pieces spell what is left of it."""
        rest = self._prefix.text[start:]
        whole = [self._sorted[place][1] for place in self._beginning_with(rest)]
        parts = [
            self._sorted[place][1]
            for length in range(1, min(len(rest) - 1, self._longest) + 1)
            if start + length in self._spellable
            for place in self._equal_to(rest[:length])
        ]
        return whole + parts

    def restrict(self, log_probabilities: Tensor, generated: Tensor) -> None:
        """Sets what does not fit to -inf, in place.

        Args:
            log_probabilities: (beam, vocabulary) of the next token.
            generated: (beam, tokens so far) ids, without BOS.
        """
        for row, ids in zip(log_probabilities, generated.tolist(), strict=True):
            allowed = self.allowed(ids)
            if allowed is not None:
                possible = torch.tensor(allowed, dtype=torch.int64, device=row.device)
                values = row[possible]
                row.fill_(-torch.inf)
                row[possible] = values

    def _beginning_with(self, text: bytes) -> range:
        start = end = bisect_left(self._sorted, (text, 0))
        while end < len(self._sorted) and self._sorted[end][0].startswith(text):
            end += 1
        return range(start, end)

    def _equal_to(self, text: bytes) -> range:
        return range(bisect_left(self._sorted, (text, 0)), bisect_left(self._sorted, (text + b"\0", 0)))
