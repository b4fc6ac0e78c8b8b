"""Draws people and noun phrases that make sense. It knows no verbs and no adverbials."""

from endeavour.textbook.draw import Draw
from endeavour.textbook.entries import Adjective
from endeavour.textbook.trees import Name, NounPhrase, Pair, Phrase, Pronoun, Slot, gender_of

POSSESSIVES = {
    "I": "my", "you": "your", "he": "his", "she": "her", "we": "our", "you_all": "your_all", "they": "their",
    "you_formal": "your_formal",
}  # fmt: skip
PEOPLE = ("I", "you", "he", "she", "we", "they")
ONLY_DEFINITE = frozenset({"weather", "sky"})
BARE = frozenset({"sport", "language", "music"})


def some_name(draw: Draw) -> Name:
    word = draw.word("first")
    while word.german in draw.taken_names:
        word = draw.word("first")
    draw.taken_names.add(word.german)
    return Name(word.german, word.english, word.use)


def titled_name(draw: Draw) -> Name:
    word = draw.word("family")
    title = draw.pick(("Mr.", "Mrs."))
    return Name(word.german, word.english, "m" if title == "Mr." else "f", title)


def some_pronoun(draw: Draw, avoid: Slot | None = None) -> Pronoun:
    """A personal pronoun; not one that overlaps with `avoid` (I see us)."""
    while True:
        key = draw.pick(PEOPLE)
        if key == "you":
            key = draw.you
        taken = avoid.key if isinstance(avoid, Pronoun) else ""
        if isinstance(avoid, Pair) and isinstance(avoid.second, Pronoun):
            taken = "I"
        if key != taken and not {key, taken} <= {"I", "we"}:
            return Pronoun(key)


def pronoun_key(phrase: Slot | None) -> str:
    """The pronoun that stands for a phrase."""
    if isinstance(phrase, Pronoun):
        return phrase.key
    if isinstance(phrase, Pair):
        return "we" if isinstance(phrase.second, Pronoun) else "they"
    if isinstance(phrase, Name):
        return "he" if phrase.gender == "m" else "she"
    assert isinstance(phrase, NounPhrase)
    gender = gender_of(phrase)
    if gender in "mf" and "person" in phrase.noun.classes:
        return "he" if gender == "m" else "she"
    return "they" if gender == "p" else "it_" + gender


def possessive_of(draw: Draw, owner: Slot | None) -> str:
    """The possessive of the subject, or of anybody."""
    person = isinstance(owner, NounPhrase) and "person" in owner.noun.classes
    if person or isinstance(owner, Pronoun | Name | Pair):
        key = pronoun_key(owner)
        if key in POSSESSIVES:
            return POSSESSIVES[key]
    return draw.pick(("my", "my", POSSESSIVES[draw.you], "his", "her", "our"))


def some_person(draw: Draw, subject: Slot | None, pronouns: float = 0.25) -> Phrase:
    """Somebody as an object or in a prepositional phrase."""
    dice = draw.random.random()
    if dice < pronouns:
        return some_pronoun(draw, avoid=subject or Pronoun("nobody"))
    if dice < pronouns + 0.1:
        return some_name(draw)
    if dice < pronouns + 0.15:
        return titled_name(draw)
    return noun_phrase(draw, ("person",), subject)


def some_subject(draw: Draw, classes: tuple[str, ...]) -> Phrase:
    """A subject of one of the classes; people are often pronouns and names."""
    if "person" in classes:
        dice = draw.random.random()
        if dice < 0.36:
            return some_pronoun(draw)
        if dice < 0.5:
            return some_name(draw)
        if dice < 0.54:
            return titled_name(draw)
        if dice < 0.57:
            return couple(draw)
        if dice < 0.58:
            return Pronoun(draw.pick(("somebody", "nobody")))
    if "family" in classes and draw.chance(0.3):
        return some_pronoun(draw)
    return noun_phrase(draw, classes, adjectives=0.22)


def couple(draw: Draw) -> Pair:
    """Anna and Paul; my brother and I."""
    return Pair(some_name(draw), Pronoun("I") if draw.chance(0.3) else some_name(draw))


def noun_phrase(
    draw: Draw,
    classes: tuple[str, ...],
    subject: Slot | None = None,
    adjectives: float = 0.4,
    indefinite: float = 0.4,
) -> NounPhrase:
    """A noun of one of the classes with what may go before it."""
    noun = draw.noun(classes)
    phrase = NounPhrase(noun)
    determine(draw, phrase, subject, indefinite)
    if draw.chance(adjectives) and phrase.determiner != "which":
        word = draw.adjective(noun)
        if word is not None:
            phrase.adjectives = (word,)
            compare(draw, phrase, word)
    return phrase


def compare(draw: Draw, phrase: NounPhrase, word: Adjective) -> None:
    """a bigger bag, the biggest bag."""
    if word.comparative and not phrase.count and draw.chance(0.14):
        if phrase.determiner == "the":
            phrase.degree = "superlative"
        elif phrase.determiner == "a":
            phrase.degree = "comparative"


def determine(draw: Draw, phrase: NounPhrase, subject: Slot | None, indefinite: float) -> None:
    noun = phrase.noun
    kinds = noun.classes
    # An English plural that looks like the singular (sheep) would not tell the number.
    countable = bool(noun.plural) and noun.english_plural != noun.english
    dice = draw.random.random()
    if kinds & ONLY_DEFINITE:
        return
    if kinds & BARE:
        phrase.determiner = ""
        return
    if "family" in kinds:
        phrase.determiner = possessive_of(draw, subject if draw.chance(0.7) else None)
        phrase.plural = noun.gender == "p" or ("only_one" not in kinds and dice < 0.2)
        return
    if "personal" in kinds:
        phrase.determiner = possessive_of(draw, subject)
        return
    if noun.mass:
        phrase.determiner = "" if dice < indefinite + 0.2 or "mass" in kinds else "the"
        return
    if noun.gender == "p":
        phrase.plural = True
        phrase.determiner = draw.pick(("the", "this", "many", "")) if dice < 0.6 else "the"
        return
    if dice < indefinite:
        make_indefinite(draw, phrase, countable)
    elif dice < indefinite + (0.15 if "relation" in kinds else 0.28):
        phrase.plural = countable and draw.chance(0.18)
    elif dice < indefinite + 0.36:
        phrase.determiner = "this"
        phrase.plural = countable and draw.chance(0.3)
    elif draw.belongs(noun, "ownable"):
        phrase.determiner = possessive_of(draw, subject if draw.chance(0.8) else None)
        phrase.plural = countable and draw.chance(0.2)
    elif draw.chance(0.1):
        phrase.determiner = "every"


def make_indefinite(draw: Draw, phrase: NounPhrase, countable: bool) -> None:
    dice = draw.random.random()
    phrase.determiner = "a"
    if not countable or dice < 0.6:
        return
    phrase.plural = True
    if dice < 0.75:
        phrase.determiner = ""
    elif dice < 0.9:
        phrase.count = draw.random.randint(2, 12) if draw.chance(0.92) else draw.random.randint(13, 99)
        phrase.determiner = ""
    else:
        phrase.determiner = draw.pick(("many", "some", "several", "all"))
