"""Draws clauses: a verb, what it governs, a tense and the adverbials that suit it. It joins no clauses."""

from endeavour.textbook.adverbials import (
    by_vehicle,
    place_phrase,
    position_near,
    some_companion,
    some_direction,
    some_manner,
    some_place,
    some_reason,
)
from endeavour.textbook.draw import Draw
from endeavour.textbook.entries import Verb
from endeavour.textbook.morphology_german import ACCUSATIVE, DATIVE
from endeavour.textbook.phrases import (
    POSSESSIVES,
    noun_phrase,
    possessive_of,
    pronoun_key,
    some_person,
    some_subject,
)
from endeavour.textbook.tenses import set_tense
from endeavour.textbook.trees import Clause, NounPhrase, Prepositional, Pronoun, Slot, person_of

FRAMES = {  # how often each comes
    "acc": 44, "acc?": 5, "dat": 8, "dat acc": 9, "oblique": 17, "dir": 8, "loc": 5, "loc?": 10, "-": 7,
    "onto": 2, "acc onto": 3, "acc wall": 1, "on": 6, "swap": 5, "acc body": 2,
}  # fmt: skip
FRAME_NAMES = tuple(name for name, weight in FRAMES.items() for _ in range(weight))


def some_verb(draw: Draw) -> Verb:
    return draw.pick(draw.verbs_by_frame[draw.pick(FRAME_NAMES)])


def human_verb(draw: Draw) -> Verb:
    """A verb whose subject can be any person."""
    while True:
        verb = some_verb(draw)
        if "person" in verb.subject and verb.frame != "swap":
            return verb


def voluntary_verb(draw: Draw) -> Verb:
    """A verb for what somebody can be told to do or try to do."""
    while True:
        verb = human_verb(draw)
        if not verb.simple and verb.frame not in ("loc", "on") and "uncommanded" not in verb.flags:
            return verb


def draw_clause(
    draw: Draw, verb: Verb | None = None, subject: Slot | None = None, mood: str = "", plain: bool = False
) -> Clause:
    """A clause with its complements, tense and adverbials.

    Args:
        verb: the verb, else any that takes complements of its own.
        subject: a person that the verb accepts, else drawn.
        mood: see `set_tense`; drawn if empty.
        plain: leave out adverbials, negation and fronting.
    """
    verb = verb or some_verb(draw)
    tree = Clause(verb)
    if verb.frame == "swap":
        tree.indirect = subject or some_subject(draw, verb.object)
        tree.subject = noun_phrase(draw, verb.subject, tree.indirect, indefinite=0.0)
    else:
        tree.subject = subject or some_subject(draw, verb.subject)
    add_complements(draw, tree)
    set_tense(draw, tree, mood, plain)
    if not plain:
        add_adverbials(draw, tree)
        front_something(draw, tree)
    return tree


def add_complements(draw: Draw, tree: Clause) -> None:
    verb, subject = tree.verb, tree.subject
    match verb.frame:
        case "acc":
            tree.direct = object_of(draw, verb, subject)
        case "acc?":
            if draw.chance(0.85):
                tree.direct = object_of(draw, verb, subject)
        case "dat":
            tree.indirect = some_person(draw, subject, pronouns=0.35)
        case "dat acc":
            tree.direct = object_of(draw, verb, subject)
            tree.indirect = some_person(draw, subject, pronouns=0.4)
        case "oblique":
            tree.oblique = object_of(draw, verb, subject)
        case "dir":
            tree.direction = some_direction(draw, verb.object, subject)
        case "loc":
            tree.place = some_place(draw, verb.where, subject)
        case "on":
            tree.place = position_near(draw, subject, DATIVE)
        case "onto":
            tree.direction = onto_something(draw, verb, subject)
        case "acc onto":
            tree.direct = object_of(draw, verb, subject)
            tree.direction = onto_something(draw, verb, tree.direct)
        case "acc wall":
            tree.direct = object_of(draw, verb, subject)
            tree.direction = to_wall(draw)
        case "acc body":
            tree.direct = part_of_body(draw, verb, subject)
        case _:  # "swap" has its own already, and the others have none
            pass


def object_of(draw: Draw, verb: Verb, subject: Slot | None) -> Slot:
    people = "person" in verb.object
    if "anything" in verb.flags and not people and draw.chance(0.05):
        pronoun = Pronoun(draw.pick(("something", "nothing")))
        return Pronoun("they") if subject == Pronoun("nobody") else pronoun  # nobody reads them
    if people and (len(verb.object) == 1 or draw.chance(0.35)):
        return some_person(draw, subject)
    classes = tuple(c for c in verb.object if c != "person")
    phrase = noun_phrase(draw, classes, subject)
    if "no_article" in verb.flags and "instrument" in phrase.noun.classes:
        return NounPhrase(phrase.noun, "", english_determiner="the")
    if "definite" in verb.flags and phrase.determiner == "a":
        phrase.determiner, phrase.count = "the", 0
    return phrase


def onto_something(draw: Draw, verb: Verb, thing: Slot | None) -> Slot:
    """Where `thing` gets to: onto a seat with verbs of sitting down, else onto something, or near it."""
    if verb.object != ("seat",):
        return position_near(draw, thing, ACCUSATIVE)
    noun = draw.noun(("seat",))
    return Prepositional(noun.whereto, noun.english_where, ACCUSATIVE, place_phrase(draw, noun, None))


def to_wall(draw: Draw) -> Slot:
    word = draw.word("wall")
    landmark = "Wand" if word.german == "an" else draw.pick(draw.lexicon.noun_groups["below_pictures"])
    return Prepositional(word.german, word.english, ACCUSATIVE, NounPhrase(draw.noun_named[landmark]))


def part_of_body(draw: Draw, verb: Verb, subject: Slot | None) -> Slot:
    """What people wash and the like, of their own: die Hände, my hands."""
    noun = draw.noun(verb.object)
    own = possessive_of(draw, subject)
    if pronoun_key(subject) not in POSSESSIVES:  # a child, nobody
        girl = isinstance(subject, NounPhrase) and "Mädchen" in subject.noun.classes
        own = "her" if girl else "their"
    if "only_one" in noun.classes and person_of(subject) > 2:
        noun = draw.noun_of("washed_by_several")
    return NounPhrase(noun, "the", "only_one" not in noun.classes, english_determiner=own)


def add_adverbials(draw: Draw, tree: Clause) -> None:
    verb = tree.verb
    heavy = sum(s is not None for s in (tree.time, tree.direct, tree.indirect, tree.direction, tree.oblique))
    if tree.place is None and verb.where and draw.chance(0.5 if heavy < 2 else 0.22):
        tree.place = some_place(draw, verb.where, tree.subject)
    elif (
        verb.manner
        and not tree.negated
        and not tree.aspect
        and not tree.frequency
        and draw.chance(0.45 if heavy < 2 else 0.25)
    ):
        tree.manner = some_manner(draw, verb)
    elif "company" in verb.flags and not tree.negated and draw.chance(0.3):
        tree.companion = some_companion(draw, tree.subject)
    elif "by_vehicle" in verb.flags and not tree.negated and draw.chance(0.45):
        tree.companion = by_vehicle(draw)
    if heavy < 2 and tree.place is None and not tree.negated and not verb.simple and draw.chance(0.03):
        tree.reason = some_reason(draw)


def front_something(draw: Draw, tree: Clause) -> None:
    """Sometimes the time, the place or the reason comes first."""
    if isinstance(tree.subject, Pronoun) and tree.subject.key in ("nobody", "somebody"):
        return
    if tree.time is not None and tree.tense != "since" and draw.chance(0.4):
        tree.front = "time"
    elif tree.place is not None and tree.verb.frame != "loc" and not tree.negated and draw.chance(0.2):
        tree.front = "place"
    elif tree.reason is not None and draw.chance(0.4):
        tree.front = "reason"
