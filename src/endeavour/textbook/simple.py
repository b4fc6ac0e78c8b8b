"""Draws sentences of one clause: statements, questions, commands, what there is, prices and times."""

from endeavour.textbook import numerals
from endeavour.textbook.adverbials import city_or_country, clock_time, some_manner, some_place
from endeavour.textbook.clauses import draw_clause, front_something, human_verb, voluntary_verb
from endeavour.textbook.draw import Draw, words_for
from endeavour.textbook.entries import Word
from endeavour.textbook.morphology_german import DATIVE
from endeavour.textbook.phrases import noun_phrase, some_name, titled_name
from endeavour.textbook.tenses import deny, keep_kein_clear, set_tense
from endeavour.textbook.trees import (
    Clause,
    NounPhrase,
    Pair,
    Phrase,
    Prepositional,
    Pronoun,
    Sentence,
    Slot,
)

WH_TIME = Word("wann", "when")
WH_PLACE = Word("wo", "where")
WH_DIRECTION = Word("wohin", "where")
WH_REASON = Word("warum", "why")


def whom_spoken_to(draw: Draw) -> Phrase:
    """The vocative that tells du, ihr and Sie apart."""
    if draw.you == "you_formal":
        return titled_name(draw)
    if draw.you == "you":
        return some_name(draw)
    if draw.chance(0.4):
        return NounPhrase(draw.noun_named["Kind"], "", plural=True)
    return Pair(some_name(draw), some_name(draw))


def addressed(draw: Draw) -> Sentence:
    """Mrs. Weber, can you ...? Children, you have to ..."""
    dice = draw.random.random()
    verb = human_verb(draw)
    if dice < 0.4:
        return command(draw)
    tree = Sentence(draw_clause(draw, verb, Pronoun(draw.you)), vocative=whom_spoken_to(draw))
    if dice < 0.8:
        as_question(tree)
    return tree


def statement(draw: Draw) -> Sentence:
    tree = Sentence(draw_clause(draw))
    subject = tree.main.subject
    if isinstance(subject, Pronoun) and draw.you == "you" and subject.key == "you" and draw.chance(0.3):
        tree.vocative = some_name(draw)
    return tree


def command(draw: Draw) -> Sentence:
    """Open the window! Mrs. Weber, please open the window!"""
    verb = voluntary_verb(draw)
    clause = draw_clause(draw, verb, Pronoun(draw.you), mood="bare", plain=True)
    tree = Sentence(clause, "imperative", draw.you)
    if verb.manner and draw.chance(0.35):
        clause.manner = some_manner(draw, verb)
    elif draw.chance(0.3):
        clause.time = draw.pick(
            [a for a in words_for(draw.lexicon, "time", "future") if " " not in a.english]
        )
    deny(clause, clause.manner is None and clause.time is None and draw.chance(0.2))
    keep_kein_clear(clause)
    tree.please = not clause.negated and draw.chance(0.4)
    if draw.you != "you" or draw.chance(0.35):
        tree.vocative = whom_spoken_to(draw)
    return tree


def yes_no_question(draw: Draw) -> Sentence:
    subject = Pronoun(draw.you) if draw.chance(0.45) else None
    verb = human_verb(draw) if subject else None
    tree = Sentence(draw_clause(draw, verb, subject))
    as_question(tree)
    return tree


def wh_question(draw: Draw) -> Sentence:
    subject = Pronoun(draw.you) if draw.chance(0.35) else None
    clause = draw_clause(draw, human_verb(draw) if subject else None, subject)
    tree = Sentence(clause)
    as_question(tree)
    clause.attitude = clause.aspect = ""
    if clause.tense == "perfect":
        clause.tense = "past"
    ask_for(draw, clause)
    return tree


def as_question(tree: Sentence) -> None:
    tree.kind = "question"
    clause = tree.main
    clause.front = ""
    clause.negated = False
    clause.reason = None
    if clause.aspect in ("yet", "never", "just"):
        clause.aspect = "ever" if clause.aspect == "never" else "already"


def ask_for(draw: Draw, clause: Clause) -> None:
    """Turns one slot into the question."""
    verb = clause.verb
    choices = ["time", "reason"] if clause.tense != "since" and verb.frame != "swap" else []
    if verb.simple:
        choices = ["reason"]
    choices += ["place"] if verb.where or verb.frame in ("loc", "on") else []
    choices += ["direction"] * 2 if verb.frame in ("dir", "acc onto") else []
    choices += ["subject"] if verb.subject[:1] == ("person",) and verb.frame != "swap" else []
    choices += ["direct"] * 3 if verb.frame in ("acc", "acc?") and clause.direct is not None else []
    choices += ["indirect"] if verb.frame == "dat" else []
    choices += ["oblique"] * 2 if verb.frame == "oblique" else []
    if verb.frame == "swap":
        choices = ["reason", "subject"]
    name = draw.pick(choices)
    clause.front = name
    if name == "time":
        clause.time, clause.frequency = WH_TIME, None
    elif name == "reason":
        clause.reason = WH_REASON
        clause.time = clause.time if clause.tense in ("past", "future") and draw.chance(0.4) else None
    elif name == "place":
        clause.place = WH_PLACE
    elif name == "direction":
        clause.direction = WH_DIRECTION
    elif name == "subject" and verb.frame != "swap":
        clause.subject = Pronoun("who")
        if isinstance(clause.direct, NounPhrase) and verb.frame == "acc body":
            clause.direct.english_determiner = "their"
    else:
        setattr(clause, name, question_word(draw, getattr(clause, name)))


def question_word(draw: Draw, slot: Slot) -> Slot:
    """who, what, or which for the thing that a slot held."""
    if not isinstance(slot, NounPhrase):
        return Pronoun("who")
    if slot.noun.gender != "p" and not slot.noun.mass and not slot.owner and draw.chance(0.5):
        slot.determiner, slot.english_determiner, slot.count = "which", None, 0
        return slot
    return Pronoun("who" if "person" in slot.noun.classes else "what")


def existence(draw: Draw) -> Sentence:
    """There is a big park in the city."""
    verb = draw.verb_named["es geben"]
    scene = draw.scene("existence")
    direct = noun_phrase(draw, scene.what, indefinite=1.0, adjectives=0.5)
    if direct.determiner == "all":
        direct.determiner = "many"
    tree = Clause(verb, direct=direct)
    tree.place = some_place(draw, scene.where)
    if draw.chance(0.25):
        tree.tense = "past"
    if draw.chance(0.3) and direct.determiner == "a" and not direct.adjectives and not direct.plural:
        direct.determiner = "no"
    tree.front = "place" if isinstance(tree.place, Prepositional) and draw.chance(0.4) else ""
    sentence = Sentence(tree)
    if draw.chance(0.15) and direct.determiner != "no":
        sentence.kind, tree.front = "question", ""
    return sentence


def figures(draw: Draw) -> Sentence:
    """Prices, durations, clock times, dates and the weather."""
    dice = draw.random.random()
    if dice < 0.3:
        verb = draw.verb_named["kosten"]
        tree = Clause(verb, noun_phrase(draw, verb.subject, indefinite=0.1))
        tree.predicate = numerals.price(draw.random.randint(2, 150), draw.chance(0.6))
    elif dice < 0.5:
        verb = draw.verb_named["dauern"]
        event = noun_phrase(draw, verb.subject, indefinite=0.0)
        tree = Clause(verb, event)
        units = ("day", "week") if "trip" in event.noun.classes else ("hour", "minute")
        tree.predicate = numerals.span(draw.random.randint(1, 12), draw.pick(units))
        tree.tense = "past" if draw.chance(0.3) else "present"
    elif dice < 0.7:
        verb = draw.pick(draw.verbs_by_frame["weather"])
        tree = Clause(verb, Pronoun("it_n"))
        mood = draw.pick(("past", "now", "now", "future", "habit"))
        set_tense(draw, tree, mood, False)
        if mood in ("past", "now") and draw.chance(0.6):
            kind = "city" if draw.chance(0.6) else "country"
            tree.place = city_or_country(draw, kind, DATIVE)
        front_something(draw, tree)
        return Sentence(tree)
    else:
        return Sentence(time_of_day(draw))
    if isinstance(tree.subject, NounPhrase) and tree.subject.determiner in ("all", "some", "every", ""):
        tree.subject.determiner, tree.subject.count = "the", 0
    return Sentence(tree)


def time_of_day(draw: Draw) -> Clause:
    """It is half past three; today is the third of May; the film begins at eight o'clock."""
    being = draw.verb_named["sein"]
    dice = draw.random.random()
    if dice < 0.3:
        hour, minute = draw.random.randint(1, 12), draw.pick((0, 30, 15, 45, 5, 10, 20, 40, 50, 55))
        return Clause(being, Pronoun("it_n"), predicate=numerals.clock(hour, minute))
    if dice < 0.55:
        month = draw.word("month")
        day = draw.random.randint(1, 28 if month.english == "February" else 30)
        name, word = draw.pick((("today", "heute"), ("tomorrow", "morgen")))
        return Clause(being, Word(word, name), predicate=numerals.date(day, month, on=False))
    verb = draw.verb_of("time_of_day")
    tree = draw_clause(draw, verb, mood="bare", plain=True)
    tree.time = clock_time(draw, figures="timetable" in verb.flags)
    return tree
