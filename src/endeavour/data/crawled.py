"""The cleaning steps for crawled text, each with its limit: what they drop is told by a pair alone.

docs/experiments.md says where the limits of conf/cleaning/crawled.yaml come from. Counts nothing.
"""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from endeavour.data.agreement import numbers_agree, symbols_agree
from endeavour.data.languages import LanguageCheck
from endeavour.data.surface import Side, is_broken, markup_share, overlap, repetition
from endeavour.directions import Languages
from endeavour.optional import require
from endeavour.settings import STRICT, Share

CrawledFilter = Callable[[Side, Side], bool]  # source and target → whether the pair is dropped


@dataclass(kw_only=True, config=STRICT)
class CrawledConfig:
    """Limits on pairs of crawled text; a pair above one is dropped. None and False switch a step off."""

    max_markup: Share | None  # tags, addresses, code and separators among the words of either side
    drop_broken: bool  # pairs with characters that were lost, or read in a wrong encoding
    max_repetition: Share | None  # of either side, that repeats itself
    max_copied: Share | None  # of the English words, that are on the German side too
    match_numbers: bool  # those in digits must be on the other side, in digits or words
    match_symbols: bool  # as %, €, §: they, or their names, must be on the other side
    language_margin: Share | None  # of another language's score over that of a side, or of one half of it
    language_from_letters: Annotated[int, Field(ge=1)]  # what has fewer is not judged by its language
    # words that two pairs share / all of theirs
    near_duplicates: Annotated[float, Field(ge=0.5, le=0.95)] | None

    @property
    def packages(self) -> list[str]:
        """Those of the extra `filter` that its steps need. Raises `UserError` where one is not installed."""
        needed = {"eldc": self.language_margin, "rensa": self.near_duplicates}
        names = [name for name, setting in needed.items() if setting is not None]
        for name in names:
            require(name, "filter")
        return names


def crawled_filters(config: CrawledConfig, languages: Languages) -> list[tuple[str, CrawledFilter]]:
    """The names of the steps that `config` switches on, except for near-duplicates, and what each drops.

    Raises:
        UserError: a package that a step needs is not installed.
    """
    reverse = languages == ("de", "en")
    filters: list[tuple[str, CrawledFilter]] = []

    def either(name: str, drops: Callable[[Side], bool]) -> None:
        filters.append((name, lambda source, target: drops(source) or drops(target)))

    def both(name: str, drops: Callable[[Side, Side], bool]) -> None:
        """`drops` is given the English and the German side."""
        filters.append((name, (lambda source, target: drops(target, source)) if reverse else drops))

    if (markup := config.max_markup) is not None:
        either("markup", lambda side: side.may_have_signs and markup_share(side.text) > markup)
    if config.drop_broken:
        either("broken characters", lambda side: side.may_have_signs and is_broken(side.text))
    if (repeated := config.max_repetition) is not None:
        either("repetition", lambda side: repetition(side) > repeated)
    if (copied := config.max_copied) is not None:
        both("untranslated", lambda english, german: overlap(english, german) > copied)
    if config.match_numbers:
        both(
            "numbers differ",
            lambda english, german: (
                (english.may_have_digits or german.may_have_digits)
                and not numbers_agree(english.text, german.text)
            ),
        )
    if config.match_symbols:
        both(
            "symbols differ",
            lambda english, german: (
                (english.may_have_signs or german.may_have_signs)
                and not symbols_agree(english.text, german.text)
            ),
        )
    if config.language_margin is not None:
        check = LanguageCheck(config.language_margin, config.language_from_letters)
        both(
            "wrong language",
            lambda english, german: check.differs(english.text, "en") or check.differs(german.text, "de"),
        )
    return filters
