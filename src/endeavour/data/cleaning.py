"""The steps that clean training pairs, with a count and examples of everything changed or dropped.

To add a step: one entry in the filters of `PairJudge` or `LengthCleaner`, which run in this order, a setting for it in
`CleaningConfig`, and its value in conf/cleaning/default.yaml; a step for text of the web alone belongs to `crawled`.
What changes text, in place of dropping it, belongs to `normalization`, because training, evaluation and translation
share it.

Only training pairs come here: validation and test are never cleaned. Works on batches, so that memory does not grow
with the corpus, except for the hashes by which duplicates are found; what a pair tells alone is judged by any process,
and what earlier pairs tell is settled by one. Knows no files and no tokenizer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import not_
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as config_dataclass

from endeavour.data.crawled import CrawledConfig, CrawledFilter, crawled_filters
from endeavour.data.duplicates import Hashes, NearHashes, SeenHashes, pair_hashes
from endeavour.data.files import Pair
from endeavour.data.normalization import lowercased, normalize, remove_control_characters
from endeavour.data.surface import Side
from endeavour.directions import Languages
from endeavour.settings import STRICT

_EXAMPLES = 3
_EXAMPLE_LENGTH = 200
_CONTROL, _FORM = "control characters", "unicode and whitespace"
_DUPLICATE, _NEAR_DUPLICATE = "duplicate", "near-duplicate"


@config_dataclass(kw_only=True, config=STRICT)
class CleaningConfig:
    """Limits on training pairs. Tokens are those of the tokenizer, without BOS and EOS."""

    drop_duplicates: bool  # pairs that occurred earlier in the training split
    drop_overlap: bool  # pairs whose source or target is also in validation or test
    crawled: CrawledConfig | None  # more steps, for text of the web
    min_tokens: Annotated[int, Field(ge=1)]  # of either side
    max_tokens: int  # of either side
    max_ratio: Annotated[float, Field(ge=1, allow_inf_nan=True)]  # tokens of the longer side / of the shorter
    # The ratio counts from this length of the longer side on: "Ja." may well be three words.
    ratio_from_tokens: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.max_tokens < self.min_tokens:
            raise ValueError(
                f"cleaning.max_tokens={self.max_tokens} must be at least cleaning.min_tokens={self.min_tokens}"
            )
        return self


@dataclass
class Step:
    """What one step did: how many texts it changed or pairs it dropped, and the first few of them."""

    name: str
    changed: int = 0
    dropped: int = 0
    examples: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def note(self, **texts: str) -> None:
        if len(self.examples) < _EXAMPLES:
            self.examples.append({key: visible(text) for key, text in texts.items()})

    def drop(self, pair: Pair) -> None:
        self.dropped += 1
        self.note(source=pair[0], target=pair[1])

    def change(self, before: str, after: str) -> None:
        self.changed += 1
        self.note(before=before, after=after)

    def add(self, other: "Step") -> None:
        """Adds what the same step did to further pairs."""
        assert self.name == other.name
        self.changed += other.changed
        self.dropped += other.dropped
        self.examples = [*self.examples, *other.examples][:_EXAMPLES]


def restore_steps(steps: Sequence[Step], saved: Sequence[Mapping[str, Any]]) -> None:
    """Puts back the counts and examples that `asdict` took of each step."""
    for step, values in zip(steps, saved, strict=True):
        assert step.name == values["name"]
        vars(step).update(values)


def add_steps(steps: Sequence[Step], more: Sequence[Step]) -> None:
    """Adds to each of `steps` what the same step did to further pairs."""
    for step, other in zip(steps, more, strict=True):
        step.add(other)


def summed(parts: Sequence[Sequence[Step]]) -> list[Step]:
    """The same steps of several parts, step by step together, with the first examples."""
    total = [Step(step.name) for step in parts[0]]
    for steps in parts:
        add_steps(total, steps)
    return total


class HeldOut:
    """The sentences of validation and test, each language on its own, in normal form.

    Args:
        lowercase: whether the vocabulary lowercases, so that texts that differ in capitals alone are the same.
    """

    def __init__(self, *, lowercase: bool = False) -> None:
        self._lowercase = lowercase
        self._sources: set[str] = set()
        self._targets: set[str] = set()

    def add(self, pairs: Iterable[Pair]) -> None:
        for source, target in map(self.key, pairs):
            self._sources.add(source)
            self._targets.add(target)

    def overlaps(self, pair: Pair) -> bool:
        source, target = self.key(pair)
        return source in self._sources or target in self._targets

    def key(self, pair: Pair) -> Pair:
        """What of a pair is compared with that of others."""
        source, target = pair
        return (lowercased(source), lowercased(target)) if self._lowercase else pair


LengthFilter = Callable[[int, int], bool]  # tokens of the shorter and the longer side → whether it is dropped


@dataclass(frozen=True)
class Judged:
    """A batch of pairs, as far as each pair tells alone.

    Attributes:
        read: how many there were.
        pairs: those that stay, in normal form and in order.
        steps: what was done to the others, and to these.
        hashes: of each of `pairs`, by what they are remembered for; [pairs, hashes of one].
    """

    read: int
    pairs: list[Pair]
    steps: list[Step]
    hashes: dict[str, Hashes]


class PairJudge:
    """Brings pairs to their normal form and drops them by their own text. Remembers nothing.

    Attributes:
        remembered: the names of the steps that drop pairs of which a hash equals an earlier one's.
    """

    def __init__(self, config: CleaningConfig, held_out: HeldOut, languages: Languages) -> None:
        self._made_from = config, held_out, languages
        self._filters: list[tuple[str, Callable[[Pair], bool]]] = [("empty", lambda pair: not all(pair))]
        if config.drop_overlap:
            self._filters.append(("overlap with validation or test", held_out.overlaps))
        self._crawled: list[tuple[str, CrawledFilter]] = []
        self._near_hashes: NearHashes | None = None
        if config.crawled is not None:
            self._crawled = crawled_filters(config.crawled, languages)
            if config.crawled.near_duplicates is not None:
                self._near_hashes = NearHashes(config.crawled.near_duplicates)
        remembered = {_DUPLICATE: config.drop_duplicates, _NEAR_DUPLICATE: self._near_hashes is not None}
        self.remembered = [name for name, wanted in remembered.items() if wanted]

    def __reduce__(self) -> tuple[type["PairJudge"], tuple[CleaningConfig, HeldOut, Languages]]:
        """Another process makes its own filters."""
        return PairJudge, self._made_from

    def new_steps(self) -> list[Step]:
        """Its steps, of which none did anything yet."""
        filters = [*self._filters, *self._crawled]
        return [Step(name) for name in (_CONTROL, _FORM, *(name for name, _ in filters))]

    def __call__(self, pairs: Sequence[Pair]) -> Judged:
        steps = {step.name: step for step in self.new_steps()}
        form = steps[_CONTROL], steps[_FORM]
        kept: list[Pair] = []
        for source, target in pairs:
            pair = _normal(source, *form), _normal(target, *form)
            for name, drops in self._filters:
                if drops(pair):
                    steps[name].drop(pair)
                    break
            else:
                kept.append(pair)
        hashes: dict[str, Hashes] = {}
        if self._crawled or self._near_hashes:
            sides = self._pass_crawled([(Side.of(source), Side.of(target)) for source, target in kept], steps)
            kept = [(source.text, target.text) for source, target in sides]
            if self._near_hashes:
                hashes[_NEAR_DUPLICATE] = self._near_hashes(sides)
        if _DUPLICATE in self.remembered:
            hashes[_DUPLICATE] = pair_hashes(kept)
        return Judged(len(pairs), kept, [*steps.values()], hashes)

    def _pass_crawled(
        self, pairs: list[tuple[Side, Side]], steps: Mapping[str, Step]
    ) -> list[tuple[Side, Side]]:
        """Those that stay. One filter after the other goes over all of them, which is faster than pair by pair."""
        for name, drops in self._crawled:
            dropped = [drops(*pair) for pair in pairs]
            for source, target in compress(pairs, dropped):
                steps[name].drop((source.text, target.text))
            pairs = [*compress(pairs, map(not_, dropped))]
        return pairs


class TextCleaner:
    """Brings pairs to their normal form and drops them by their text, and by that of earlier ones.

    Attributes:
        judge: its first half, which may be called anywhere.
        read: the pairs met so far.
        steps: what was done to them.
        seen: the hashes that it remembers, by the name of their step; with `read` and `steps` its whole state.
    """

    def __init__(self, config: CleaningConfig, held_out: HeldOut, languages: Languages) -> None:
        self.judge = PairJudge(config, held_out, languages)
        self.read = 0
        self.seen = {name: SeenHashes() for name in self.judge.remembered}
        self.steps = [*self.judge.new_steps(), *map(Step, self.seen)]

    def settle(self, judged: Judged) -> list[Pair]:
        """Of pairs that were judged those that stay, in order; remembers them."""
        self.read += judged.read
        add_steps(self.steps[: len(judged.steps)], judged.steps)
        kept = np.arange(len(judged.pairs))
        for step, (name, seen) in zip(self.steps[len(judged.steps) :], self.seen.items(), strict=True):
            dropped = seen.drops(judged.hashes[name][kept])
            for number in kept[dropped]:
                step.drop(judged.pairs[number])
            kept = kept[~dropped]
        return [judged.pairs[number] for number in kept]


def _normal(text: str, control: Step, form: Step) -> str:
    normal = normalize(text)
    if normal != text:
        printable = remove_control_characters(text)
        if printable != text:
            control.change(text, printable)
        if normal != printable:
            form.change(printable, normal)
    return normal


class LengthCleaner:
    """Drops pairs by their number of tokens.

    Args:
        tag: tokens of the tag that sources begin with, for which no limit is meant.
    """

    def __init__(self, config: CleaningConfig, *, tag: int = 0) -> None:
        self._tag = tag

        def unequal(shorter: int, longer: int) -> bool:
            return longer >= config.ratio_from_tokens and longer > config.max_ratio * shorter

        self._filters: list[tuple[Step, LengthFilter]] = [
            (Step(f"fewer than {config.min_tokens} tokens"), lambda shorter, _: shorter < config.min_tokens),
            (Step(f"more than {config.max_tokens} tokens"), lambda _, longer: longer > config.max_tokens),
            (Step(f"length ratio above {config.max_ratio:g}"), unequal),
        ]

    @property
    def steps(self) -> list[Step]:
        return [step for step, _ in self._filters]

    def keep(self, pair: Pair, source_tokens: int, target_tokens: int) -> bool:
        """Whether a pair stays; the first step that drops it counts it."""
        shorter, longer = sorted((source_tokens - self._tag, target_tokens))
        for step, drops in self._filters:
            if drops(shorter, longer):
                step.drop(pair)
                return False
        return True


def visible(text: str) -> str:
    """`text` with invisible characters escaped, and cut to a readable length."""
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[:_EXAMPLE_LENGTH]
    )
    return shown + "…" if len(text) > _EXAMPLE_LENGTH else shown
