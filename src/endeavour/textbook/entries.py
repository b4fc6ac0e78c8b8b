"""The entries of the lexicon as records, one class for each kind of word. Reads no files: see reading.py.

What each field means is explained in lexicon/README.md, under the column of the same name.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun with its dictionary forms; `plural` is empty for a mass noun, gender "p" means plural only."""

    german: str
    gender: str
    genitive: str
    plural: str
    english: str
    english_plural: str
    classes: frozenset[str]
    where: str
    whereto: str
    english_where: str
    feminine: str

    @property
    def mass(self) -> bool:
        return not self.plural


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb: `prefix` is split off in main clauses, `reflexive` is "", "accusative" or "dative"."""

    german: str
    base: str
    prefix: str
    reflexive: str
    third_person: str
    auxiliary: str
    participle: str
    english: str
    english_past: str
    english_participle: str
    frame: str
    preposition: str
    preposition_case: str
    subject: tuple[str, ...]
    object: tuple[str, ...]
    english_preposition: str
    where: tuple[str, ...]
    manner: tuple[str, ...]
    flags: frozenset[str]

    @property
    def simple(self) -> bool:
        """Whether English has no progressive form of it (I know)."""
        return "simple" in self.flags


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective; `stem` takes the endings, `comparative` is empty where the word has none."""

    german: str
    stem: str
    comparative: str
    superlative: str
    english: str
    english_comparative: str
    classes: tuple[str, ...]
    flags: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """A word or phrase without inflection: an adverb, a name, a preposition, a clock time, a price.

    `use` is the use of an adverb, the gender of a name, the article of a place or the case of a preposition.
    """

    german: str
    english: str
    use: str = ""
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """A modal verb; `phrase` tells an English head with "to" (have to) from a bare auxiliary (can)."""

    german: str
    english: str
    english_past: str
    phrase: bool


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """What may be described, or what there is and where: classes of nouns."""

    what: tuple[str, ...]
    where: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """All entries, in the order of the files."""

    nouns: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    modals: tuple[Modal, ...]
    words: dict[
        str, tuple[Word, ...]
    ]  # kind ("month", "companion") → adverbs, names, places, prepositions, ...
    finite_forms: dict[tuple[str, str], tuple[str, ...]]  # (verb, "present" or "past") → six persons
    noun_groups: dict[str, tuple[str, ...]]  # group → noun classes and German nouns
    verb_groups: dict[str, tuple[Verb, ...]]
    scenes: dict[str, tuple[Scene, ...]]  # "being" or "existence" → what is drawn for it
