"""The source of chance and of words: nouns, verbs, adjectives and adverbs by class. It builds no phrases.

Every choice goes through one random.Random, so that a seed decides all sentences.
"""

import random
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from endeavour.textbook.entries import Adjective, Lexicon, Noun, Scene, Verb, Word

T = TypeVar("T")


@cache
def nouns_of(lexicon: Lexicon, classes: tuple[str, ...]) -> list[Noun]:
    """Nouns that belong to one of the classes, or are named themselves."""
    return [noun for noun in lexicon.nouns if not noun.classes.isdisjoint(classes)]


@cache
def adjectives_of(lexicon: Lexicon, noun: Noun) -> list[Adjective]:
    """The adjectives that may describe a noun."""
    return [word for word in lexicon.adjectives if not noun.classes.isdisjoint(word.classes)]


@cache
def words_for(lexicon: Lexicon, kind: str, use: str) -> list[Word]:
    """The words of a kind that have this use among others."""
    return [word for word in lexicon.words[kind] if use in word.use.split()]


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
        self.verbs_by_frame: dict[str, list[Verb]] = {}
        for verb in lexicon.verbs:
            self.verbs_by_frame.setdefault(verb.frame, []).append(verb)

    def start(self, you: str) -> None:
        """Begins a sentence: whom it speaks to; its names are still free."""
        self.you = you
        self.taken_names.clear()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random.random() * len(items))]

    def noun(self, classes: tuple[str, ...]) -> Noun:
        return self.pick(nouns_of(self.lexicon, classes))

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

    def adjective(self, noun: Noun) -> Adjective | None:
        """An adjective that may describe a noun, if there is any; passing states (tired) are rarer."""
        fitting = adjectives_of(self.lexicon, noun)
        if not fitting:
            return None
        word = self.pick(fitting)
        return self.pick(fitting) if "state" in word.flags and self.chance(0.7) else word

    def flagged_adjective(self, flag: str) -> Adjective:
        return self.pick([a for a in self.lexicon.adjectives if flag in a.flags])

    def word(self, kind: str, use: str = "") -> Word:
        """An adverb, name, place, preposition or calendar word of a kind, with this use if it is given."""
        return self.pick(words_for(self.lexicon, kind, use) if use else self.lexicon.words[kind])
