"""Writes a tree in German: verb forms and word order. It knows no English and makes no choices.

Word order follows the school rules: the finite verb second, first or last; pronouns before nouns; time before
manner before place; indefinite objects after adverbials; nicht before what it denies; relative clauses behind
the closing bracket.
"""

from endeavour.textbook import morphology_german as forms
from endeavour.textbook.entries import Verb
from endeavour.textbook.german_phrases import phrase
from endeavour.textbook.morphology_german import ACCUSATIVE, DATIVE, NOMINATIVE
from endeavour.textbook.reading import load_lexicon
from endeavour.textbook.trees import (
    PERSONS,
    Clause,
    Name,
    NounPhrase,
    Pair,
    Prepositional,
    Pronoun,
    Sentence,
    Slot,
    Subordinate,
    person_of,
)

CASES = {"acc": ACCUSATIVE, "dat": DATIVE}
INDEFINITE = frozenset({"", "a", "no", "some", "many", "several"})  # these objects follow the adverbials
INDEFINITE_PRONOUNS = frozenset({"somebody", "nobody", "something", "nothing", "who", "what"})
AMBIGUOUS = frozenset({"sie", "es", "Sie"})  # nominative and accusative alike
ASPECTS = {"already": "schon", "just": "gerade", "never": "noch nie", "yet": "noch", "ever": "schon einmal"}
ATTITUDES = {"like to": "gern", "would rather": "lieber"}


def _relative(slot: Slot | None) -> str:
    """The relative clause that belongs to a slot, with both commas."""
    inner = slot.phrase if isinstance(slot, Prepositional) else slot
    if isinstance(inner, NounPhrase) and inner.relative is not None:
        return f", {clause(inner.relative, 'final')},"
    return ""


def _definite(slot: Slot) -> bool:
    if isinstance(slot, NounPhrase):
        return slot.determiner not in INDEFINITE or slot.owner is not None
    return isinstance(slot, Name | Pair)


def _takes_kein(slot: Slot | None) -> bool:
    return isinstance(slot, NounPhrase) and slot.determiner in ("", "a") and not (slot.count or slot.owner)


def _personal(slot: Slot | None) -> bool:
    return isinstance(slot, Pronoun) and slot.key not in INDEFINITE_PRONOUNS


def _helper(name: str, person: int, tense: str = "present") -> str:
    return load_lexicon().finite_forms[name, tense][person]


def verb_forms(tree: Clause) -> tuple[str, str, str]:
    """The finite verb, its separable prefix, and the rest of the closing bracket."""
    verb, person = tree.verb, 2 if tree.verb.frame == "there" else person_of(tree.subject)
    tense = tree.tense
    if tree.modal is not None:
        finite = _helper(tree.modal.german, person, "past" if tense == "past" else "present")
        return finite, "", forms.infinitive(verb)
    if tense == "future":
        return _helper("werden", person), "", forms.infinitive(verb)
    if tense in ("present", "since"):
        return forms.present(verb, person), verb.prefix, ""
    simple = forms.past(verb, person) if tense == "past" else None
    if simple is not None:
        return simple, "", ""
    auxiliary = "sein" if verb.auxiliary == "ist" else "haben"
    return _helper(auxiliary, person, "past" if tense == "pluperfect" else "present"), "", verb.participle


def clause(tree: Clause, order: str, please: bool = False) -> str:
    """A clause; order is "second", "first", "final", "infinitive" or, for imperatives, "imperative1/4/5"."""
    finite, prefix, rest = verb_forms(tree)
    tail: list[str] = []
    if order in ("second", "final") and (tree.front or order == "second"):
        fronted = tree.front or "subject"
        lead = _slot(tree, fronted)
        lead += _relative(getattr(tree, fronted))
    else:
        fronted, lead = "", ""
    if order.startswith("imperative"):
        finite = forms.imperative(tree.verb, int(order[-1]))
        fronted = "subject" if order[-1] != "5" else ""
        prefix = tree.verb.prefix
    if order == "infinitive":
        fronted = "subject"
    middle = _middle_field(tree, fronted, please, tail)
    if order == "infinitive":
        parts = [*middle, forms.zu_infinitive(tree.verb)]
    elif order == "final":
        # The prefix joins its verb again: weil er früh aufsteht.
        parts = [lead, *middle, rest, prefix + finite]
    else:
        parts = [lead, finite, *middle, rest, prefix.strip()]
    return " ".join(part for part in parts if part) + "".join(tail)


def _slot(tree: Clause, name: str) -> str:
    """The words of one slot, in the case that its function asks for."""
    slot = getattr(tree, name)
    if name == "oblique":
        return oblique(tree.verb, slot)
    case = {"direct": ACCUSATIVE, "indirect": DATIVE}.get(name, NOMINATIVE)
    if name == "subject" and tree.verb.frame == "there":
        return "es"
    return phrase(slot, case)


def oblique(verb: Verb, slot: Slot) -> str:
    """The prepositional object; "what" and things asked for make worauf, womit."""
    if isinstance(slot, Pronoun) and slot.key == "what":
        return ("wor" if verb.preposition[0] in "aäiouü" else "wo") + verb.preposition
    return forms.contract(verb.preposition, phrase(slot, CASES[verb.preposition_case]))


def _middle_field(tree: Clause, fronted: str, please: bool, tail: list[str]) -> list[str]:
    """Everything between the brackets, in order; relative clauses of objects are added to `tail`."""
    objects = {n: s for n in ("direct", "indirect") if n != fronted and (s := getattr(tree, n)) is not None}
    tail.extend(
        _relative(getattr(tree, n)) for n in (*objects, "oblique", "place", "direction") if n != fronted
    )

    nouns = {n: s for n, s in objects.items() if not _personal(s)}
    direct = nouns.get("direct")
    kein = tree.negated and not tree.attitude and (_takes_kein(direct) or _takes_kein(tree.predicate))
    accusative = "" if direct is None else phrase(direct, ACCUSATIVE, kein)
    dative = _slot(tree, "indirect") if "indirect" in nouns else ""
    is_new = direct is not None and not _definite(direct)
    known, new = ([dative], accusative) if is_new else ([dative, accusative], "")
    known_first = bool(tree.aspect) or (tree.negated and not tree.attitude)

    denial = "nicht" if tree.negated and not kein else ""
    attitude = [denial, ATTITUDES[tree.attitude]] if tree.attitude else []
    aspect = ASPECTS.get(tree.aspect, "")
    if tree.aspect == "yet" and kein and new:
        aspect, new = "", f"{aspect} {new}"  # noch kein stays together
    shown = tree.predicate if fronted != "predicate" else None
    predicate = "" if shown is None else phrase(shown, NOMINATIVE, kein)

    def slots(*names: str) -> list[str]:
        return [_slot(tree, n) for n in names if n != fronted and getattr(tree, n) is not None]

    return [
        *_subject_and_pronouns(tree, fronted, objects),
        "bitte" if please else "",
        *(known if known_first else ()),
        *slots("time", "frequency", "reason"),
        aspect,
        *attitude,
        *(() if known_first else known),
        "" if attitude else denial,
        *slots("companion", "manner", "place"),
        new,
        *slots("oblique", "direction"),
        predicate,
    ]


def _subject_and_pronouns(tree: Clause, fronted: str, objects: dict[str, Slot]) -> list[str]:
    pronouns = _pronouns(tree, objects)
    there = tree.verb.frame == "there"
    if fronted == "subject" or (tree.subject is None and not there):
        return pronouns
    subject = _slot(tree, "subject") + _relative(tree.subject)
    # A pronoun that could be the subject itself stays behind: dass seine Tante sie nicht versteht.
    unclear = bool(AMBIGUOUS.intersection(pronouns))
    return [subject, *pronouns] if there or _personal(tree.subject) or unclear else [*pronouns, subject]


def _pronouns(tree: Clause, objects: dict[str, Slot]) -> list[str]:
    """Personal and reflexive pronouns: accusative before dative, the reflexive like its case."""
    person = person_of(tree.subject)
    found: list[str] = []
    for name, case, reflexive in (("direct", ACCUSATIVE, "accusative"), ("indirect", DATIVE, "dative")):
        slot = objects.get(name)
        if isinstance(slot, Pronoun) and _personal(slot):
            found.append(forms.PRONOUNS[slot.key][case])
        if tree.verb.reflexive == reflexive:
            found.append(forms.REFLEXIVE[reflexive][person])
    return found


def _dependent(part: Subordinate) -> str:
    if part.form == "infinitive":
        return clause(part.clause, "infinitive")
    if part.form == "purpose":
        return "um " + clause(part.clause, "infinitive")
    return f"{part.german} {clause(part.clause, 'final')}".strip()


def sentence(tree: Sentence) -> str:
    """The whole sentence with its punctuation."""
    part = tree.subordinate
    if tree.kind == "imperative":
        order = f"imperative{PERSONS[tree.addressee]}"
    elif tree.kind == "question":
        order = "second" if tree.main.front else "first"
    else:
        order = "first" if part is not None and part.first else "second"
    text = clause(tree.main, order, tree.please)
    if part is not None:
        text = f"{_dependent(part)}, {text}" if part.first else f"{text}, {_dependent(part)}"
    if tree.joined is not None and tree.conjunction is not None:
        word = tree.conjunction.german
        comma = "" if word == "und" else ","
        text = f"{text}{comma} {word} {clause(tree.joined, 'first' if tree.inverted else 'second')}"
    if tree.vocative is not None:
        text = f"{phrase(tree.vocative, NOMINATIVE)}, {text}"
    mark = {"statement": ".", "question": "?", "imperative": "!"}[tree.kind]
    return text[0].upper() + text[1:].rstrip(",") + mark
