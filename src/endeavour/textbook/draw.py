"""The source of chance and of words: nouns, verbs, adjectives and adverbs by class. It builds no phrases.

Every choice goes through one random.Random, so that a seed decides all sentences.
"""

import random
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

from endeavour.textbook.entries import Adjective, Lexicon, Modal, Noun, Verb, Word

T = TypeVar("T")

STATES = frozenset(
    {"müde", "krank", "hungrig", "durstig", "glücklich", "traurig", "nervös", "zufrieden", "gesund"}
)


class Draw:
    """Random words from the lexicon.

    `you` is who the sentence speaks to: you (du), you_all (ihr) or you_formal (Sie); no sentence mixes.
    """

    def __init__(self, lexicon: Lexicon, seed: int) -> None:
        self.lexicon = lexicon
        self.random = random.Random(seed)
        self.you = "you"
        self.names: set[str] = set()
        self.noun_named = {noun.german: noun for noun in lexicon.nouns}
        self.verb_named = {verb.german: verb for verb in lexicon.verbs}
        self.modal_named: dict[str, Modal] = {modal.german: modal for modal in lexicon.modals}
        self.roles: dict[str, list[tuple[Verb, str]]] = {}  # noun -> the verbs and slots that it can fill
        self._nouns: dict[tuple[str, ...], list[Noun]] = {}
        self._adjectives: dict[Noun, list[Adjective]] = {}

    def start(self, you: str) -> None:
        """Begin a sentence: whom it speaks to; its names are still free."""
        self.you = you
        self.names.clear()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random.random() * len(items))]

    def nouns_of(self, classes: tuple[str, ...]) -> list[Noun]:
        """Nouns that belong to one of the classes, or are named themselves."""
        found = self._nouns.get(classes)
        if found is None:
            wanted = frozenset(classes)
            found = self._nouns[classes] = [n for n in self.lexicon.nouns if n.classes & wanted]
        return found

    def noun(self, classes: tuple[str, ...]) -> Noun:
        return self.pick(self.nouns_of(classes))

    def adjectives_of(self, noun: Noun) -> list[Adjective]:
        found = self._adjectives.get(noun)
        if found is None:
            found = [a for a in self.lexicon.adjectives if noun.classes.intersection(a.classes)]
            self._adjectives[noun] = found
        return found

    def adjective(self, noun: Noun) -> Adjective | None:
        fitting = self.adjectives_of(noun)
        if not fitting:
            return None
        word = self.pick(fitting)
        if word.german in STATES and self.chance(0.7):
            word = self.pick(fitting)
        return word

    @cached_property
    def verbs_by_frame(self) -> dict[str, list[Verb]]:
        frames: dict[str, list[Verb]] = {}
        for verb in self.lexicon.verbs:
            frames.setdefault(verb.frame, []).append(verb)
        return frames

    def adverbs(self, kind: str, use: str = "") -> list[Word]:
        key = (kind, use)
        if key not in self._adverbs:
            self._adverbs[key] = [
                a for a in self.lexicon.adverbs if a.kind == kind and (not use or use in a.use.split())
            ]
        return self._adverbs[key]

    @cached_property
    def _adverbs(self) -> dict[tuple[str, str], list[Word]]:
        return {}

    def words(self, table: tuple[Word, ...], kind: str) -> list[Word]:
        return [word for word in table if word.kind == kind]

    @cached_property
    def calendar(self) -> dict[str, list[Word]]:
        return {k: self.words(self.lexicon.calendar, k) for k in ("weekday", "month", "season", "daypart")}

    @cached_property
    def prepositions(self) -> dict[str, list[Word]]:
        uses: dict[str, list[Word]] = {}
        for word in self.lexicon.prepositions:
            uses.setdefault(word.kind, []).append(word)
        return uses

    @cached_property
    def first_names(self) -> list[Word]:
        return self.words(self.lexicon.names, "first")

    @cached_property
    def family_names(self) -> list[Word]:
        return self.words(self.lexicon.names, "family")
