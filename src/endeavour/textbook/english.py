"""Writes a tree in English: agreement, tenses, do-support and word order. It knows no German and chooses nothing."""

from endeavour.textbook import morphology_english as forms
from endeavour.textbook.entries import Word
from endeavour.textbook.numerals import english_number
from endeavour.textbook.trees import (
    Clause,
    Name,
    NounPhrase,
    Pair,
    Prepositional,
    Pronoun,
    Property,
    Relative,
    Sentence,
    Slot,
    Subordinate,
    gender_of,
    person_of,
)

EARLY_ASPECTS = frozenset({"already", "just", "never", "ever"})  # "yet" stands last


def phrase(slot: Slot, subject: bool = False) -> str:
    """A phrase without its relative clause; `subject` chooses I over me."""
    if isinstance(slot, NounPhrase):
        return _noun_phrase(slot)
    if isinstance(slot, Pronoun):
        return (forms.SUBJECTS if subject else forms.OBJECTS)[slot.key]
    if isinstance(slot, Word):
        return slot.english
    if isinstance(slot, Prepositional):
        inner = slot.phrase
        if isinstance(inner, Relative):
            return f"{slot.english} {'whom' if inner.person else 'which'}"
        return f"{slot.english} {phrase(inner)}"
    if isinstance(slot, Pair):
        return f"{phrase(slot.first, subject)} and {phrase(slot.second, subject)}"
    if isinstance(slot, Property):
        return _property(slot)
    if isinstance(slot, Relative):
        return ("who" if subject else "whom") if slot.person else "that"
    return f"{slot.title} {slot.english}" if slot.title else slot.english


def full(slot: Slot, subject: bool = False) -> str:
    """A phrase with its relative clause."""
    inner = slot.phrase if isinstance(slot, Prepositional) else slot
    text = phrase(slot, subject)
    if isinstance(inner, NounPhrase) and inner.relative is not None:
        text += " " + clause(inner.relative)
    return text


def _noun_phrase(slot: NounPhrase) -> str:
    many = gender_of(slot) == "p"
    words = [forms.compared(adjective, slot.degree) for adjective in slot.adjectives]
    words.append(slot.noun.english_plural if many else slot.noun.english)
    if slot.count:
        words.insert(0, english_number(slot.count))
    owner, after = slot.owner, ""
    name = slot.determiner if slot.english_determiner is None else slot.english_determiner
    if isinstance(owner, Relative):
        name = "whose"
    elif isinstance(owner, Name):
        name = forms.genitive(phrase(owner), False)
    elif isinstance(owner, NounPhrase) and "person" in owner.noun.classes:
        name = forms.genitive(phrase(owner), gender_of(owner) == "p")
    elif owner is not None:
        after = f" of {phrase(owner)}"
    if name == "a":
        name = "" if many else forms.article(words[0])
    elif name == "this" and many:
        name = "these"
    name = forms.DETERMINERS.get(name, name)
    if slot.attribute is not None:
        after += f" {phrase(slot.attribute)}"
    return " ".join([name, *words] if name else words) + after


def _property(slot: Property) -> str:
    word = slot.adjective
    if slot.comparison == "than":
        text = forms.compared(word, "comparative") + " than"
    elif slot.comparison == "as":
        text = f"as {word.english} as"
    else:
        text = f"{slot.intensifier.english} {word.english}" if slot.intensifier else word.english
    return f"{text} {phrase(slot.standard)}" if slot.standard is not None else text


def _verb_group(tree: Clause, person: int) -> tuple[str, list[str], str]:
    """(finite verb, the words after it, the base form if do-support can replace the finite verb)."""
    verb = tree.verb
    base = forms.head(verb)
    tense = tree.tense
    if tree.attitude == "would rather":
        return "would", ["rather", base], ""
    if tree.attitude:
        return forms.finite("like", person, "liked" if tense == "past" else ""), ["to", base], "like"
    if tree.modal is not None:
        head, *rest = (tree.modal.english_past if tense == "past" else tree.modal.english).split(" ")
        if not tree.modal.phrase or head == "would":
            return head, [*rest, base], ""
        if tree.modal.english.startswith("be "):
            return forms.finite("be", person, "was" if tense == "past" else ""), [*rest, base], ""
        lexical = tree.modal.english.split(" ")[0]
        return forms.finite(lexical, person, head if tense == "past" else ""), [*rest, base], lexical
    if tense == "future":
        return "will", [base], ""
    if tense == "since" and not verb.simple:
        return forms.finite("have", person, ""), ["been", forms.progressive(verb)], ""
    if tense in ("perfect", "since", "pluperfect"):
        past = "had" if tense == "pluperfect" else ""
        return forms.finite("have", person, past), [forms.participle(verb)], ""
    if tree.progressive:
        past = "was" if tense == "past" else ""
        return forms.finite("be", person, past), [forms.progressive(verb)], ""
    finite = forms.finite(base, person, forms.past(verb) if tense == "past" else "")
    return finite, [], "" if base == "be" else base


def clause(tree: Clause, inverted: bool = False, imperative: bool = False, infinitive: bool = False) -> str:
    """A clause in statement order, or with the subject after the finite verb."""
    subject, direct, indirect = tree.subject, tree.direct, tree.indirect
    front = tree.front
    if tree.verb.frame == "swap":
        # gefallen: what pleases is the German subject and the English object.
        subject, direct, indirect = indirect, subject, None
        front = {"indirect": "subject", "subject": "direct"}.get(front, front)
    there = tree.verb.frame == "there"
    person = person_of(direct if there else subject)
    finite, rest, base = _verb_group(tree, person)
    swap = inverted and front != "subject"
    early = [tree.frequency.english] if tree.frequency is not None else []
    if tree.aspect in EARLY_ASPECTS:
        early.append(tree.aspect)

    name = "there" if there else full(subject, subject=True) if subject is not None else ""
    if imperative:
        words = ["do not"] * tree.negated + [forms.head(tree.verb)]
    elif infinitive:
        words = ["not"] * tree.negated + ["to", *(_verb_group(tree, 1)[1] or [forms.head(tree.verb)])]
    elif base and (swap or tree.negated):
        do = "did" if tree.tense == "past" else "does" if person == 2 else "do"
        words = [*([do, name] if swap else [name, do]), *["not"] * tree.negated, *early, base, *rest]
    elif base:
        words = [name, *early, finite, *rest]
    else:
        denial = ["not"] * tree.negated
        if finite == "can" and denial and not inverted:
            finite, denial = "cannot", []
        if finite == "would" and rest[0] == "rather":
            denial, rest = [], ["rather", *denial, *rest[1:]]
        words = [*([finite, name] if swap else [name, finite]), *denial, *early, *rest]

    words += _after_verb(tree, direct, indirect, front)
    lead = _lead(tree, front, direct, indirect) if front and front != "subject" else ""
    return " ".join(word for word in [lead, *words] if word)


def _lead(tree: Clause, front: str, direct: Slot | None, indirect: Slot | None) -> str:
    slot: Slot | None = {"direct": direct, "indirect": indirect}.get(front) or getattr(tree, front)
    assert slot is not None, front
    text = full(slot)
    plain = isinstance(slot, Prepositional) and not isinstance(slot.phrase, Relative)
    if plain or (isinstance(slot, Word) and " " in text):
        text += ","  # In the evening, ...
    return text


def _after_verb(tree: Clause, direct: Slot | None, indirect: Slot | None, front: str) -> list[str]:
    verb = tree.verb
    tail = verb.english.split(" ")[1:]
    preposition = verb.english_preposition
    direct_words = [full(direct)] if direct is not None and front != "direct" else []
    indirect_words = [full(indirect)] if indirect is not None and front != "indirect" else []
    if verb.frame.startswith("dat acc"):
        pronoun = isinstance(direct, Pronoun) and direct.key.startswith("it")
        if preposition or pronoun:
            words = [*direct_words, *tail, *(["to", *indirect_words] if indirect_words else [])]
        else:
            words = [*indirect_words, *tail, *direct_words]
    elif verb.frame.startswith("acc") and tail and not preposition:
        after = isinstance(direct, Pronoun) or "particle_last" in verb.flags
        if isinstance(direct, NounPhrase) and direct.relative is not None and after and direct_words:
            words = [phrase(direct), *tail, clause(direct.relative)]  # bring the car back that ...
        else:
            words = [*direct_words, *tail] if after else [*tail, *direct_words]
    else:
        linked = [preposition] if preposition and verb.frame != "oblique" and (direct or indirect) else []
        words = [*tail, *linked, *indirect_words, *direct_words]
    if tree.oblique is not None:
        words.append(preposition)
        if front != "oblique":
            words.append(full(tree.oblique))
    for name in ("predicate", "manner", "direction", "companion", "place", "reason", "time"):
        slot: Slot | None = getattr(tree, name)
        if slot is not None and name != front:
            words.append(full(slot, subject=name == "predicate"))
    if tree.aspect == "yet":
        words.append("yet")
    return words


def _dependent(part: Subordinate) -> str:
    if part.form == "infinitive":
        return clause(part.clause, infinitive=True)
    if part.form == "purpose":
        return "in order " + clause(part.clause, infinitive=True)
    return f"{part.english} {clause(part.clause)}".strip()


def sentence(tree: Sentence) -> str:
    """The whole sentence with its punctuation."""
    part = tree.subordinate
    text = clause(tree.main, inverted=tree.kind == "question", imperative=tree.kind == "imperative")
    if tree.please:
        text = f"please {text}"
    if part is not None:
        dependent = _dependent(part)
        contrast = "," if part.english == "although" else ""
        text = f"{dependent}, {text}" if part.first else f"{text}{contrast} {dependent}"
    if tree.joined is not None and tree.conjunction is not None:
        word = tree.conjunction.english
        comma = "" if word == "and" else ","
        text = f"{text}{comma} {word} {clause(tree.joined)}"
    if tree.vocative is not None:
        text = f"{phrase(tree.vocative)}, {text}"
    mark = {"statement": ".", "question": "?", "imperative": "!"}[tree.kind]
    return text[0].upper() + text[1:] + mark
