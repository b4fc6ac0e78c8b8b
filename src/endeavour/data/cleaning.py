"""What training pairs must pass, with a count and examples of everything changed or dropped.

Only training pairs come here: validation and test are never cleaned. Works on batches, so that memory does
not grow with the corpus, but for 8 bytes for each distinct pair. Knows no files and no tokenizer.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from endeavour.data.files import Pair
from endeavour.data.normalization import normalize, remove_control_characters
from endeavour.errors import UserError

_EXAMPLES = 3
_EXAMPLE_LENGTH = 200


@dataclass(kw_only=True)
class CleaningConfig:
    """Limits on training pairs. Tokens are those of the tokenizer, without BOS and EOS."""

    drop_duplicates: bool  # pairs that stood in the training split before
    drop_overlap: bool  # pairs whose source or target also stands in validation or test
    min_tokens: int  # of either side
    max_tokens: int  # of either side
    max_ratio: float  # tokens of the longer side / tokens of the shorter
    ratio_from_tokens: (
        int  # the ratio counts from this length of the longer side on: "Ja." may well be three words
    )

    def check(self) -> None:
        """Raises `UserError`, naming the key, for limits that no pair can meet."""
        if not 1 <= self.min_tokens <= self.max_tokens:
            raise UserError("cleaning.min_tokens must be at least 1 and at most cleaning.max_tokens")
        if not self.max_ratio >= 1:
            raise UserError(
                f"cleaning.max_ratio={self.max_ratio:g}: a ratio of longer to shorter is at least 1"
            )
        if self.ratio_from_tokens < 0:
            raise UserError(f"cleaning.ratio_from_tokens={self.ratio_from_tokens}: must not be negative")


@dataclass
class Step:
    """One step's account: how many pairs it met, changed or dropped, and the first few of them."""

    name: str
    changed: int = 0
    dropped: int = 0
    examples: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def note(self, **texts: str) -> None:
        if len(self.examples) < _EXAMPLES:
            self.examples.append({key: _visible(text) for key, text in texts.items()})

    def drop(self, pair: Pair) -> None:
        self.dropped += 1
        self.note(source=pair[0], target=pair[1])

    def change(self, before: str, after: str) -> None:
        self.changed += 1
        self.note(before=before, after=after)


def restore_steps(steps: Sequence[Step], saved: Sequence[Mapping[str, Any]]) -> None:
    """Puts back the counts and examples that `asdict` took of each step."""
    for step, values in zip(steps, saved, strict=True):
        assert step.name == values["name"]
        step.changed, step.dropped, step.examples = values["changed"], values["dropped"], values["examples"]


class HeldOut:
    """The sentences of validation and test, each language on its own, in normal form."""

    def __init__(self) -> None:
        self._sources: set[str] = set()
        self._targets: set[str] = set()

    def add(self, pairs: Iterable[Pair]) -> None:
        for source, target in pairs:
            self._sources.add(source)
            self._targets.add(target)

    def overlaps(self, pair: Pair) -> bool:
        return pair[0] in self._sources or pair[1] in self._targets


class TextCleaner:
    """The steps that look at text alone, in this order: characters, whitespace, empty, duplicate, overlap."""

    def __init__(self, config: CleaningConfig, held_out: HeldOut) -> None:
        self._config = config
        self._held_out = held_out
        self.seen = SeenPairs()
        self.read = 0
        self._control = Step("control characters")
        self._form = Step("unicode and whitespace")
        self._empty = Step("empty")
        self._duplicate = Step("duplicate")
        self._overlap = Step("overlap with validation or test")

    @property
    def steps(self) -> list[Step]:
        return [self._control, self._form, self._empty, self._duplicate, self._overlap]

    def clean(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The pairs that stay, in normal form and in order."""
        self.read += len(pairs)
        kept = [(self._normal(source), self._normal(target)) for source, target in pairs]
        kept = self._without(self._empty, kept, [not source or not target for source, target in kept])
        if self._config.drop_duplicates:
            kept = self._without(self._duplicate, kept, self.seen.add(kept))
        if self._config.drop_overlap:
            kept = self._without(self._overlap, kept, [self._held_out.overlaps(pair) for pair in kept])
        return kept

    def _normal(self, text: str) -> str:
        printable = remove_control_characters(text)
        if printable != text:
            self._control.change(text, printable)
        normal = normalize(printable)
        if normal != printable:
            self._form.change(printable, normal)
        return normal

    @staticmethod
    def _without(step: Step, pairs: list[Pair], dropped: Sequence[bool]) -> list[Pair]:
        for pair, drop in zip(pairs, dropped, strict=True):
            if drop:
                step.drop(pair)
        return [pair for pair, drop in zip(pairs, dropped, strict=True) if not drop]


class LengthFilter:
    """The steps that count tokens: too short, too long, too unequal."""

    def __init__(self, config: CleaningConfig) -> None:
        self._config = config
        self._short = Step(f"fewer than {config.min_tokens} tokens")
        self._long = Step(f"more than {config.max_tokens} tokens")
        self._ratio = Step(f"length ratio above {config.max_ratio:g}")

    @property
    def steps(self) -> list[Step]:
        return [self._short, self._long, self._ratio]

    def keep(self, pair: Pair, source_tokens: int, target_tokens: int) -> bool:
        """Whether a pair stays; one that does not is counted."""
        shorter, longer = sorted((source_tokens, target_tokens))
        if shorter < self._config.min_tokens:
            step = self._short
        elif longer > self._config.max_tokens:
            step = self._long
        elif longer >= self._config.ratio_from_tokens and longer > self._config.max_ratio * shorter:
            step = self._ratio
        else:
            return True
        step.drop(pair)
        return False


class SeenPairs:
    """Which pairs came before: a sorted array of 64-bit hashes, where a set of texts takes hundreds of bytes.

    Two different pairs of a corpus of n collide with a probability of about n² / 2⁶⁵: 5e-7 for n = 4.5
    million.
    """

    def __init__(self) -> None:
        self.hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        """Of all pairs so far, in ascending order."""

    def add(self, pairs: Sequence[Pair]) -> list[bool]:
        """For each pair whether it came before, in this batch or an earlier one; then remembers them all."""
        texts = ("\t".join(pair).encode() for pair in pairs)  # no text in normal form holds a tab
        hashes = np.frombuffer(
            b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts), np.uint64
        )
        unique, first = np.unique(hashes, return_index=True)
        places = np.searchsorted(self.hashes, unique)
        known = np.zeros(len(unique), bool)
        inside = places < len(self.hashes)
        known[inside] = self.hashes[places[inside]] == unique[inside]
        seen = np.ones(len(pairs), bool)
        seen[first[~known]] = False
        self.hashes = np.insert(self.hashes, places[~known], unique[~known])
        return seen.tolist()


def _visible(text: str) -> str:
    """`text` for a reader: what cannot be seen is escaped, what is long is cut."""
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[:_EXAMPLE_LENGTH]
    )
    return shown + "…" if len(text) > _EXAMPLE_LENGTH else shown
