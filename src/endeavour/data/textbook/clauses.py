"""Draws clauses: a verb, what it governs, a tense and the adverbials that suit it. It joins no clauses."""

from endeavour.data.textbook import numerals
from endeavour.data.textbook.entries import Adjective, Noun, Verb
from endeavour.data.textbook.german import person_of
from endeavour.data.textbook.morphology_german import ACCUSATIVE, DATIVE
from endeavour.data.textbook.phrases import Draw
from endeavour.data.textbook.trees import (
    Clause,
    Fixed,
    NounPhrase,
    Prepositional,
    Pronoun,
    Property,
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
    ("on", 3),
    ("swap", 5),
    ("acc body", 2),
)
FRAME_NAMES = tuple(name for name, weight in FRAMES for _ in range(weight))
SINCE = frozenset({"wohnen", "arbeiten", "warten", "lernen", "kennen", "haben", "spielen", "telefonieren"})
LASTING = frozenset(
    {"schlafen", "arbeiten", "warten", "tanzen", "lernen", "telefonieren", "wandern", "sich ausruhen"}
)
COMPANY = frozenset(
    {
        "gehen",
        "kommen",
        "wandern",
        "tanzen",
        "frühstücken",
        "einkaufen",
        "wohnen",
        "spazieren gehen",
        "ausgehen",
    }
    | {"schwimmen", "spielen", "feiern", "fahren", "reisen", "ankommen", "kochen", "essen", "sich ansehen"}
)
BY_VEHICLE = frozenset({"reisen", "kommen"})
NO_FUTURE = frozenset({"sich langweilen"})
DENYING = (Pronoun("nobody"), Pronoun("nothing"))
ANYTHING = frozenset(
    {"kaufen", "essen", "trinken", "lesen", "suchen", "bestellen", "sehen", "brauchen", "schreiben"}
)
BARE_OBJECT = frozenset({"spielen", "üben"})


class ClauseDraw(Draw):
    """Random clauses; the parameters of `clause` pin down what the caller needs."""

    def verb(self) -> Verb:
        return self.pick(self.verbs_by_frame[self.pick(FRAME_NAMES)])

    def clause(
        self, verb: Verb | None = None, subject: Slot | None = None, mood: str = "", plain: bool = False
    ) -> Clause:
        """A clause with its complements, tense and adverbials.

        Args:
            verb: the verb, else any that takes complements of its own.
            subject: a person that the verb accepts, else drawn.
            mood: see `_tense`; drawn if empty.
            plain: leave out adverbials, negation and fronting.
        """
        verb = verb or self.verb()
        self.verbs.append(verb.german)
        tree = Clause(verb)
        if verb.frame == "swap":
            tree.indirect = subject or self.subject(verb.object)
            tree.subject = self.noun_phrase(verb.subject, tree.indirect, indefinite=0.0)
        else:
            tree.subject = subject or self.subject(verb.subject)
        self._complements(tree)
        self._tense(tree, mood, plain)
        if not plain:
            self._adverbials(tree)
            self._front(tree)
        return tree

    # Complements ------------------------------------------------------------------------------------------

    def _complements(self, tree: Clause) -> None:
        verb, subject = tree.verb, tree.subject
        frame = verb.frame
        if frame in ("acc", "acc onto", "acc wall", "dat acc") or (frame == "acc?" and self.chance(0.85)):
            tree.direct = self._object(verb, subject)
        if frame == "dat":
            tree.indirect = self.person(subject, pronouns=0.35)
        elif frame == "dat acc":
            tree.indirect = self.person(subject, pronouns=0.4)
        elif frame == "oblique":
            tree.oblique = self._object(verb, subject)
        elif frame == "dir":
            tree.direction = self.direction(verb.object, subject)
        elif frame == "loc":
            tree.place = self.place(verb.where, subject)
        elif frame == "on":
            tree.place = self.position(tree.subject, DATIVE)
        elif frame in ("onto", "acc onto"):
            if verb.object == ("seat",):
                tree.direction = self._seat()
            else:
                tree.direction = self.position(tree.direct or tree.subject, ACCUSATIVE)
        elif frame == "acc wall":
            word = self.pick(self.prepositions["wall"])
            landmark = "Wand" if word.german == "an" else self.pick(("Sofa", "Schreibtisch", "Bett"))
            self.nouns.append(landmark)
            tree.direction = Prepositional(
                word.german, word.english, ACCUSATIVE, NounPhrase(self.by_german[landmark])
            )
        elif frame == "acc body":
            noun = self.noun(verb.object)
            own = self.possessive(subject)
            if noun.german == "Gesicht" and person_of(subject) > 2:
                noun = self.noun(("Hand",))
            tree.direct = NounPhrase(noun, "the", noun.german != "Gesicht", english_determiner=own)

    def _object(self, verb: Verb, subject: Slot | None) -> Slot:
        people = "person" in verb.object
        if verb.german in ANYTHING and not people and self.chance(0.05):
            return Pronoun(self.pick(("something", "nothing")))
        if people and (len(verb.object) == 1 or self.chance(0.35)):
            return self.person(subject)
        classes = tuple(c for c in verb.object if c != "person")
        phrase = self.noun_phrase(classes, subject)
        if verb.german in BARE_OBJECT and "instrument" in phrase.noun.classes:
            return NounPhrase(phrase.noun, "", english_determiner="the")
        if verb.german in ("sich freuen", "denken", "sich konzentrieren") and phrase.determiner == "a":
            phrase.determiner, phrase.count = "the", 0
        return phrase

    def _seat(self) -> Slot:
        noun = self.noun(("seat",))
        return Prepositional(noun.whereto, noun.english_where, ACCUSATIVE, self._place_phrase(noun, None))

    # Tense, modality, negation ----------------------------------------------------------------------------

    def _tense(self, tree: Clause, mood: str, plain: bool) -> None:
        """Sets the tense and the time of one mood.

        The moods: past, habit, now, perfect, future, modal, past modal, attitude, since, lasting, state.
        """
        verb = tree.verb
        mood = mood or self._mood(tree)
        if verb.simple and mood not in ("past", "since", "bare"):
            mood = "state"
        use = ""
        if mood == "past":
            tree.tense, use = "past", "past"
            tree.negated = self.chance(0.14)
        elif mood == "habit":
            if self.chance(0.45):
                word = self.pick(self.adverbs("frequency"))
                tree.frequency = Fixed(word.german, word.english) if not plain else None
            else:
                use = "present"
                tree.negated = self.chance(0.12)
        elif mood == "now":
            tree.progressive, use = True, "progressive"
            tree.negated = self.chance(0.14)
        elif mood == "state":
            tree.negated = self.chance(0.25)
        elif mood == "perfect":
            tree.tense = "perfect"
            tree.aspect = self.pick(("already", "just", "never", "yet"))
            tree.negated = tree.aspect == "yet"
        elif mood == "future":
            tree.tense, use = "future", "future"
            tree.negated = self.chance(0.15)
        elif mood in ("modal", "past modal"):
            past = mood == "past modal"
            tree.modal = self.pick([m for m in self.lexicon.modals if m.english_past or not past])
            tree.tense = "past" if past else "present"
            use = "past" if past else "future" if self.chance(0.5) else ""
            tree.negated = self.chance(0.2)
        elif mood == "attitude":
            tree.attitude = "would rather" if self.chance(0.3) else "like to"
            tree.negated = tree.attitude == "like to" and self.chance(0.25)
        elif mood == "since":
            tree.tense = "since"
            tree.time = numerals.since(
                self.random.randint(1, 12), self.pick(("week", "month", "year", "hour", "day"))
            )
        elif mood == "lasting":
            tree.tense = "past"
            span = numerals.span(self.random.randint(1, 12), self.pick(("hour", "minute")))
            tree.time = Fixed(f"{span.german} lang", f"for {span.english}")
        if use and not plain and self.chance(0.55) and not verb.simple:
            tree.time = self.time(use)
        if tree.negated and isinstance(tree.time, Fixed) and not _deniable(tree.time):
            tree.time = None
        if tree.subject in DENYING or tree.direct in DENYING:
            tree.negated, tree.aspect, tree.frequency = False, "", None
        self._keep_kein_clear(tree)

    def _mood(self, tree: Clause) -> str:
        verb = tree.verb
        dice = self.random.random()
        human = verb.subject[:1] == ("person",)
        if verb.german in SINCE and dice < 0.12 and _specific(tree):
            return "since"
        if verb.german in LASTING and 0.12 < dice < 0.2:
            return "lasting"
        if verb.simple:
            return "state" if dice < 0.65 else "past"
        if dice < 0.3:
            return "past"
        if dice < 0.44:
            return "habit"
        if dice < 0.63:
            return "now"
        if dice < 0.71:
            return "perfect"
        if dice < 0.79:
            return "future"
        if not human:
            return "now"
        return "modal" if dice < 0.91 else "past modal" if dice < 0.96 else "attitude"

    def _keep_kein_clear(self, tree: Clause) -> None:
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
        if tree.negated and isinstance(tree.subject, NounPhrase) and tree.subject.determiner != "the":
            if tree.subject.determiner in ("a", "", "every", "all", "many", "some", "several"):
                tree.subject.determiner, tree.subject.count = "the", 0

    # Adverbials -------------------------------------------------------------------------------------------

    def _adverbials(self, tree: Clause) -> None:
        verb = tree.verb
        heavy = sum(
            s is not None for s in (tree.time, tree.direct, tree.indirect, tree.direction, tree.oblique)
        )
        if tree.place is None and verb.where and self.chance(0.5 if heavy < 2 else 0.22):
            tree.place = self.place(verb.where, tree.subject)
        elif (
            verb.manner and not tree.negated and not tree.aspect and self.chance(0.45 if heavy < 2 else 0.25)
        ):
            tree.manner = self.manner(verb)
        elif verb.german in COMPANY and not tree.negated and self.chance(0.3):
            tree.companion = self.companion(tree.subject)
        elif verb.german in BY_VEHICLE and not tree.negated and self.chance(0.45):
            tree.companion = self.vehicle()
        if heavy < 2 and tree.place is None and not tree.negated and not verb.simple and self.chance(0.03):
            tree.reason = self.reason()

    def _front(self, tree: Clause) -> None:
        """Sometimes the time, the place or the reason comes first."""
        if isinstance(tree.subject, Pronoun) and tree.subject.key in ("nobody", "somebody"):
            return
        if tree.time is not None and tree.tense != "since" and self.chance(0.4):
            tree.front = "time"
        elif tree.place is not None and tree.verb.frame != "loc" and not tree.negated and self.chance(0.2):
            tree.front = "place"
        elif tree.reason is not None and self.chance(0.4):
            tree.front = "reason"

    # Being ------------------------------------------------------------------------------------------------

    def quality(self, past: bool | None = None) -> Clause:
        """Somebody or something is old, too old, older than ..., as old as ..."""
        tree = self._being(past)
        noun = self._subject_noun(tree)
        word = self._quality_word(tree, noun)
        dice = self.random.random()
        prop = Property(word)
        degree = self.pick(self.adverbs("degree"))
        if dice < 0.3:
            prop.intensifier = Fixed(degree.german, degree.english)
        elif dice < 0.65 and word.comparative and not isinstance(tree.subject, Pronoun):
            prop.comparison = "than" if dice < 0.53 else "as"
            prop.standard = self._standard(tree, word)
        tree.predicate = prop
        tree.negated = not prop.intensifier and self.chance(0.2) and prop.comparison != "than"
        if prop.comparison == "as" and tree.negated:
            tree.negated = True
        return tree

    def _being(self, past: bool | None = None) -> Clause:
        verb = next(v for v in self.verbs_by_frame["predicate"] if v.german == "sein")
        self.verbs.append(verb.german)
        tree = Clause(verb)
        if self.chance(0.3) if past is None else past:
            tree.tense = "past"
        classes = self.pick(SUBJECTS_OF_BEING)
        if classes == ("person",):
            tree.subject = self.subject(classes)
        else:
            tree.subject = self.noun_phrase(classes, indefinite=0.0, adjectives=0.1)
        return tree

    def _subject_noun(self, tree: Clause) -> NounPhrase:
        if isinstance(tree.subject, NounPhrase) and self.adjectives_of(tree.subject.noun):
            return tree.subject
        return NounPhrase(self.by_german["Frau"])

    def _quality_word(self, tree: Clause, noun: NounPhrase) -> Adjective:
        if isinstance(tree.subject, NounPhrase):
            taken = noun.adjectives
            noun.adjectives = ()
            word = self.adjective(noun.noun)
            if word is not None and word not in taken:
                return word
        people = [a for a in self.lexicon.adjectives if "person" in a.classes]
        word = self.pick(people)
        self.adjectives.append(word.german)
        if isinstance(tree.subject, NounPhrase) and "person" not in noun.noun.classes:
            tree.subject = self.name()
        return word

    def _standard(self, tree: Clause, word: Adjective) -> Slot:
        """What the subject is compared with: something else of its kind."""
        if isinstance(tree.subject, NounPhrase):
            noun = tree.subject.noun
            rivals = [n for n in self.nouns_of(word.classes) if n is not noun and _kind(n) == _kind(noun)]
            if rivals:
                rival = self.pick(rivals)
                self.nouns.append(rival.german)
                phrase = NounPhrase(rival)
                if "family" in rival.classes:
                    phrase.determiner = self.possessive(None)
                    phrase.plural = rival.gender == "p"
                elif rival.plural and tree.subject.determiner != "this" and self.chance(0.25):
                    phrase.determiner = self.possessive(None) if "person" not in rival.classes else "this"
                return phrase
        return self.name()


SUBJECTS_OF_BEING = (
    ("person",),
    ("person",),
    ("animal",),
    ("thing", "clothing"),
    ("vehicle",),
    ("food", "drink"),
    ("place",),
    ("furniture", "device"),
    ("film", "text", "task", "lesson", "event", "weather", "game"),
)


def _kind(noun: Noun) -> str:

    for kind in KINDS:
        if kind in noun.classes:
            return kind
    return ""


KINDS = [
    "family",
    "person",
    "animal",
    "drink",
    "food",
    "room",
    "nature",
    "settlement",
    "place",
    "text",
    "clothing",
    "vehicle",
    "furniture",
    "dish",
    "device",
    "container",
    "film",
    "task",
    "lesson",
    "event",
    "game",
    "thing",
]


def _specific(tree: Clause) -> bool:
    """Whether the object is one that somebody can have had or learned for years."""
    slot = tree.direct
    return not isinstance(slot, NounPhrase) or (
        not slot.count and slot.determiner not in ("many", "all", "some")
    )


def _deniable(time: Fixed) -> bool:
    """Whether a denial goes well with the time: not today, but hardly not at three o'clock."""
    first = time.english.split(" ")[0]
    return first in ("today", "yesterday", "tomorrow", "now", "this", "last", "next")
