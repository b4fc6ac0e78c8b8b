"""English inflection: verbs, comparison, articles and pronouns. It knows no German and no word order.

Persons are 0-5 for I, you, he, we, you, they.
"""

from endeavour.textbook.entries import Adjective, Verb

VOWELS = "aeiou"
SILENT_H = ("hour", "honest")
CONSONANT_U = ("uni", "use", "euro", "one")

SUBJECTS = {
    "I": "I", "you": "you", "he": "he", "she": "she", "it_m": "it", "it_f": "it", "it_n": "it", "we": "we",
    "you_all": "you", "they": "they", "you_formal": "you", "who": "who", "what": "what",
    "somebody": "somebody", "nobody": "nobody", "something": "something", "nothing": "nothing",
}  # fmt: skip
OBJECTS = SUBJECTS | {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
DETERMINERS = {"your_all": "your", "your_formal": "your"}  # all others are named by their English word

BE_PRESENT = ("am", "are", "is", "are", "are", "are")
BE_PAST = ("was", "were", "was", "were", "were", "were")


def _doubled(verb: Verb) -> str:
    """The base form with its last consonant doubled where -ing and -ed do so: plan, planned."""
    base = head(verb)
    vowels = sum(letter in VOWELS for letter in base)
    short = len(base) > 2 and vowels == 1 and base[-2] in VOWELS and base[-1] not in VOWELS + "wxy"
    return base + base[-1] if short or "doubled" in verb.flags else base


def with_s(word: str) -> str:
    """books, boxes, cities; speaks, watches, tidies."""
    if word.endswith(("s", "sh", "ch", "x")):
        return word + "es"
    return word[:-1] + "ies" if _changes_y(word) else word + "s"


def _changes_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in VOWELS


def third_person(base: str) -> str:
    """goes, watches, tidies, has."""
    if base == "have":
        return "has"
    return base + "es" if base.endswith("o") else with_s(base)


def progressive(verb: Verb) -> str:
    """going, lying, running, writing."""
    base = head(verb)
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee") and base != "be":
        return base[:-1] + "ing"
    return _doubled(verb) + "ing"


def regular_past(verb: Verb) -> str:
    """worked, planned, tidied, smoked."""
    base = head(verb)
    if base.endswith("e"):
        return base + "d"
    if _changes_y(base):
        return base[:-1] + "ied"
    return _doubled(verb) + "ed"


def head(verb: Verb) -> str:
    """The word of the verb that is inflected: "get" of "get up"."""
    return verb.english.partition(" ")[0]


def past(verb: Verb) -> str:
    return verb.english_past or ("was" if head(verb) == "be" else regular_past(verb))


def participle(verb: Verb) -> str:
    return verb.english_participle or ("been" if head(verb) == "be" else regular_past(verb))


def finite(base: str, person: int, past_form: str) -> str:
    """A finite form; `past_form` is empty for the present."""
    if base == "be":
        return (BE_PAST if past_form else BE_PRESENT)[person]
    if past_form:
        return past_form
    return third_person(base) if person == 2 else base


def compared(word: Adjective, degree: str) -> str:
    """big, bigger, biggest; more expensive, most expensive."""
    if degree == "positive":
        return word.english
    comparative = word.english_comparative
    if degree == "comparative":
        return comparative
    irregular = {"better": "best", "worse": "worst"}.get(comparative)
    if irregular:
        return irregular
    return "most" + comparative[4:] if comparative.startswith("more ") else comparative[:-2] + "est"


def article(following: str) -> str:
    """a or an, by the sound at the beginning of what follows."""
    vowel = following[0].lower() in VOWELS and not following.startswith(CONSONANT_U)
    return "an" if vowel or following.startswith(SILENT_H) else "a"


def genitive(name: str, plural: bool) -> str:
    """Anna's, my parents', the children's."""
    return name + "'" if plural and name.endswith("s") else name + "'s"
