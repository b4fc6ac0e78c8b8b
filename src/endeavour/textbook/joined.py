"""Draws sentences of two clauses: conjunctions, dependent clauses and infinitives."""

from endeavour.textbook.adverbials import some_place
from endeavour.textbook.clauses import draw_clause, human_verb, voluntary_verb
from endeavour.textbook.descriptions import quality_clause
from endeavour.textbook.draw import Draw
from endeavour.textbook.entries import Verb, Word
from endeavour.textbook.phrases import pronoun_key, some_pronoun, some_subject
from endeavour.textbook.simple import ask_for
from endeavour.textbook.tenses import deny, keep_kein_clear
from endeavour.textbook.trees import (
    Clause,
    NounPhrase,
    Pronoun,
    Property,
    Sentence,
    Slot,
    Subordinate,
    gender_of,
)

MAIN_MOODS = ("past", "now", "modal", "future", "bare")


def pronoun_for(subject: Slot | None) -> Pronoun:
    """The pronoun that takes up a subject again; "every guest" is taken up by "they"."""
    every = isinstance(subject, NounPhrase) and subject.determiner == "every"
    return Pronoun("they" if every else pronoun_key(subject))


def main_person(draw: Draw, mood: str, verb: Verb | None = None) -> Clause:
    """A clause about a person whom a second clause can take up by a pronoun."""
    while True:
        subject = some_subject(draw, ("person",))
        if isinstance(subject, NounPhrase) and (gender_of(subject) == "n" or subject.determiner == "every"):
            continue
        if isinstance(subject, Pronoun) and subject.key.endswith("body"):
            continue
        return draw_clause(draw, verb or human_verb(draw), subject, mood or draw.pick(MAIN_MOODS), plain=True)


def cause_of(draw: Draw, person: Slot, past: bool) -> Clause:
    """Why somebody does something: he is tired, has no time, has to work, it rains."""
    tense = "past" if past else "present"
    dice = draw.random.random()
    if dice < 0.25:
        word = draw.flagged_adjective("cause")
        intensifier = Word("sehr", "very") if draw.chance(0.3) else None
        return Clause(draw.verb_named["sein"], person, predicate=Property(word, intensifier), tense=tense)
    if dice < 0.38:
        noun = draw.noun_of("needed")
        kind = "no" if draw.belongs(noun, "lacking") else "a"
        return Clause(draw.verb_named["haben"], person, NounPhrase(noun, kind), tense=tense)
    if dice < 0.5:
        verb = draw.pick(draw.verbs_by_frame["weather"])
        return Clause(verb, Pronoun("it_n"), tense=tense, progressive=True)
    if dice < 0.8:
        clause = draw_clause(draw, human_verb(draw), person, "bare", plain=True)
        if not clause.verb.simple:
            clause.modal = draw.modal_named[draw.pick(("müssen", "wollen", "können", "dürfen"))]
            deny(clause, clause.modal.german in ("können", "dürfen"))
            keep_kein_clear(clause)
        clause.tense = tense
        return clause
    return draw_clause(draw, human_verb(draw), person, "past" if past else "future", plain=True)


def because(draw: Draw) -> Sentence:
    past = draw.chance(0.45)
    main = main_person(draw, "past" if past else "")
    main.frequency = None
    person = pronoun_for(main.subject)
    german, english = ("weil", "because") if draw.chance(0.7) else ("obwohl", "although")
    clause = cause_of(draw, person, past)
    return with_finite(draw, main, clause, german, english, 0.22)


def with_finite(
    draw: Draw, main: Clause, clause: Clause, german: str, english: str, first_probability: float
) -> Sentence:
    """A main clause with a finite clause and its conjunctions; sometimes the finite clause comes first."""
    first = draw.chance(first_probability)
    if first:
        swap_subjects(main, clause)
    return Sentence(main, subordinate=Subordinate("finite", clause, german, english, first))


def swap_subjects(main: Clause, clause: Clause) -> None:
    """When the dependent clause comes first, it names the person, and the main clause has the pronoun."""
    pronoun = pronoun_for(main.subject)
    if clause.subject == pronoun:
        main.subject, clause.subject = pronoun, main.subject


def condition(draw: Draw) -> Sentence:
    """If it rains, ...; when ..., before ..., after ..."""
    main = main_person(draw, draw.pick(("future", "modal", "bare")))
    main.negated = main.negated and main.tense != "future"
    person = pronoun_for(main.subject)
    dice = draw.random.random()
    if dice < 0.65:
        clause = cause_of(draw, person if draw.chance(0.6) else some_pronoun(draw), False)
        clause.progressive = False
        clause.tense = "present"
        german, english = "wenn", "if"
    elif dice < 0.85:
        clause = draw_clause(draw, human_verb(draw), person, "bare", plain=True)
        german, english = "bevor", "before"
    else:
        main = main_person(draw, "past")
        main.negated = False
        clause = draw_clause(draw, human_verb(draw), pronoun_for(main.subject), "bare", plain=True)
        clause.tense, clause.negated = "pluperfect", False
        german, english = "nachdem", "after"
    return with_finite(draw, main, clause, german, english, 0.5)


def past_moment(draw: Draw) -> Sentence:
    """When I was a child, ...: als."""
    main = main_person(draw, "past")
    main.time, main.negated = None, False
    person = pronoun_for(main.subject)
    dice = draw.random.random()
    if dice < 0.3:
        plural = person.key in ("we", "they", "you_all")
        child = NounPhrase(draw.noun_named["Kind"], "a", plural=plural)
        clause = Clause(draw.verb_named["sein"], person, predicate=child, tense="past")
    elif dice < 0.5:
        clause = cause_of(draw, person, True)
    else:
        verb = draw.verb_of("past_moment") if dice < 0.75 else human_verb(draw)
        clause = draw_clause(draw, verb, person, "past", plain=True)
        clause.negated = False
    return with_finite(draw, main, clause, "als", "when", 0.6)


def with_complement(draw: Draw) -> Sentence:
    """I know that ..., he does not know where ..."""
    verb = draw.pick([v for v in draw.lexicon.verbs if v.frame.startswith("that")])
    main = Clause(verb, some_subject(draw, ("person",)))
    inner = draw_clause(draw) if draw.chance(0.7) else quality_clause(draw, past=False)
    inner.front = ""
    inner.reason = None
    if "wh" not in verb.frame.split() or draw.chance(0.4):
        return Sentence(main, subordinate=Subordinate("finite", inner, "dass", "that"))
    deny(main, draw.chance(0.6))
    deny(inner, False)
    if inner.predicate is not None or draw.chance(0.35):
        deny(main, True)
        return Sentence(main, subordinate=Subordinate("finite", inner, "ob", "whether"))
    inner.attitude = ""
    ask_for(draw, inner)
    return Sentence(main, subordinate=Subordinate("question", inner))


def with_infinitive(draw: Draw) -> Sentence:
    """He tries to ..., in order to ..."""
    if draw.chance(0.5):
        verb = draw.pick([v for v in draw.lexicon.verbs if v.frame.split()[-1:] == ["to"]])
        subject = some_subject(draw, ("person",))
        main = Clause(verb, subject)
        if not verb.simple:
            main.progressive = not draw.chance(0.6) and "trying" in verb.flags
            main.tense = "present" if main.progressive else "past"
        form = "infinitive"
    else:
        main = main_person(draw, draw.pick(("past", "now", "bare", "modal")), verb=draw.verb_of("going"))
        main.negated = False
        subject, form = main.subject, "purpose"
    verb = draw.verb_of("purpose") if form == "purpose" else voluntary_verb(draw)
    clause = draw_clause(draw, verb, subject, "bare", plain=True)
    if draw.chance(0.25):
        clause.place = clause.place or some_place(draw, verb.where, subject)
    return Sentence(main, subordinate=Subordinate(form, clause))


def joined_clauses(draw: Draw) -> Sentence:
    """..., and ...; ..., but it ...; ..., therefore ..."""
    dice = draw.random.random()
    if dice < 0.35:
        return thing_again(draw)
    main = main_person(draw, "past" if draw.chance(0.4) else "")
    past = main.tense == "past"
    person = pronoun_for(main.subject)
    if dice < 0.65:
        cause = cause_of(draw, person, past)
        swap_subjects(main, cause)
        return Sentence(cause, joined=main, conjunction=Word("deshalb", "therefore"), inverted=True)
    word = Word("aber", "but") if dice < 0.85 else Word("und", "and")
    other = some_subject(draw, ("person",))
    second = draw_clause(draw, human_verb(draw), other, "past" if past else draw.pick(MAIN_MOODS), plain=True)
    deny(second, word.english == "but" and not second.frequency and draw.chance(0.4))
    keep_kein_clear(second)
    return Sentence(main, joined=second, conjunction=word)


def thing_again(draw: Draw) -> Sentence:
    """The soup is hot, but it tastes good: the pronoun follows the German gender."""
    verb = draw.verb_of("got")
    while True:
        main = draw_clause(draw, verb, mood=draw.pick(("past", "bare")), plain=True)
        direct = main.direct
        if isinstance(direct, NounPhrase) and not direct.noun.mass and "person" not in direct.noun.classes:
            break
    main.negated = False
    word = draw.adjective(direct.noun)
    it = pronoun_for(direct)
    but = draw.chance(0.6)
    if word is None or not word.comparative:
        again = draw.verb_of("given_up") if but else draw.verb_named["mögen"]
        second = Clause(again, pronoun_for(main.subject), it, tense=main.tense)
    else:
        direct.adjectives = ()
        much = Word("zu", "too") if but else Word("sehr", "very")
        second = Clause(draw.verb_named["sein"], it, predicate=Property(word, much), tense=main.tense)
    return Sentence(main, joined=second, conjunction=Word("aber", "but") if but else Word("und", "and"))
