"""Draws sentences with a relative clause."""

from functools import cache

from endeavour.textbook.clauses import draw_clause
from endeavour.textbook.descriptions import quality_clause
from endeavour.textbook.draw import Draw
from endeavour.textbook.entries import Lexicon, Noun, Verb
from endeavour.textbook.morphology_german import DATIVE
from endeavour.textbook.phrases import some_subject
from endeavour.textbook.tenses import deny
from endeavour.textbook.trees import (
    Clause,
    NounPhrase,
    Prepositional,
    Property,
    Relative,
    Sentence,
    gender_of,
)

ROLE_FRAMES = frozenset({"acc", "dat acc", "oblique", "dir", "loc", "loc?", "-", "dat"})
ROLE_SLOTS = {"acc": "direct", "dat": "indirect"}


def with_relative(draw: Draw) -> Sentence:
    """The man who lives here ...; the book that I am reading ...; the house in which we live ..."""
    if draw.chance(0.55):
        main = quality_clause(draw, past=False if draw.chance(0.7) else None)
        head = main.subject
    else:
        main = draw_clause(draw, draw.pick(draw.verbs_by_frame["acc"]), plain=True)
        head = main.direct
    if not isinstance(head, NounPhrase) or head.noun.mass or head.owner or "family" in head.noun.classes:
        return with_relative(draw)
    if head.determiner not in ("the", "this", "a"):
        head.determiner, head.count = "the", 0
    deny(main, False)
    if isinstance(main.predicate, Property) and main.predicate.standard is not None:
        main.predicate.comparison, main.predicate.standard = "", None
    clause = clause_about(draw, head, main.verb)
    if clause is None:
        return with_relative(draw)
    head.relative = clause
    return Sentence(main)


def clause_about(draw: Draw, head: NounPhrase, used: Verb) -> Clause | None:
    """A relative clause about the noun of `head` with another verb than `used`, or None if none fits."""
    noun = head.noun
    person = "person" in noun.classes
    who = Relative(gender_of(head), person)
    dice = draw.random.random()
    if noun.where and "furniture" not in noun.classes and dice < 0.4:
        return clause_about_place(draw, head, who)
    if person and dice < 0.2:
        clause = quality_clause(draw, past=False)
        owned = NounPhrase(draw.noun_of("whose"), "the", owner=who)
        word = draw.adjective(owned.noun)
        if word is None:
            return None
        clause.subject, clause.predicate, clause.negated = owned, Property(word), False
        clause.front = "subject"
        return clause
    slots = roles_of(draw.lexicon, noun)
    if not slots:
        return None
    verb, slot = draw.pick(slots)
    mood = draw.pick(("past", "state" if verb.simple else "now"))
    if slot == "subject":
        clause = draw_clause(draw, verb, who, mood, plain=True)
    elif verb is used:
        return None
    else:
        subject = some_subject(draw, verb.subject)
        if isinstance(subject, NounPhrase):
            subject.adjectives = ()
        clause = draw_clause(draw, verb, subject, mood, plain=True)
        setattr(clause, slot, who)
    clause.negated = False
    clause.front = slot
    return clause


@cache
def roles_of(lexicon: Lexicon, noun: Noun) -> list[tuple[Verb, str]]:
    """Which verbs the noun can serve, and in which slot."""
    found: list[tuple[Verb, str]] = []
    for verb in lexicon.verbs:
        if verb.frame in ROLE_FRAMES and noun.classes.intersection(verb.subject):
            found.append((verb, "subject"))
        slot = ROLE_SLOTS.get(verb.frame)
        if slot and noun.classes.intersection(verb.object):
            found.append((verb, slot))
    return found


def clause_about_place(draw: Draw, head: NounPhrase, who: Relative) -> Clause | None:
    noun = head.noun
    verbs = [v for v in draw.lexicon.verbs if noun.classes.intersection(v.where) and "person" in v.subject]
    if not verbs:
        return None
    verb = draw.pick(verbs)
    clause = draw_clause(draw, verb, mood=draw.pick(("past", "state" if verb.simple else "now")), plain=True)
    clause.negated = False
    clause.place = Prepositional(noun.where, noun.english_where, DATIVE, who)
    clause.front = "place"
    return clause
