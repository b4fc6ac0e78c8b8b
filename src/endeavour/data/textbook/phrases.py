"""Draws phrases that make sense: nouns by class, determiners, adjectives, adverbials. It builds no clauses.

Every draw goes through one random.Random, and the words drawn are noted in `Draw.used`, so that the generator
can tell which nouns, verbs and adjectives a sentence holds together.
"""

import random
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

from endeavour.data.textbook import numerals
from endeavour.data.textbook.entries import Adjective, Lexicon, Noun, Verb, Word
from endeavour.data.textbook.morphology_german import ACCUSATIVE, DATIVE, GENITIVE
from endeavour.data.textbook.trees import Fixed, Name, NounPhrase, Pair, Phrase, Prepositional, Pronoun, Slot

T = TypeVar("T")

POSSESSIVES = {"I": "my", "he": "his", "she": "her", "we": "our", "they": "their"}
PEOPLE = ("I", "you", "he", "she", "we", "they")
NO_PLURAL = frozenset({"Schaf", "Haar"})  # the English plural looks like the singular
ONLY_DEFINITE = frozenset({"weather", "sky"})
BARE = frozenset({"sport", "language", "music"})
OWNABLE = frozenset(
    {
        "thing",
        "clothing",
        "own",
        "pet",
        "furniture",
        "relation",
        "dwelling",
        "room",
        "home",
        "abstract",
        "trip",
    }
    | {"work_done", "Termin", "text", "written", "instrument"}
)
STATES = frozenset(
    ["müde", "krank", "hungrig", "durstig", "glücklich", "traurig", "nervös", "zufrieden", "gesund"]
)


class Draw:
    """Random phrases from the lexicon.

    `you` is who the sentence speaks to: you (du), you_all (ihr) or you_formal (Sie); one sentence never mixes.
    """

    def __init__(self, lexicon: Lexicon, seed: int) -> None:
        self.lexicon = lexicon
        self.random = random.Random(seed)
        self.you = "you"
        self.nouns: list[str] = []
        self.verbs: list[str] = []
        self.adjectives: list[str] = []
        self.names: set[str] = set()
        self._nouns: dict[tuple[str, ...], list[Noun]] = {}
        self._adjectives: dict[Noun, list[Adjective]] = {}
        self.by_german = {noun.german: noun for noun in lexicon.nouns}

    def start(self, you: str) -> None:
        """Forget the words of the last sentence."""
        self.you = you
        self.nouns.clear()
        self.verbs.clear()
        self.adjectives.clear()
        self.names.clear()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random.random() * len(items))]

    # Words ------------------------------------------------------------------------------------------------

    def nouns_of(self, classes: tuple[str, ...]) -> list[Noun]:
        """Nouns that belong to one of the classes, or are named themselves."""
        found = self._nouns.get(classes)
        if found is None:
            wanted = frozenset(classes)
            found = self._nouns[classes] = [n for n in self.lexicon.nouns if n.classes & wanted]
        return found

    def noun(self, classes: tuple[str, ...]) -> Noun:
        noun = self.pick(self.nouns_of(classes))
        self.nouns.append(noun.german)
        return noun

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
        self.adjectives.append(word.german)
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

    # People -----------------------------------------------------------------------------------------------

    def name(self) -> Name:
        word = self.pick(self.first_names)
        while word.german in self.names:
            word = self.pick(self.first_names)
        self.names.add(word.german)
        return Name(word.german, word.english, word.use)

    def titled(self) -> Name:
        word = self.pick(self.family_names)
        title = self.pick(("Mr.", "Mrs."))
        return Name(word.german, word.english, "m" if title == "Mr." else "f", title)

    def pronoun(self, avoid: Slot | None = None) -> Pronoun:
        """A personal pronoun; not one that overlaps with `avoid` (I see us)."""
        while True:
            key = self.pick(PEOPLE)
            if key == "you":
                key = self.you
            taken = avoid.key if isinstance(avoid, Pronoun) else ""
            if isinstance(avoid, Pair) and isinstance(avoid.second, Pronoun):
                taken = "I"
            if key != taken and not {key, taken} <= {"I", "we"}:
                return Pronoun(key)

    def possessive(self, owner: Slot | None = None) -> str:
        """The possessive of the subject, or of anybody."""
        if isinstance(owner, Pronoun):
            if owner.key in POSSESSIVES:
                return POSSESSIVES[owner.key]
            if owner.key.startswith("you"):
                return owner.key.replace("you", "your")
        if isinstance(owner, Name):
            return "his" if owner.gender == "m" else "her"
        if isinstance(owner, Pair):
            return "our" if isinstance(owner.second, Pronoun) else "their"
        if isinstance(owner, NounPhrase) and "person" in owner.noun.classes:
            if owner.plural or owner.count > 1 or owner.noun.gender == "p":
                return "their"
            if owner.noun.gender != "n":
                return "his" if owner.noun.gender == "m" and not owner.feminine else "her"
        own = self.you.replace("you", "your")
        return self.pick(("my", "my", own, "his", "her", "our"))

    def person(self, subject: Slot | None = None, pronouns: float = 0.25) -> Phrase:
        """Somebody as an object or in a prepositional phrase."""
        dice = self.random.random()
        if dice < pronouns:
            return self.pronoun(avoid=subject or Pronoun("nobody"))
        if dice < pronouns + 0.1:
            return self.name()
        if dice < pronouns + 0.15:
            return self.titled()
        return self.noun_phrase(("person",), subject)

    def subject(self, classes: tuple[str, ...]) -> Phrase:
        """A subject of one of the classes; people are often pronouns and names."""
        if "person" in classes:
            dice = self.random.random()
            if dice < 0.36:
                return self.pronoun()
            if dice < 0.5:
                return self.name()
            if dice < 0.54:
                return self.titled()
            if dice < 0.57:
                return self.couple()
            if dice < 0.58:
                return Pronoun(self.pick(("somebody", "nobody")))
        if "family" in classes and self.chance(0.3):
            return self.pronoun()
        return self.noun_phrase(classes, adjectives=0.22)

    def couple(self) -> Pair:
        """Anna and Paul; my brother and I."""
        first = self.name()
        if self.chance(0.3):
            return Pair(first, Pronoun("I"))
        return Pair(first, self.name())

    # Noun phrases -----------------------------------------------------------------------------------------

    def noun_phrase(
        self,
        classes: tuple[str, ...],
        subject: Slot | None = None,
        adjectives: float = 0.4,
        indefinite: float = 0.4,
    ) -> NounPhrase:
        """A noun of one of the classes with what may go before it."""
        noun = self.noun(classes)
        phrase = NounPhrase(noun)
        self._determine(phrase, subject, indefinite)
        if self.chance(adjectives) and phrase.determiner != "which":
            word = self.adjective(noun)
            if word is not None:
                phrase.adjectives = (word,)
                self._compare(phrase, word)
        return phrase

    def _compare(self, phrase: NounPhrase, word: Adjective) -> None:
        """a bigger bag, the biggest bag."""
        if word.comparative and not phrase.count and self.chance(0.14):
            if phrase.determiner == "the":
                phrase.degree = "superlative"
            elif phrase.determiner == "a":
                phrase.degree = "comparative"

    def _determine(self, phrase: NounPhrase, subject: Slot | None, indefinite: float) -> None:
        noun = phrase.noun
        kinds = noun.classes
        countable = bool(noun.plural) and noun.german not in NO_PLURAL
        dice = self.random.random()
        if kinds & ONLY_DEFINITE:
            return
        if kinds & BARE:
            phrase.determiner = ""
            return
        if "family" in kinds:
            phrase.determiner = self.possessive(subject if self.chance(0.7) else None)
            phrase.plural = noun.gender == "p" or (noun.german not in ("Vater", "Mutter") and dice < 0.2)
            return
        if noun.german == "Geburtstag":
            phrase.determiner = self.possessive(subject)
            return
        if noun.mass:
            phrase.determiner = "" if dice < indefinite + 0.2 or "mass" in kinds else "the"
            return
        if noun.gender == "p":
            phrase.plural = True
            phrase.determiner = self.pick(("the", "these", "many", "")) if dice < 0.6 else "the"
            phrase.determiner = "this" if phrase.determiner == "these" else phrase.determiner
            return
        if dice < indefinite:
            self._indefinite(phrase, countable)
        elif dice < indefinite + (0.15 if "relation" in kinds else 0.28):
            phrase.plural = countable and self.chance(0.18)
        elif dice < indefinite + 0.36:
            phrase.determiner = "this"
            phrase.plural = countable and self.chance(0.3)
        elif kinds & OWNABLE:
            phrase.determiner = self.possessive(subject if self.chance(0.8) else None)
            phrase.plural = countable and self.chance(0.2)
        elif self.chance(0.1):
            phrase.determiner = "every"

    def _indefinite(self, phrase: NounPhrase, countable: bool) -> None:
        dice = self.random.random()
        phrase.determiner = "a"
        if not countable or dice < 0.6:
            return
        phrase.plural = True
        if dice < 0.75:
            phrase.determiner = ""
        elif dice < 0.9:
            phrase.count = self.random.randint(2, 12) if self.chance(0.92) else self.random.randint(13, 99)
            phrase.determiner = ""
        else:
            phrase.determiner = self.pick(("many", "some", "several", "all"))

    # Adverbials -------------------------------------------------------------------------------------------

    def time(self, use: str) -> Slot | None:
        """When, for one of the uses past, present (a habit), progressive and future."""
        dice = self.random.random()
        number = self.random.randint(1, 12)
        if dice < 0.5:
            word = self.pick(self.adverbs("time", use))
            time = Fixed(word.german, word.english)
            if word.english in ("today", "yesterday", "tomorrow", "every day") and self.chance(0.3):
                clock = self.clock()
                return Fixed(f"{time.german} {clock.german}", f"{time.english} {clock.english}")
            return time
        if use in ("past", "future") and dice < 0.62:
            unit = self.pick(("minute", "hour", "day", "week", "month", "year"))
            return numerals.ago(number, unit) if use == "past" else numerals.ahead(number, unit)
        if use == "present" or dice < 0.72:
            return self.clock()
        calendar = self.calendar
        if dice < 0.82:
            part = self.pick(calendar["daypart"]) if self.chance(0.4) else None
            return numerals.on_weekday(self.pick(calendar["weekday"]), part)
        if dice < 0.9:
            return self.date()
        if use == "past" and dice < 0.95:
            preposition = self.pick(self.prepositions["occasion"])
            event = self.noun(("feast", "Prüfung", "Konzert", "Film", "Kurs", "Reise", "Spiel"))
            determiner = self.possessive() if event.german == "Geburtstag" else "the"
            case = GENITIVE if preposition.use == "gen" else DATIVE
            phrase = NounPhrase(event, determiner)
            return Prepositional(preposition.german, preposition.english, case, phrase)
        return numerals.in_period(self.pick(calendar["season" if self.chance(0.5) else "month"]))

    def clock(self, figures: bool = False) -> Fixed:
        if figures and self.chance(0.4):
            return numerals.timetable(self.random.randint(6, 23), self.random.randint(1, 59))
        return numerals.at_clock(
            numerals.clock(self.random.randint(1, 12), self.pick((0, 0, 30, 30, 15, 45, 10, 20, 50, 5)))
        )

    def date(self) -> Fixed:
        return numerals.date(self.random.randint(1, 28), self.pick(self.calendar["month"]))

    def manner(self, verb: Verb) -> Slot | None:
        if not verb.manner:
            return None
        word = self.pick(self.adverbs("manner", self.pick(verb.manner)))
        return Fixed(word.german, word.english)

    def geography(self, kind: str, case: int) -> Slot:
        """in Berlin, in der Schweiz; with the accusative nach Berlin, in die Schweiz."""
        word = self.pick([p for p in self.lexicon.places if p.kind == kind])
        english = f"{'in' if case == DATIVE else 'to'} {word.english}"
        if word.use:
            article = {"f": ("die", "der"), "p": ("die", "den")}[word.use][case == DATIVE]
            return Fixed(f"in {article} {word.german}", english)
        return Fixed(f"{'in' if case == DATIVE else 'nach'} {word.german}", english)

    def place(self, classes: tuple[str, ...], subject: Slot | None = None) -> Slot | None:
        """Where something happens."""
        if not classes:
            return None
        if ("city" in classes or "country" in classes) and self.chance(0.5):
            return self.geography(
                self.pick(("city", "city", "country")) if "country" in classes else "city", DATIVE
            )
        fixed = [a for a in self.adverbs("place") if a.use in classes or not a.use]
        if len(fixed) > 0 and self.chance(0.12):
            word = self.pick(fixed)
            return Fixed(word.german, word.english)
        noun = self.noun(tuple(c for c in classes if c not in ("city", "country")))
        phrase = self._place_phrase(noun, subject)
        return Prepositional(noun.where, noun.english_where, DATIVE, phrase)

    def _place_phrase(self, noun: Noun, subject: Slot | None) -> NounPhrase:
        phrase = NounPhrase(noun)
        dice = self.random.random()
        if dice < 0.12:
            phrase.determiner = "a"
        elif dice < 0.25 and noun.classes & {"room", "home", "dwelling", "work", "furniture"}:
            phrase.determiner = self.possessive(subject)
        elif dice < 0.3:
            phrase.determiner = "this"
        if self.chance(0.25):
            word = self.adjective(noun)
            phrase.adjectives = (word,) if word else ()
        return phrase

    def direction(self, classes: tuple[str, ...], subject: Slot | None = None) -> Slot:
        """Where somebody goes: into, onto, to."""
        geographic = tuple(c for c in classes if c in ("city", "country"))
        if geographic and self.chance(0.5):
            return self.geography(self.pick(geographic), ACCUSATIVE)
        if "home" in classes and self.chance(0.2):
            word = self.adverbs("direction")[0]
            return Fixed(word.german, word.english)
        noun = self.noun(tuple(c for c in classes if c not in geographic))
        phrase = self._place_phrase(noun, subject)
        if not noun.whereto:  # a person or an event
            phrase = NounPhrase(noun, self.possessive(subject) if noun.german == "Geburtstag" else "the")
            return Prepositional("zu", "to", DATIVE, phrase)
        return Prepositional(noun.whereto, "to", DATIVE if noun.whereto == "zu" else ACCUSATIVE, phrase)

    def position(self, thing: Slot | None, case: int) -> Slot:
        """A two-way preposition with a landmark: dative for a place, accusative for a movement."""
        kinds = thing.noun.classes if isinstance(thing, NounPhrase) else frozenset[str]()
        if kinds & {"vehicle"}:
            landmarks, prepositions = ("dwelling", "town"), ("vor", "hinter", "neben")
        elif "upright" in kinds or "container" in kinds:
            landmarks, prepositions = ("furniture",), ("auf", "auf", "neben", "vor", "hinter")
        else:
            landmarks, prepositions = ("furniture",), ("auf", "auf", "unter", "neben", "vor", "hinter")
        choice = self.pick(prepositions)
        word = next(p for p in self.prepositions["position"] if p.german == choice)
        noun = self.noun(("surface", "Sofa", "Stuhl") if choice in ("auf", "unter") else landmarks)
        return Prepositional(word.german, word.english, case, self._place_phrase(noun, None))

    def companion(self, subject: Slot | None) -> Slot:
        word = self.pick(self.prepositions["companion"])
        case = DATIVE if word.use == "dat" else ACCUSATIVE
        return Prepositional(word.german, word.english, case, self.person(subject, pronouns=0.3))

    def vehicle(self) -> Slot:
        noun = self.noun(("Auto", "Bus", "Zug", "Flugzeug", "Schiff"))
        return Prepositional("mit", "by", DATIVE, NounPhrase(noun, english_determiner=""))

    def reason(self) -> Slot:
        noun = self.noun(("Wetter", "Arbeit", "Prüfung", "Problem", "Termin", "Kind", "Hochzeit"))
        phrase = NounPhrase(noun, "the")
        if self.chance(0.4):
            word = self.adjective(noun)
            phrase.adjectives = (word,) if word else ()
        word = self.prepositions["reason"][0]
        return Prepositional(word.german, word.english, GENITIVE, phrase)
