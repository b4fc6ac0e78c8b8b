"""The source of chance and of words: nouns, verbs, adjectives and adverbs by class. It builds no phrases.

Every choice goes through one random.Random, so that a seed decides all sentences.
"""

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from endeavour.textbook.entries import Adjective, Lexicon, Noun, Scene, Verb, Word

T = TypeVar("T")


def _by_kind(words: Iterable[Word]) -> dict[str, list[Word]]:
    kinds: dict[str, list[Word]] = {}
    for word in words:
        kinds.setdefault(word.kind, []).append(word)
    return kinds


class Draw:
    """Random words from the lexicon.

    `you` is who the sentence speaks to: you (du), you_all (ihr) or you_formal (Sie); no sentence mixes.
    """

    def __init__(self, lexicon: Lexicon, seed: int) -> None:
        self.lexicon = lexicon
        self.random = random.Random(seed)
        self.you = "you"
        self.taken_names: set[str] = set()
        self.noun_named = {noun.german: noun for noun in lexicon.nouns}
        self.verb_named = {verb.german: verb for verb in lexicon.verbs}
        self.modal_named = {modal.german: modal for modal in lexicon.modals}
        self.calendar = _by_kind(lexicon.calendar)
        self.prepositions = _by_kind(lexicon.prepositions)
        self.names = _by_kind(lexicon.names)
        self.places = _by_kind(lexicon.places)
        self.verbs_by_frame: dict[str, list[Verb]] = {}
        for verb in lexicon.verbs:
            self.verbs_by_frame.setdefault(verb.frame, []).append(verb)
        self.roles: dict[str, list[tuple[Verb, str]]] = {}  # noun → the verbs and slots that it can fill
        self._nouns: dict[tuple[str, ...], list[Noun]] = {}
        self._adjectives: dict[Noun, list[Adjective]] = {}
        self._adverbs: dict[tuple[str, str], list[Word]] = {}

    def start(self, you: str) -> None:
        """Begins a sentence: whom it speaks to; its names are still free."""
        self.you = you
        self.taken_names.clear()

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

    def noun_of(self, group: str) -> Noun:
        """A noun of a group of groups.tsv."""
        return self.noun(self.lexicon.noun_groups[group])

    def belongs(self, noun: Noun, group: str) -> bool:
        """Whether a noun belongs to a group of groups.tsv."""
        return not noun.classes.isdisjoint(self.lexicon.noun_groups[group])

    def verb_of(self, group: str) -> Verb:
        """A verb of a group of groups.tsv."""
        return self.pick(self.lexicon.verb_groups[group])

    def scene(self, construction: str) -> Scene:
        """A row of scenes.tsv."""
        return self.pick(self.lexicon.scenes[construction])

    def adjectives_of(self, noun: Noun) -> list[Adjective]:
        """The adjectives that may describe a noun."""
        found = self._adjectives.get(noun)
        if found is None:
            found = [a for a in self.lexicon.adjectives if noun.classes.intersection(a.classes)]
            self._adjectives[noun] = found
        return found

    def adjective(self, noun: Noun) -> Adjective | None:
        """An adjective that may describe a noun, if there is any; passing states (tired) are rarer."""
        fitting = self.adjectives_of(noun)
        if not fitting:
            return None
        word = self.pick(fitting)
        return self.pick(fitting) if "state" in word.flags and self.chance(0.7) else word

    def flagged_adjective(self, flag: str) -> Adjective:
        return self.pick([a for a in self.lexicon.adjectives if flag in a.flags])

    def adverbs(self, kind: str, use: str = "") -> list[Word]:
        """The adverbs of a kind, or only those of one use."""
        found = self._adverbs.get((kind, use))
        if found is None:
            found = [a for a in self.lexicon.adverbs if a.kind == kind and (not use or use in a.use.split())]
            self._adverbs[kind, use] = found
        return found
