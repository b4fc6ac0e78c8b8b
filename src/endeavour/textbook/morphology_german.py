"""German inflection: determiners, adjectives, nouns, pronouns and verbs. It knows no English and no word order.

Cases are the integers NOMINATIVE, ACCUSATIVE, DATIVE and GENITIVE; genders are "m", "f", "n" and "p" for the
plural of all; persons are 0-5 for ich, du, er, wir, ihr, sie (the polite Sie is person 5).
"""

from functools import cache

from endeavour.textbook.entries import Adjective, Noun, Verb
from endeavour.textbook.reading import load_lexicon

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)

# Endings by gender, then by case in the order of the constants above.
DEFINITE = {
    "m": ("der", "den", "dem", "des"),
    "f": ("die", "die", "der", "der"),
    "n": ("das", "das", "dem", "des"),
    "p": ("die", "die", "den", "der"),
}
RELATIVE = {
    "m": ("der", "den", "dem", "dessen"),
    "f": ("die", "die", "der", "deren"),
    "n": ("das", "das", "dem", "dessen"),
    "p": ("die", "die", "denen", "deren"),
}
STRONG_DETERMINER = {  # dieser, jeder, welcher, alle, viele
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
INDEFINITE_DETERMINER = STRONG_DETERMINER | {
    "m": ("", "en", "em", "es"),
    "n": ("", "", "em", "es"),
}  # ein, mein
WEAK = {
    "m": ("e", "en", "en", "en"),
    "f": ("e", "e", "en", "en"),
    "n": ("e", "e", "en", "en"),
    "p": ("en", "en", "en", "en"),
}
MIXED = WEAK | {"m": ("er", "en", "en", "en"), "n": ("es", "es", "en", "en")}
STRONG = STRONG_DETERMINER | {"m": ("er", "en", "em", "en"), "n": ("es", "es", "em", "en")}

# The stems of determiners by their English names. After those of the first two, all inflected alike, adjectives have
# the weak and the strong endings.
WEAK_AFTER = {"this": "dies", "every": "jed", "which": "welch", "all": "all"}
STRONG_AFTER = {"many": "viel", "some": "einig", "several": "mehrer"}
LIKE_EIN = {
    "a": "ein", "no": "kein", "my": "mein", "your": "dein", "his": "sein", "her": "ihr", "our": "unser",
    "your_all": "euer", "their": "ihr", "your_formal": "Ihr",
}  # fmt: skip

# Nominative, accusative, dative; the third person of "it" and of a thing's pronoun follows the German gender.
PRONOUNS = {
    "I": ("ich", "mich", "mir"), "you": ("du", "dich", "dir"),
    "he": ("er", "ihn", "ihm"), "it_m": ("er", "ihn", "ihm"),
    "she": ("sie", "sie", "ihr"), "it_f": ("sie", "sie", "ihr"), "it_n": ("es", "es", "ihm"),
    "we": ("wir", "uns", "uns"), "you_all": ("ihr", "euch", "euch"),
    "they": ("sie", "sie", "ihnen"), "you_formal": ("Sie", "Sie", "Ihnen"),
    "who": ("wer", "wen", "wem"), "what": ("was", "was", "was"),
    "somebody": ("jemand", "jemanden", "jemandem"), "nobody": ("niemand", "niemanden", "niemandem"),
    "something": ("etwas", "etwas", "etwas"), "nothing": ("nichts", "nichts", "nichts"),
}  # fmt: skip
REFLEXIVE = {
    "accusative": ("mich", "dich", "sich", "uns", "euch", "sich"),
    "dative": ("mir", "dir", "sich", "uns", "euch", "sich"),
}


@cache
def determiner(name: str, gender: str, case: int) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The form of a determiner ("" for none) and the table of endings for adjectives that follow it."""
    if name == "the":
        return DEFINITE[gender][case], WEAK
    if not name or (name == "a" and gender == "p"):
        return "", STRONG
    if name in LIKE_EIN:
        ending = INDEFINITE_DETERMINER[gender][case]
        stem = "eur" if name == "your_all" and ending else LIKE_EIN[name]
        return stem + ending, MIXED
    stem = WEAK_AFTER.get(name) or STRONG_AFTER[name]
    return stem + STRONG_DETERMINER[gender][case], WEAK if name in WEAK_AFTER else STRONG


def adjective(word: Adjective, degree: str, ending: str) -> str:
    """An attributive adjective, e.g. (groß, "comparative", "es") -> größeres."""
    return {"positive": word.stem, "comparative": word.comparative, "superlative": word.superlative}[
        degree
    ] + ending


@cache
def noun(word: Noun, plural: bool, case: int) -> str:
    """A noun in number and case; the n-declension shows in a masculine genitive that ends in -n."""
    if plural or word.gender == "p":
        return word.plural + "n" if case == DATIVE and word.plural[-1] not in "ns" else word.plural
    if case == GENITIVE:
        return word.genitive
    weak = word.gender == "m" and word.genitive.endswith("n") and word.genitive != word.german
    return word.genitive if weak and case != NOMINATIVE else word.german


def _needs_e(stem: str) -> bool:
    """Whether -t and -st take an e before them: arbeitet, öffnet, zeichnet, but lernt, wohnt, lärmt."""
    if stem.endswith(("t", "d", "chn")):
        return True
    return stem[-1] in "mn" and stem[-2] not in "aeiouäöülrhmn"


def _stem(infinitive: str) -> str:
    return infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]


@cache
def present(verb: Verb, person: int) -> str:
    """The finite present without the separable prefix."""
    irregular = load_lexicon().finite_forms.get((verb.german, "present"))
    if irregular:
        return irregular[person]
    stem = _stem(verb.base)
    link = "e" if _needs_e(stem) else ""
    if person == 0:
        return (stem[:-2] + "le") if verb.base.endswith("eln") else stem + "e"
    if person == 1:
        return _second_person(verb, stem, link)
    if person == 2:
        return verb.third_person or stem + link + "t"
    return stem + link + "t" if person == 4 else verb.base


def _second_person(verb: Verb, stem: str, link: str) -> str:
    """The form for du: fährst, liest, hältst, arbeitest."""
    if verb.third_person and not verb.third_person.startswith(stem):
        if stem.endswith("t"):
            return verb.third_person + "st"
        stem = verb.third_person[:-1]
        # "isst" and "liest" end in a sibilant before the t, "lädt" has a bare stem in d.
        return stem + ("t" if stem[-1] in "sßzx" else "st")
    return stem + ("t" if stem[-1] in "sßzx" else link + "st")


def past(verb: Verb, person: int) -> str | None:
    """The preterite of the verbs that speech keeps it for, None for all others, which take the perfect."""
    forms = load_lexicon().finite_forms.get((verb.german, "past"))
    return forms[person] if forms else None


@cache
def imperative(verb: Verb, person: int) -> str:
    """The imperative for du (1), ihr (4) or Sie (5, without the pronoun); without the separable prefix."""
    if person == 4:
        return present(verb, 4)
    if person == 5:
        return verb.base
    stem = _stem(verb.base)
    third = verb.third_person
    if third and "e" in stem and "i" in third and not third.startswith(stem):
        # Only e -> i(e) shows in the imperative (nimm, lies), a -> ä does not (fahr).
        return third[:-1]
    if verb.base.endswith("eln"):
        return stem[:-2] + "le"
    ends_in_e = _needs_e(stem) or len(stem) < 3 or stem.endswith(("dig", "er", "eis", "nz"))
    return stem + "e" if ends_in_e else stem


def infinitive(verb: Verb) -> str:
    return verb.prefix + verb.base


def zu_infinitive(verb: Verb) -> str:
    """zu kommen, aufzustehen, spazieren zu gehen."""
    joined = verb.prefix and not verb.prefix.endswith(" ")
    return f"{verb.prefix}zu{verb.base}" if joined else f"{verb.prefix}zu {verb.base}"


CONTRACTIONS = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans",
    "zu dem": "zum", "zu der": "zur", "von dem": "vom", "bei dem": "beim",
}  # fmt: skip


def contract(preposition: str, phrase: str) -> str:
    """in + dem Garten -> im Garten."""
    first, _, rest = phrase.partition(" ")
    short = CONTRACTIONS.get(f"{preposition} {first}")
    return f"{short} {rest}" if short and rest else f"{preposition} {phrase}"
