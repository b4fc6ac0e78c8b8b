"""Writes the phrases of a tree in German, each in its case. It knows no English, no word order and makes no choices."""

from endeavour.textbook import morphology_german as forms
from endeavour.textbook.entries import Word
from endeavour.textbook.morphology_german import DATIVE, GENITIVE, NOMINATIVE
from endeavour.textbook.numerals import german_number
from endeavour.textbook.trees import (
    Name,
    NounPhrase,
    Pair,
    Prepositional,
    Pronoun,
    Property,
    Relative,
    Slot,
    gender_of,
)


def phrase(slot: Slot, case: int, negated: bool = False) -> str:
    """A phrase in a case, without its relative clause; `negated` turns ein or no article into kein."""
    if isinstance(slot, NounPhrase):
        return _noun_phrase(slot, case, negated)
    if isinstance(slot, Word):
        return slot.german
    if isinstance(slot, Pronoun):
        return forms.PRONOUNS[slot.key][case]
    if isinstance(slot, Prepositional):
        return forms.contract(slot.german, phrase(slot.phrase, slot.case))
    if isinstance(slot, Relative):
        return forms.RELATIVE[slot.gender][case]
    if isinstance(slot, Pair):
        return f"{phrase(slot.first, case)} und {phrase(slot.second, case)}"
    if isinstance(slot, Property):
        return _property(slot)
    return _name(slot, case)


def _name(slot: Name, case: int) -> str:
    if slot.title:
        title = "Frau" if slot.title == "Mrs." else "Herr" if case == NOMINATIVE else "Herrn"
        return f"{title} {slot.german}"
    if case == GENITIVE:
        return slot.german + ("'" if slot.german[-1] in "sxzß" else "s")
    return slot.german


def _noun_phrase(slot: NounPhrase, case: int, negated: bool) -> str:
    gender = gender_of(slot)
    words: list[str] = []
    name = slot.determiner
    if negated and name in ("", "a"):
        name = "no"
    if isinstance(slot.owner, Name | Relative):
        words.append(phrase(slot.owner, GENITIVE))
        endings = forms.STRONG
    else:
        # A numeral alone leaves the strong endings: zwei alte Häuser.
        word, endings = forms.determiner(name if not slot.count or name != "a" else "", gender, case)
        if word:
            words.append(word)
    if slot.count:
        words.append(german_number(slot.count))
    words.extend(forms.adjective(a, slot.degree, endings[gender][case]) for a in slot.adjectives)
    words.append(slot.noun.feminine if slot.feminine else forms.noun(slot.noun, gender == "p", case))
    if slot.owner is not None and not isinstance(slot.owner, Name | Relative):
        words.append(phrase(slot.owner, GENITIVE))
    if slot.attribute is not None:
        words.append(phrase(slot.attribute, DATIVE))
    return " ".join(words)


def _property(slot: Property) -> str:
    word = slot.adjective
    if slot.comparison == "than":
        text = word.comparative + " als"
    elif slot.comparison == "as":
        text = f"so {word.german} wie"
    else:
        text = f"{slot.intensifier.german} {word.german}" if slot.intensifier else word.german
    return f"{text} {phrase(slot.standard, NOMINATIVE)}" if slot.standard is not None else text
