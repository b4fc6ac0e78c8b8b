"""The steps that clean training pairs, with a count and examples of everything changed or dropped.

To add a step: one entry in the filters of `TextCleaner` or `LengthCleaner`, which run in this order, a setting for it
in `CleaningConfig`, and its value in conf/cleaning/default.yaml. What changes text, in place of dropping it, belongs to
`normalization`, because training, evaluation and translation share it.

Only training pairs come here: validation and test are never cleaned. Works on batches, so that memory does not grow
with the corpus, except for the hashes by which duplicates are found. Knows no files and no tokenizer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as config_dataclass

from endeavour.data.crawled import CrawledConfig, Languages, PairFilter, crawled_filters
from endeavour.data.duplicates import NearDuplicates, SeenHashes, SeenPairs
from endeavour.data.files import Pair
from endeavour.data.normalization import normalize, remove_control_characters
from endeavour.settings import STRICT

_EXAMPLES = 3
_EXAMPLE_LENGTH = 200


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


def restore_steps(steps: Sequence[Step], saved: Sequence[Mapping[str, Any]]) -> None:
    """Puts back the counts and examples that `asdict` took of each step."""
    for step, values in zip(steps, saved, strict=True):
        assert step.name == values["name"]
        vars(step).update(values)


def summed(parts: Sequence[Sequence[Step]]) -> list[Step]:
    """The same steps of several parts, step by step together, with the first examples."""
    return [
        Step(
            steps[0].name,
            changed=sum(step.changed for step in steps),
            dropped=sum(step.dropped for step in steps),
            examples=[example for step in steps for example in step.examples][:_EXAMPLES],
        )
        for steps in zip(*parts, strict=True)
    ]


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


TextFilter = Callable[[list[Pair]], Sequence[bool]]  # pairs in normal form → for each whether it is dropped
LengthFilter = Callable[[int, int], bool]  # tokens of the shorter and the longer side → whether it is dropped


class TextCleaner:
    """Brings pairs to their normal form and drops them by their text.

    Attributes:
        read: the pairs met so far.
        seen: the hashes that it remembers, by what they are for; with `read` and `steps` its whole state.
    """

    def __init__(self, config: CleaningConfig, held_out: HeldOut, languages: Languages) -> None:
        self.read = 0
        self.seen: dict[str, SeenHashes] = {}
        self._control = Step("control characters")
        self._form = Step("unicode and whitespace")
        self._filters: list[tuple[Step, TextFilter]] = [
            (Step("empty"), lambda pairs: [not source or not target for source, target in pairs])
        ]
        if config.drop_duplicates:
            pairs = self.seen["pairs"] = SeenPairs()
            self._filters.append((Step("duplicate"), pairs.drops))
        if config.drop_overlap:
            overlap = Step("overlap with validation or test")
            self._filters.append((overlap, _each(held_out.overlaps)))
        if config.crawled is not None:
            filters = crawled_filters(config.crawled, languages)
            self._filters += [(Step(name), _each(drops)) for name, drops in filters]
            if config.crawled.near_duplicates is not None:
                near = self.seen["near"] = NearDuplicates(config.crawled.near_duplicates)
                self._filters.append((Step("near-duplicate"), near.drops))

    @property
    def steps(self) -> list[Step]:
        return [self._control, self._form, *(step for step, _ in self._filters)]

    def clean(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The pairs that stay, in normal form and in order."""
        self.read += len(pairs)
        kept = [(self._normal(source), self._normal(target)) for source, target in pairs]
        for step, drops in self._filters:
            dropped = drops(kept)
            for pair, drop in zip(kept, dropped, strict=True):
                if drop:
                    step.drop(pair)
            kept = [pair for pair, drop in zip(kept, dropped, strict=True) if not drop]
        return kept

    def _normal(self, text: str) -> str:
        printable = remove_control_characters(text)
        if printable != text:
            self._control.change(text, printable)
        normal = normalize(printable)
        if normal != printable:
            self._form.change(printable, normal)
        return normal


class LengthCleaner:
    """Drops pairs by their number of tokens."""

    def __init__(self, config: CleaningConfig) -> None:
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
        shorter, longer = sorted((source_tokens, target_tokens))
        for step, drops in self._filters:
            if drops(shorter, longer):
                step.drop(pair)
                return False
        return True


def _each(drops: PairFilter) -> TextFilter:
    return lambda pairs: [drops(pair) for pair in pairs]


def visible(text: str) -> str:
    """`text` with invisible characters escaped, and cut to a readable length."""
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[:_EXAMPLE_LENGTH]
    )
    return shown + "…" if len(text) > _EXAMPLE_LENGTH else shown
