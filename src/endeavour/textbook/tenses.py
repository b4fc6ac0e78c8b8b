"""Draws the tense of a clause with its negation and time. It knows nothing of complements and of other adverbials."""

from endeavour.textbook import numerals
from endeavour.textbook.adverbials import some_time
from endeavour.textbook.draw import Draw
from endeavour.textbook.entries import Word
from endeavour.textbook.trees import Clause, NounPhrase, Pronoun

DENYING = (Pronoun("nobody"), Pronoun("nothing"))
UNDENIED = ("a", "", "every", "all", "many", "some", "several")  # not every man is another sentence
MOODS = {  # mood → tense, the use of the adverbs of time that suit it, how often it is negated
    "past": ("past", "past", 0.14),
    "now": ("present", "progressive", 0.14),
    "state": ("present", "", 0.25),
    "future": ("future", "future", 0.15),
}


def set_tense(draw: Draw, tree: Clause, mood: str, plain: bool) -> None:
    """Sets tense, negation and time of a mood; an empty one is drawn. A `plain` clause gets no adverb of time.

    The moods: past, habit, now, perfect, future, modal, past modal, attitude, since, lasting, state, and bare for
    a present without anything else.
    """
    verb = tree.verb
    mood = mood or likely_mood(draw, tree)
    if verb.simple and mood not in ("past", "since", "bare"):
        mood = "state"
    use = _apply_mood(draw, tree, mood, plain)
    if use and not plain and draw.chance(0.55) and not verb.simple:
        tree.time = some_time(draw, use)
    if tree.negated and isinstance(tree.time, Word) and "deniable" not in tree.time.flags:
        tree.time = None
    if tree.subject in DENYING or tree.direct in DENYING:
        tree.negated, tree.aspect, tree.frequency = False, "", None
    keep_kein_clear(tree)


def deny(tree: Clause, denied: bool) -> None:
    """Sets negation anew: what "nobody" or "nothing" denies is not denied again, and "yet" needs it."""
    tree.negated = denied and tree.subject not in DENYING and tree.direct not in DENYING
    if tree.aspect == "yet" and not tree.negated:
        tree.aspect = "already"


def _apply_mood(draw: Draw, tree: Clause, mood: str, plain: bool) -> str:
    """Sets what a mood decides and returns which use of adverbs of time suits it, "" for none."""
    if mood in MOODS:
        tree.tense, use, denied = MOODS[mood]
        tree.progressive = mood == "now"
        tree.negated = draw.chance(denied)
        return use
    if mood == "habit":
        if draw.chance(0.45):
            word = draw.word("frequency")
            tree.frequency = word if not plain else None
            return ""
        tree.negated = draw.chance(0.12)
        return "present"
    if mood == "perfect":
        tree.tense = "perfect"
        tree.aspect = draw.pick(("already", "just", "never", "yet"))
        tree.negated = tree.aspect == "yet"
    elif mood in ("modal", "past modal"):
        past = mood == "past modal"
        tree.modal = draw.pick([m for m in draw.lexicon.modals if m.english_past or not past])
        tree.tense = "past" if past else "present"
        use = "past" if past else "future" if draw.chance(0.5) else ""
        tree.negated = draw.chance(0.2)
        return use
    elif mood == "attitude":
        tree.attitude = "would rather" if draw.chance(0.3) else "like to"
        tree.negated = tree.attitude == "like to" and draw.chance(0.25)
    elif mood == "since":
        tree.tense = "since"
        number, unit = draw.random.randint(1, 12), draw.pick(("week", "month", "year", "hour", "day"))
        tree.time = numerals.distance("since", number, unit)
    elif mood == "lasting":
        tree.tense = "past"
        span = numerals.span(draw.random.randint(1, 12), draw.pick(("hour", "minute")))
        tree.time = Word(f"{span.german} lang", f"for {span.english}")
    return ""


def likely_mood(draw: Draw, tree: Clause) -> str:
    verb = tree.verb
    dice = draw.random.random()
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
    if verb.subject[:1] != ("person",):
        return "now"
    return "modal" if dice < 0.91 else "past modal" if dice < 0.96 else "attitude"


def _specific(tree: Clause) -> bool:
    """Whether the object is one that somebody can have had or learned for years."""
    slot = tree.direct
    return not isinstance(slot, NounPhrase) or (
        not slot.count and slot.determiner not in ("many", "all", "some")
    )


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
