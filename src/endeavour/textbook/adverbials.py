"""Draws adverbials: when, where, where to, how, with whom and why."""

from endeavour.textbook import numerals
from endeavour.textbook.draw import Draw
from endeavour.textbook.entries import Noun, Verb, Word
from endeavour.textbook.morphology_german import ACCUSATIVE, DATIVE, GENITIVE
from endeavour.textbook.phrases import possessive_of, some_person
from endeavour.textbook.trees import NounPhrase, Prepositional, Slot


def some_time(draw: Draw, use: str) -> Slot | None:
    """When, for one of the uses past, present (a habit), progressive and future."""
    dice = draw.random.random()
    number = draw.random.randint(1, 12)
    if dice < 0.5:
        word = draw.word("time", use)
        if "clock" in word.flags and draw.chance(0.3):
            clock = clock_time(draw)
            german, english = f"{word.german} {clock.german}", f"{word.english} {clock.english}"
            return Word(german, english, flags=word.flags)
        return word
    if use in ("past", "future") and dice < 0.62:
        unit = draw.pick(("minute", "hour", "day", "week", "month", "year"))
        return numerals.distance("ago" if use == "past" else "ahead", number, unit)
    if use == "present" or dice < 0.72:
        return clock_time(draw)
    if dice < 0.82:
        part = draw.word("daypart") if draw.chance(0.4) else None
        return numerals.on_weekday(draw.word("weekday"), part)
    if dice < 0.9:
        return numerals.date(draw.random.randint(1, 28), draw.word("month"))
    if use == "past" and dice < 0.95:
        preposition = draw.word("occasion")
        event = draw.noun_of("occasion")
        determiner = possessive_of(draw, None) if "personal" in event.classes else "the"
        case = GENITIVE if preposition.use == "gen" else DATIVE
        phrase = NounPhrase(event, determiner)
        return Prepositional(preposition.german, preposition.english, case, phrase)
    return numerals.in_period(draw.word("season" if draw.chance(0.5) else "month"))


def clock_time(draw: Draw, figures: bool = False) -> Word:
    if figures and draw.chance(0.4):
        return numerals.timetable(draw.random.randint(6, 23), draw.random.randint(1, 59))
    return numerals.at_clock(
        numerals.clock(draw.random.randint(1, 12), draw.pick((0, 0, 30, 30, 15, 45, 10, 20, 50, 5)))
    )


def some_manner(draw: Draw, verb: Verb) -> Word:
    """How something is done, for a verb with a manner."""
    return draw.word("manner", draw.pick(verb.manner))


def city_or_country(draw: Draw, kind: str, case: int) -> Slot:
    """in Berlin, in der Schweiz, in den Niederlanden; with the accusative nach Berlin, in die Schweiz."""
    word = draw.word(kind)
    english = f"{'in' if case == DATIVE else 'to'} {word.english}"
    if word.use:
        article = {"f": ("die", "der"), "p": ("die", "den")}[word.use][case == DATIVE]
        ending = "n" if word.use == "p" and case == DATIVE and word.german.endswith("e") else ""
        return Word(f"in {article} {word.german}{ending}", english)
    return Word(f"{'in' if case == DATIVE else 'nach'} {word.german}", english)


def some_place(draw: Draw, classes: tuple[str, ...], subject: Slot | None = None) -> Slot | None:
    """Where something happens."""
    if not classes:
        return None
    if ("city" in classes or "country" in classes) and draw.chance(0.5):
        return city_or_country(
            draw, draw.pick(("city", "city", "country")) if "country" in classes else "city", DATIVE
        )
    fixed = [a for a in draw.lexicon.words["place"] if a.use in classes or not a.use]
    if fixed and draw.chance(0.12):
        return draw.pick(fixed)
    noun = draw.noun(tuple(c for c in classes if c not in ("city", "country")))
    phrase = place_phrase(draw, noun, subject)
    return Prepositional(noun.where, noun.english_where, DATIVE, phrase)


def place_phrase(draw: Draw, noun: Noun, subject: Slot | None) -> NounPhrase:
    phrase = NounPhrase(noun)
    dice = draw.random.random()
    if dice < 0.12:
        phrase.determiner = "a"
    elif dice < 0.25 and draw.belongs(noun, "own_place"):
        phrase.determiner = possessive_of(draw, subject)
    elif dice < 0.3:
        phrase.determiner = "this"
    if draw.chance(0.25):
        word = draw.adjective(noun)
        phrase.adjectives = (word,) if word else ()
    return phrase


def some_direction(draw: Draw, classes: tuple[str, ...], subject: Slot | None) -> Slot:
    """Where somebody goes: into, onto, to."""
    geographic = tuple(c for c in classes if c in ("city", "country"))
    if geographic and draw.chance(0.5):
        return city_or_country(draw, draw.pick(geographic), ACCUSATIVE)
    if "home" in classes and draw.chance(0.2):
        return draw.lexicon.words["direction"][0]
    noun = draw.noun(tuple(c for c in classes if c not in geographic))
    phrase = place_phrase(draw, noun, subject)
    if not noun.whereto:  # a person or an event
        phrase = NounPhrase(noun, possessive_of(draw, subject) if "personal" in noun.classes else "the")
        return Prepositional("zu", "to", DATIVE, phrase)
    return Prepositional(noun.whereto, "to", DATIVE if noun.whereto == "zu" else ACCUSATIVE, phrase)


def position_near(draw: Draw, thing: Slot | None, case: int) -> Slot:
    """A two-way preposition with a landmark: dative for a place, accusative for a movement."""
    kinds = thing.noun.classes if isinstance(thing, NounPhrase) else frozenset[str]()
    if "vehicle" in kinds:
        landmarks, prepositions = "near_vehicles", ("vor", "hinter", "neben")
    elif "upright" in kinds or "container" in kinds:
        landmarks, prepositions = "near_things", ("auf", "auf", "neben", "vor", "hinter")
    else:
        landmarks, prepositions = "near_things", ("auf", "auf", "unter", "neben", "vor", "hinter")
    choice = draw.pick(prepositions)
    word = next(p for p in draw.lexicon.words["position"] if p.german == choice)
    noun = draw.noun_of("support" if choice in ("auf", "unter") else landmarks)
    return Prepositional(word.german, word.english, case, place_phrase(draw, noun, None))


def some_companion(draw: Draw, subject: Slot | None) -> Slot:
    word = draw.word("companion")
    case = DATIVE if word.use == "dat" else ACCUSATIVE
    return Prepositional(word.german, word.english, case, some_person(draw, subject, pronouns=0.3))


def by_vehicle(draw: Draw) -> Slot:
    noun = draw.noun_of("by_vehicle")
    return Prepositional("mit", "by", DATIVE, NounPhrase(noun, english_determiner=""))


def some_reason(draw: Draw) -> Slot:
    noun = draw.noun_of("reason")
    adjective = draw.adjective(noun) if draw.chance(0.4) else None
    phrase = NounPhrase(noun, "the", adjectives=(adjective,) if adjective else ())
    word = draw.lexicon.words["reason"][0]
    return Prepositional(word.german, word.english, GENITIVE, phrase)
