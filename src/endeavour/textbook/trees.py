"""The sentence as a tree that belongs to neither language; german.py and english.py each read the same tree.

Phrases fill the slots of a Clause, and a Sentence joins clauses. Trees are plain records: they check nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from endeavour.textbook.entries import Adjective, Modal, Noun, Verb, Word


@dataclass(slots=True)
class Pronoun:
    """A pronoun by its English name; "it" carries the German gender: it_m, it_f, it_n."""

    key: str


@dataclass(slots=True)
class Name:
    """A first name ("Anna"), or with a title a family name ("Mr.", "Weber")."""

    german: str
    english: str
    gender: str
    title: str = ""


@dataclass(slots=True)
class NounPhrase:
    """Determiner, number, adjectives and noun, with an owner or a relative clause.

    `determiner` is the English word ("" for none); `english_determiner` is set where English has another one
    than German (ich putze mir die Zähne: my teeth). `count` puts a numeral in the determiner's place.
    """

    noun: Noun
    determiner: str = "the"
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    degree: str = "positive"
    count: int = 0
    english_determiner: str | None = None
    owner: "Phrase | None" = None
    relative: "Clause | None" = None
    attribute: "Slot | None" = None  # the biggest house in the city
    feminine: bool = False


@dataclass(slots=True)
class Pair:
    """Two phrases joined by "and"."""

    first: "Phrase"
    second: "Phrase"


@dataclass(slots=True)
class Relative:
    """The relative pronoun: gender ("p" for the plural) of what it refers to, and whether that is a person."""

    gender: str
    person: bool


@dataclass(slots=True)
class Prepositional:
    """A preposition with its phrase; case is that of the German phrase."""

    german: str
    english: str
    case: int
    phrase: "Phrase"


@dataclass(slots=True)
class Property:
    """An adjective in the predicate: very big, bigger than the dog, as big as the dog."""

    adjective: Adjective
    intensifier: Word | None = None
    comparison: str = ""  # "", "than" or "as"
    standard: "Phrase | None" = None


Phrase = Pronoun | Name | NounPhrase | Pair | Relative
Slot = Phrase | Word | Prepositional | Property


@dataclass(slots=True)
class Clause:
    """A clause by grammatical function.

    tense: present, past, perfect, pluperfect, future or since (I have been living here for a year).
    attitude: "", "like to" (gern) or "would rather" (lieber).
    aspect: "", already, just, never, yet or ever, with the perfect.
    front: the slot that stands first instead of the subject, also for question and relative words.
    """

    verb: Verb
    subject: Slot | None = None
    direct: Slot | None = None
    indirect: Slot | None = None
    oblique: Slot | None = None
    predicate: Slot | None = None
    direction: Slot | None = None
    place: Slot | None = None
    manner: Slot | None = None
    companion: Slot | None = None
    time: Slot | None = None
    frequency: Word | None = None
    reason: Slot | None = None
    tense: str = "present"
    modal: Modal | None = None
    progressive: bool = False
    negated: bool = False
    attitude: str = ""
    aspect: str = ""
    front: str = ""


@dataclass(slots=True)
class Subordinate:
    """A dependent clause; form is finite, infinitive (zu), purpose (um ... zu) or question (the clause's front)."""

    form: str
    clause: Clause
    german: str = ""
    english: str = ""
    first: bool = False


@dataclass(slots=True)
class Sentence:
    """One sentence.

    kind: statement, question or imperative; `addressee` is the pronoun of an imperative (you, you_all,
    you_formal); `joined` is a second main clause with its conjunction.
    """

    main: Clause
    kind: str = "statement"
    addressee: str = ""
    vocative: Phrase | None = None
    please: bool = False
    subordinate: Subordinate | None = None
    joined: Clause | None = None
    conjunction: Word | None = None
    inverted: bool = False  # the conjunction takes the first place in German: deshalb bleiben wir


PERSONS = {"I": 0, "you": 1, "we": 3, "you_all": 4, "they": 5, "you_formal": 5}  # all others are person 2


def gender_of(phrase: Slot) -> str:
    """m, f, n, or p for a plural."""
    if isinstance(phrase, NounPhrase):
        return "p" if phrase.plural or phrase.count > 1 else "f" if phrase.feminine else phrase.noun.gender
    if isinstance(phrase, Name | Relative):
        return phrase.gender
    return "p" if isinstance(phrase, Pair) else "n"


def person_of(phrase: Slot | None) -> int:
    """0-5 for I, you, he, we, you, they; the polite Sie is 5, and English has the forms of "you" there, too."""
    if isinstance(phrase, Pronoun):
        return PERSONS.get(phrase.key, 2)
    if isinstance(phrase, Pair) and isinstance(phrase.second, Pronoun):
        return 3
    return 5 if phrase is not None and gender_of(phrase) == "p" else 2


def words_of(part: object) -> Iterator[Noun | Verb | Adjective]:
    """The nouns, verbs and adjectives of a sentence or of any part of it."""
    if isinstance(part, Noun | Verb | Adjective):
        yield part
        return
    if isinstance(part, NounPhrase):
        yield from part.adjectives
    for name in getattr(part, "__slots__", ()):
        inner = getattr(part, name)
        if inner is not None and not isinstance(inner, str):
            yield from words_of(inner)
