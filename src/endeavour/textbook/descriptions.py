"""Draws sentences about what somebody or something is, is like, owns or is called."""

from endeavour.textbook import numerals
from endeavour.textbook.adverbials import city_or_country
from endeavour.textbook.clauses import draw_clause
from endeavour.textbook.draw import Draw, adjectives_of, nouns_of
from endeavour.textbook.entries import Adjective, Noun, Word
from endeavour.textbook.morphology_german import DATIVE
from endeavour.textbook.phrases import noun_phrase, possessive_of, some_name, some_subject
from endeavour.textbook.tenses import keep_kein_clear
from endeavour.textbook.trees import (
    Clause,
    Name,
    NounPhrase,
    Phrase,
    Prepositional,
    Pronoun,
    Property,
    Sentence,
    Slot,
)


def quality_clause(draw: Draw, past: bool | None = None) -> Clause:
    """Somebody or something is old, too old, older than ..., as old as ..."""
    tree = being(draw, past)
    word = quality_word(draw, tree)
    dice = draw.random.random()
    prop = Property(word)
    degree = draw.word("degree")
    if dice < 0.3 and word.comparative:
        prop.intensifier = degree
    elif dice < 0.65 and word.comparative and not isinstance(tree.subject, Pronoun):
        prop.comparison = "than" if dice < 0.53 else "as"
        prop.standard = standard_of(draw, tree, word)
    tree.predicate = prop
    tree.negated = not prop.intensifier and draw.chance(0.2) and prop.comparison != "than"
    return tree


def being(draw: Draw, past: bool | None = None) -> Clause:
    tree = Clause(draw.verb_named["sein"])
    if draw.chance(0.3) if past is None else past:
        tree.tense = "past"
    classes = draw.scene("being").what
    if classes == ("person",):
        tree.subject = some_subject(draw, classes)
    else:
        tree.subject = noun_phrase(draw, classes, indefinite=0.0, adjectives=0.1)
    return tree


def quality_word(draw: Draw, tree: Clause) -> Adjective:
    """An adjective for the subject; a subject that no adjective fits is replaced by a name."""
    if isinstance(tree.subject, NounPhrase):
        word = draw.adjective(tree.subject.noun)
        tree.subject.adjectives = ()
        if word is not None:
            return word
        tree.subject = some_name(draw)
    return draw.pick([a for a in draw.lexicon.adjectives if "person" in a.classes])


def standard_of(draw: Draw, tree: Clause, word: Adjective) -> Phrase:
    """What the subject is compared with: something else of its kind."""
    if isinstance(tree.subject, NounPhrase):
        noun = tree.subject.noun
        kind = _kind(draw, noun)
        rivals = [n for n in nouns_of(draw.lexicon, word.classes) if n is not noun and _kind(draw, n) == kind]
        if rivals:
            rival = draw.pick(rivals)
            phrase = NounPhrase(rival)
            if "family" in rival.classes:
                phrase.determiner = possessive_of(draw, None)
                phrase.plural = rival.gender == "p"
            elif rival.plural and tree.subject.determiner != "this" and draw.chance(0.25):
                phrase.determiner = possessive_of(draw, None) if "person" not in rival.classes else "this"
            return phrase
    return some_name(draw)


def description(draw: Draw) -> Sentence:
    tree = Sentence(quality_clause(draw))
    if draw.chance(0.12):
        tree.kind, tree.main.negated = "question", False
    return tree


def identity(draw: Draw) -> Sentence:
    """She is a teacher; my name is; he is twenty years old; he wants to become a doctor."""
    dice = draw.random.random()
    clause = being(draw)
    if not isinstance(clause.subject, Name | Pronoun) or clause.subject == Pronoun("they"):
        clause.subject = some_name(draw) if draw.chance(0.5) else Pronoun(draw.pick(("he", "she")))
    subject = clause.subject
    if dice < 0.25:
        years = draw.random.randint(2, 99)
        german, english = numerals.german_number(years), numerals.english_number(years)
        clause.predicate = Word(f"{german} Jahre alt", f"{english} years old")
    elif dice < 0.4:
        clause = naming(draw)
    else:
        if isinstance(subject, Pronoun) and subject.key not in ("he", "she"):
            subject = clause.subject = Pronoun(draw.pick(("he", "she")))
        woman = subject.gender == "f" if isinstance(subject, Name) else subject.key == "she"
        job = draw.noun(("job",))
        if dice < 0.6:
            clause.verb = draw.verb_named["werden"]
            clause.tense = "past" if draw.chance(0.35) else "present"
            if clause.tense == "present":
                clause.modal = draw.modal_named["wollen"]
        clause.predicate = NounPhrase(job, "", english_determiner="a", feminine=woman)
        if clause.verb.german == "sein" and draw.chance(0.45):
            word = draw.adjective(job)
            if word is not None:
                clause.predicate = NounPhrase(job, "a", adjectives=(word,), feminine=woman)
        clause.negated = clause.verb.german == "sein" and draw.chance(0.2)
    return Sentence(clause)


def naming(draw: Draw) -> Clause:
    noun = draw.noun_of("named")
    subject = NounPhrase(noun, possessive_of(draw, None))
    if noun.gender == "p":
        subject = NounPhrase(draw.noun_named["Hund"], "my")
    tree = Clause(draw.verb_named["heißen"], subject)
    gender = "f" if noun.gender == "f" else "m"
    name = draw.pick([n for n in draw.lexicon.words["first"] if n.use == gender])
    tree.predicate = Name(name.german, name.english, gender)
    return tree


def superlative(draw: Draw) -> Sentence:
    """This is the biggest house in the city."""
    noun = draw.noun_of("superlative")
    words = [a for a in adjectives_of(draw.lexicon, noun) if a.superlative]
    if not words or noun.mass or noun.gender == "p":
        return superlative(draw)
    word = draw.pick(words)
    phrase = NounPhrase(noun, "the", adjectives=(word,), degree="superlative")
    if "family" in noun.classes:
        phrase.determiner = possessive_of(draw, None)
        phrase.degree = "comparative" if "age" in word.flags else "positive"
    tree = Clause(draw.verb_named["sein"], Word("das", "this"), predicate=phrase)
    dice = draw.random.random()
    if "family" in noun.classes:
        return Sentence(tree)
    if "town" in noun.classes or "building" in noun.classes or dice < 0.3:
        inside = draw.noun(("settlement",))
        phrase.attribute = Prepositional(
            "in", "in", DATIVE, NounPhrase(inside, "the" if dice < 0.7 else "our")
        )
    elif dice < 0.5:
        phrase.attribute = city_or_country(draw, "country" if draw.chance(0.5) else "city", DATIVE)
    tree.tense = "past" if draw.chance(0.15) else "present"
    return Sentence(tree)


def sensation(draw: Draw) -> Sentence:
    """The soup tastes good; she feels ill."""
    degree = draw.word("degree")
    if draw.chance(0.5):
        verb = draw.verb_named["schmecken"]
        subject: Slot = noun_phrase(draw, verb.subject, indefinite=0.0, adjectives=0.3)
        flag = "taste"
    else:
        verb = draw.verb_named["sich fühlen"]
        subject = some_subject(draw, ("person",))
        flag = "feel"
    word = draw.flagged_adjective(flag)
    intensifier = degree if draw.chance(0.3) else None
    tree = Clause(verb, subject, predicate=Property(word, intensifier))
    tree.tense = "past" if draw.chance(0.35) else "present"
    tree.negated = intensifier is None and subject != Pronoun("nobody") and draw.chance(0.2)
    keep_kein_clear(tree)
    return Sentence(tree)


def possession(draw: Draw) -> Sentence:
    """My father's car is old, I am looking for Anna's key, the door of the house is green."""
    dice = draw.random.random()
    if dice < 0.3:
        noun = draw.noun_of("part")
        opening = "opening" in noun.classes
        whole = draw.noun_of("whole_of_opening" if opening else "whole_of_part")
        owned = NounPhrase(noun, "the", owner=NounPhrase(whole))
        group = "done_to_opening" if opening else "done_to_part"
    else:
        group = "owning"
        owner = some_name(draw) if dice < 0.65 else some_owner(draw)
        owned = NounPhrase(draw.noun_of("owned"), "the", owner=owner)
    word = draw.adjective(owned.noun)
    if draw.chance(0.5) and word is not None:
        clause = Clause(draw.verb_named["sein"], owned, predicate=Property(word))
        clause.tense = "past" if draw.chance(0.25) else "present"
        clause.negated = draw.chance(0.15)
        return Sentence(clause)
    fitting = [v for v in draw.lexicon.verb_groups[group] if owned.noun.classes.intersection(v.object)]
    if not fitting:
        return possession(draw)
    clause = draw_clause(draw, draw.pick(fitting))
    if word is not None and draw.chance(0.4):
        owned.adjectives = (word,)
    owned.plural = bool(owned.noun.plural) and draw.chance(0.12)
    clause.direct = owned
    return Sentence(clause)


def some_owner(draw: Draw) -> NounPhrase:
    noun = draw.noun_of("owner")
    if "family" in noun.classes or ("relation" in noun.classes and draw.chance(0.6)):
        return NounPhrase(noun, possessive_of(draw, None), plural=noun.gender == "p")
    return NounPhrase(noun, "the")


def _kind(draw: Draw, noun: Noun) -> str:
    """The first of the comparable classes that a noun has."""
    return next((kind for kind in draw.lexicon.noun_groups["comparable"] if kind in noun.classes), "")
