"""Draws clauses: a verb, what it governs, a tense and the adverbials that suit it. It joins no clauses."""

from endeavour.textbook import numerals
from endeavour.textbook.adverbials import (
    by_vehicle,
    place_phrase,
    position_near,
    some_companion,
    some_direction,
    some_manner,
    some_place,
    some_reason,
    some_time,
)
from endeavour.textbook.draw import Draw
from endeavour.textbook.entries import Verb
from endeavour.textbook.german import person_of
from endeavour.textbook.morphology_german import ACCUSATIVE, DATIVE
from endeavour.textbook.phrases import noun_phrase, possessive_of, some_person, some_subject
from endeavour.textbook.trees import (
    Clause,
    Fixed,
    NounPhrase,
    Prepositional,
    Pronoun,
    Slot,
)

FRAMES = (
    ("acc", 44),
    ("acc?", 5),
    ("dat", 8),
    ("dat acc", 9),
    ("oblique", 17),
    ("dir", 8),
    ("loc", 5),
    ("loc?", 10),
    ("-", 7),
    ("onto", 2),
    ("acc onto", 3),
    ("acc wall", 1),
    ("on", 6),
    ("swap", 5),
    ("acc body", 2),
)
FRAME_NAMES = tuple(name for name, weight in FRAMES for _ in range(weight))
DENYING = (Pronoun("nobody"), Pronoun("nothing"))
UNDENIED = ("a", "", "every", "all", "many", "some", "several")  # not every man is another sentence


def some_verb(draw: Draw) -> Verb:
    return draw.pick(draw.verbs_by_frame[draw.pick(FRAME_NAMES)])


def human_verb(draw: Draw) -> Verb:
    """A verb whose subject can be any person."""
    while True:
        verb = some_verb(draw)
        if "person" in verb.subject and verb.frame != "swap":
            return verb


def voluntary_verb(draw: Draw) -> Verb:
    """A verb for what somebody can be told to do or try to do."""
    while True:
        verb = human_verb(draw)
        if not verb.simple and verb.frame not in ("loc", "on") and "uncommanded" not in verb.flags:
            return verb


def draw_clause(
    draw: Draw, verb: Verb | None = None, subject: Slot | None = None, mood: str = "", plain: bool = False
) -> Clause:
    """A clause with its complements, tense and adverbials.

    Args:
        verb: the verb, else any that takes complements of its own.
        subject: a person that the verb accepts, else drawn.
        mood: see `_tense`; drawn if empty.
        plain: leave out adverbials, negation and fronting.
    """
    verb = verb or some_verb(draw)
    tree = Clause(verb)
    if verb.frame == "swap":
        tree.indirect = subject or some_subject(draw, verb.object)
        tree.subject = noun_phrase(draw, verb.subject, tree.indirect, indefinite=0.0)
    else:
        tree.subject = subject or some_subject(draw, verb.subject)
    add_complements(draw, tree)
    set_tense(draw, tree, mood, plain)
    if not plain:
        add_adverbials(draw, tree)
        front_something(draw, tree)
    return tree


def add_complements(draw: Draw, tree: Clause) -> None:
    verb, subject = tree.verb, tree.subject
    frame = verb.frame
    if frame in ("acc", "acc onto", "acc wall", "dat acc") or (frame == "acc?" and draw.chance(0.85)):
        tree.direct = object_of(draw, verb, subject)
    if frame == "dat":
        tree.indirect = some_person(draw, subject, pronouns=0.35)
    elif frame == "dat acc":
        tree.indirect = some_person(draw, subject, pronouns=0.4)
    elif frame == "oblique":
        tree.oblique = object_of(draw, verb, subject)
    elif frame == "dir":
        tree.direction = some_direction(draw, verb.object, subject)
    elif frame == "loc":
        tree.place = some_place(draw, verb.where, subject)
    elif frame == "on":
        tree.place = position_near(draw, tree.subject, DATIVE)
    elif frame in ("onto", "acc onto"):
        if verb.object == ("seat",):
            tree.direction = on_seat(draw)
        else:
            tree.direction = position_near(draw, tree.direct or tree.subject, ACCUSATIVE)
    elif frame == "acc wall":
        word = draw.pick(draw.prepositions["wall"])
        landmark = "Wand" if word.german == "an" else draw.pick(draw.lexicon.noun_groups["below_pictures"])
        tree.direction = Prepositional(
            word.german, word.english, ACCUSATIVE, NounPhrase(draw.noun_named[landmark])
        )
    elif frame == "acc body":
        noun = draw.noun(verb.object)
        own = possessive_of(draw, subject)
        if "only_one" in noun.classes and person_of(subject) > 2:
            noun = draw.noun_of("washed_by_several")
        tree.direct = NounPhrase(noun, "the", "only_one" not in noun.classes, english_determiner=own)


def object_of(draw: Draw, verb: Verb, subject: Slot | None) -> Slot:
    people = "person" in verb.object
    if "anything" in verb.flags and not people and draw.chance(0.05):
        return Pronoun(draw.pick(("something", "nothing")))
    if people and (len(verb.object) == 1 or draw.chance(0.35)):
        return some_person(draw, subject)
    classes = tuple(c for c in verb.object if c != "person")
    phrase = noun_phrase(draw, classes, subject)
    if "no_article" in verb.flags and "instrument" in phrase.noun.classes:
        return NounPhrase(phrase.noun, "", english_determiner="the")
    if "definite" in verb.flags and phrase.determiner == "a":
        phrase.determiner, phrase.count = "the", 0
    return phrase


def on_seat(draw: Draw) -> Slot:
    noun = draw.noun(("seat",))
    return Prepositional(noun.whereto, noun.english_where, ACCUSATIVE, place_phrase(draw, noun, None))


def set_tense(draw: Draw, tree: Clause, mood: str, plain: bool) -> None:
    """Sets the tense and the time of one mood.

    The moods: past, habit, now, perfect, future, modal, past modal, attitude, since, lasting, state.
    """
    verb = tree.verb
    mood = mood or likely_mood(draw, tree)
    if verb.simple and mood not in ("past", "since", "bare"):
        mood = "state"
    use = ""
    if mood == "past":
        tree.tense, use = "past", "past"
        tree.negated = draw.chance(0.14)
    elif mood == "habit":
        if draw.chance(0.45):
            word = draw.pick(draw.adverbs("frequency"))
            tree.frequency = Fixed(word.german, word.english) if not plain else None
        else:
            use = "present"
            tree.negated = draw.chance(0.12)
    elif mood == "now":
        tree.progressive, use = True, "progressive"
        tree.negated = draw.chance(0.14)
    elif mood == "state":
        tree.negated = draw.chance(0.25)
    elif mood == "perfect":
        tree.tense = "perfect"
        tree.aspect = draw.pick(("already", "just", "never", "yet"))
        tree.negated = tree.aspect == "yet"
    elif mood == "future":
        tree.tense, use = "future", "future"
        tree.negated = draw.chance(0.15)
    elif mood in ("modal", "past modal"):
        past = mood == "past modal"
        tree.modal = draw.pick([m for m in draw.lexicon.modals if m.english_past or not past])
        tree.tense = "past" if past else "present"
        use = "past" if past else "future" if draw.chance(0.5) else ""
        tree.negated = draw.chance(0.2)
    elif mood == "attitude":
        tree.attitude = "would rather" if draw.chance(0.3) else "like to"
        tree.negated = tree.attitude == "like to" and draw.chance(0.25)
    elif mood == "since":
        tree.tense = "since"
        tree.time = numerals.since(
            draw.random.randint(1, 12), draw.pick(("week", "month", "year", "hour", "day"))
        )
    elif mood == "lasting":
        tree.tense = "past"
        span = numerals.span(draw.random.randint(1, 12), draw.pick(("hour", "minute")))
        tree.time = Fixed(f"{span.german} lang", f"for {span.english}")
    if use and not plain and draw.chance(0.55) and not verb.simple:
        tree.time = some_time(draw, use)
    if tree.negated and isinstance(tree.time, Fixed) and not tree.time.deniable:
        tree.time = None
    if tree.subject in DENYING or tree.direct in DENYING:
        tree.negated, tree.aspect, tree.frequency = False, "", None
    keep_kein_clear(tree)


def likely_mood(draw: Draw, tree: Clause) -> str:
    verb = tree.verb
    dice = draw.random.random()
    human = verb.subject[:1] == ("person",)
    if "since" in verb.flags and dice < 0.12 and _specific(tree):
        return "since"
    if "lasting" in verb.flags and 0.12 < dice < 0.2:
        return "lasting"
    if verb.simple:
        return "state" if dice < 0.65 else "past"
    if dice < 0.3:
        return "past"
    if dice < 0.44:
        return "habit"
    if dice < 0.63:
        return "now"
    if dice < 0.71 and verb.frame not in ("loc", "on") and "sky" not in verb.subject:
        return "perfect"
    if dice < 0.79:
        return "future"
    if not human:
        return "now"
    return "modal" if dice < 0.91 else "past modal" if dice < 0.96 else "attitude"


def keep_kein_clear(tree: Clause) -> None:
    """Negation denies an indefinite object as kein; whole sets and numbers would need another wording."""
    for name in ("direct", "indirect", "oblique"):
        slot = getattr(tree, name)
        if not isinstance(slot, NounPhrase) or not (tree.negated or tree.aspect or tree.attitude):
            continue
        if slot.count or slot.determiner in ("many", "some", "several", "all", "every"):
            slot.determiner, slot.count = "the", 0
        if name != "direct" and slot.determiner in ("", "a") and not slot.noun.mass:
            slot.determiner = "the"
        if tree.attitude and tree.negated and not slot.plural and slot.determiner == "a":
            slot.determiner = "the"
    subject = tree.subject
    if tree.negated and isinstance(subject, NounPhrase) and subject.determiner in UNDENIED:
        subject.determiner, subject.count = "the", 0


def add_adverbials(draw: Draw, tree: Clause) -> None:
    verb = tree.verb
    heavy = sum(s is not None for s in (tree.time, tree.direct, tree.indirect, tree.direction, tree.oblique))
    if tree.place is None and verb.where and draw.chance(0.5 if heavy < 2 else 0.22):
        tree.place = some_place(draw, verb.where, tree.subject)
    elif (
        verb.manner
        and not tree.negated
        and not tree.aspect
        and not tree.frequency
        and draw.chance(0.45 if heavy < 2 else 0.25)
    ):
        tree.manner = some_manner(draw, verb)
    elif "company" in verb.flags and not tree.negated and draw.chance(0.3):
        tree.companion = some_companion(draw, tree.subject)
    elif "by_vehicle" in verb.flags and not tree.negated and draw.chance(0.45):
        tree.companion = by_vehicle(draw)
    if heavy < 2 and tree.place is None and not tree.negated and not verb.simple and draw.chance(0.03):
        tree.reason = some_reason(draw)


def front_something(draw: Draw, tree: Clause) -> None:
    """Sometimes the time, the place or the reason comes first."""
    if isinstance(tree.subject, Pronoun) and tree.subject.key in ("nobody", "somebody"):
        return
    if tree.time is not None and tree.tense != "since" and draw.chance(0.4):
        tree.front = "time"
    elif tree.place is not None and tree.verb.frame != "loc" and not tree.negated and draw.chance(0.2):
        tree.front = "place"
    elif tree.reason is not None and draw.chance(0.4):
        tree.front = "reason"


def _specific(tree: Clause) -> bool:
    """Whether the object is one that somebody can have had or learned for years."""
    slot = tree.direct
    return not isinstance(slot, NounPhrase) or (
        not slot.count and slot.determiner not in ("many", "all", "some")
    )
