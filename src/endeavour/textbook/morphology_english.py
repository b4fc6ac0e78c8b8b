"""English inflection: verbs, comparison, articles and pronouns. It knows no German and no word order.

Persons are 0-5 for I, you, he, we, you, they.
"""

from functools import cache

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


def _doubles(verb: Verb) -> bool:
    base = head(verb)
    if "doubled" in verb.flags:
        return True
    vowels = sum(letter in VOWELS for letter in base)
    return len(base) > 2 and vowels == 1 and base[-2] in VOWELS and base[-1] not in VOWELS + "wxy"


@cache
def third_person(base: str) -> str:
    """goes, watches, tidies, has."""
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in VOWELS:
        return base[:-1] + "ies"
    return base + "s"


@cache
def progressive(verb: Verb) -> str:
    """going, lying, running, writing."""
    base = head(verb)
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee") and base != "be":
        return base[:-1] + "ing"
    return base + base[-1] + "ing" if _doubles(verb) else base + "ing"


@cache
def regular_past(verb: Verb) -> str:
    """worked, planned, tidied, smoked."""
    base = head(verb)
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in VOWELS:
        return base[:-1] + "ied"
    return base + base[-1] + "ed" if _doubles(verb) else base + "ed"


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
    if following.startswith(SILENT_H):
        return "an"
    return "an" if following[0].lower() in VOWELS and not following.startswith(CONSONANT_U) else "a"


def genitive(name: str, plural: bool) -> str:
    """Anna's, my parents', the children's."""
    return name + "'" if plural and name.endswith("s") else name + "'s"
