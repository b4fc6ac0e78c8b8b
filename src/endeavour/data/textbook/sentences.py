"""Draws whole sentences: one function for each construction that a textbook teaches. It renders nothing."""

from collections.abc import Callable

from endeavour.data.textbook import numerals
from endeavour.data.textbook.clauses import ClauseDraw
from endeavour.data.textbook.entries import Lexicon, Modal, Verb
from endeavour.data.textbook.german import gender_of
from endeavour.data.textbook.morphology_german import DATIVE
from endeavour.data.textbook.trees import (
    Clause,
    Fixed,
    Name,
    NounPhrase,
    Pair,
    Phrase,
    Prepositional,
    Pronoun,
    Property,
    Relative,
    Sentence,
    Slot,
    Subordinate,
)

CAUSES = ("müde", "krank", "hungrig", "durstig", "nervös", "traurig", "glücklich")
WH_TIME = Fixed("wann", "when")
WH_PLACE = Fixed("wo", "where")
WH_DIRECTION = Fixed("wohin", "where")
WH_REASON = Fixed("warum", "why")


class SentenceDraw(ClauseDraw):
    """Random sentences over all constructions."""

    def __init__(self, lexicon: Lexicon, seed: int) -> None:
        super().__init__(lexicon, seed)
        self.verb_named = {v.german: v for v in lexicon.verbs}
        self.going = [v for v in lexicon.verbs if v.frame == "dir" and v.german != "ziehen"]
        self.modal_named: dict[str, Modal] = {m.german: m for m in lexicon.modals}
        table: tuple[tuple[int, Callable[[], Sentence]], ...] = (
            (30, self.statement),
            (7, self.yes_no_question),
            (9, self.wh_question),
            (5, self.command),
            (8, self.description),
            (4, self.identity),
            (8, self.because),
            (4, self.condition),
            (2, self.past_moment),
            (6, self.complement),
            (8, self.relative),
            (5, self.infinitive),
            (5, self.joined),
            (3, self.existence),
            (2, self.superlative),
            (2, self.sensation),
            (3, self.figures),
            (2, self.possession),
        )
        self.constructions = tuple(draw for weight, draw in table for _ in range(weight))

    def sentence(self) -> Sentence:
        """One sentence of any construction."""
        dice = self.random.random()
        self.start("you" if dice < 0.9 else "you_formal" if dice < 0.96 else "you_all")
        return self.addressed() if self.you != "you" else self.pick(self.constructions)()

    # Speaking to somebody ---------------------------------------------------------------------------------

    def whom_spoken_to(self) -> Phrase:
        """The vocative that tells du, ihr and Sie apart."""
        if self.you == "you_formal":
            return self.titled()
        if self.you == "you":
            return self.name()
        if self.chance(0.4):
            self.nouns.append("Kind")
            return NounPhrase(self.by_german["Kind"], "", plural=True)
        first = self.name()
        return Pair(first, self.name())

    def addressed(self) -> Sentence:
        """Mrs. Weber, can you ...? Children, you have to ..."""
        dice = self.random.random()
        verb = self.human_verb()
        if dice < 0.4:
            return self.command()
        tree = Sentence(self.clause(verb, Pronoun(self.you)), vocative=self.whom_spoken_to())
        if dice < 0.8:
            self._as_question(tree)
        return tree

    def human_verb(self) -> Verb:
        """A verb whose subject can be any person."""
        while True:
            verb = self.verb()
            if "person" in verb.subject and verb.frame != "swap":
                return verb

    def voluntary_verb(self) -> Verb:
        """A verb for what somebody can be told to do or try to do."""
        while True:
            verb = self.human_verb()
            if not verb.simple and verb.frame not in ("loc", "on") and verb.german not in UNCOMMANDED:
                return verb

    def _as_question(self, tree: Sentence) -> None:
        tree.kind = "question"
        clause = tree.main
        clause.front = ""
        clause.negated = False
        clause.reason = None
        if clause.aspect in ("yet", "never", "just"):
            clause.aspect = "ever" if clause.aspect == "never" else "already"

    # Simple sentences -------------------------------------------------------------------------------------

    def statement(self) -> Sentence:
        tree = Sentence(self.clause())
        subject = tree.main.subject
        if isinstance(subject, Pronoun) and self.you == "you" and subject.key == "you" and self.chance(0.3):
            tree.vocative = self.name()
        return tree

    def yes_no_question(self) -> Sentence:
        subject = Pronoun(self.you) if self.chance(0.45) else None
        verb = self.human_verb() if subject else None
        tree = Sentence(self.clause(verb, subject))
        self._as_question(tree)
        return tree

    def command(self) -> Sentence:
        """Open the window! Mrs. Weber, please open the window!"""
        verb = self.voluntary_verb()
        clause = self.clause(verb, Pronoun(self.you), mood="bare", plain=True)
        tree = Sentence(clause, "imperative", self.you)
        if verb.manner and self.chance(0.35):
            clause.manner = self.manner(verb)
        elif self.chance(0.3):
            word = self.pick([a for a in self.adverbs("time", "future") if " " not in a.english])
            clause.time = Fixed(word.german, word.english)
        clause.negated = clause.manner is None and clause.time is None and self.chance(0.2)
        self._keep_kein_clear(clause)
        tree.please = not clause.negated and self.chance(0.4)
        if self.you != "you" or self.chance(0.35):
            tree.vocative = self.whom_spoken_to()
        return tree

    def description(self) -> Sentence:
        tree = Sentence(self.quality())
        if self.chance(0.12):
            tree.kind, tree.main.negated = "question", False
        return tree

    def identity(self) -> Sentence:
        """She is a teacher; my name is; he is twenty years old; he wants to become a doctor."""
        dice = self.random.random()
        clause = self._being()
        if not isinstance(clause.subject, Name | Pronoun) or clause.subject == Pronoun("they"):
            clause.subject = self.name() if self.chance(0.5) else Pronoun(self.pick(("he", "she")))
        subject = clause.subject
        if dice < 0.25:
            clause.predicate = self._age()
        elif dice < 0.4:
            clause = self._named()
        else:
            if isinstance(subject, Pronoun) and subject.key not in ("he", "she"):
                subject = clause.subject = Pronoun(self.pick(("he", "she")))
            woman = subject.gender == "f" if isinstance(subject, Name) else subject.key == "she"
            job = self.noun(("job",))
            if dice < 0.6:
                clause.verb = self.verb_named["werden"]
                clause.modal, clause.tense = self.modal_named["wollen"], "present"
            clause.predicate = NounPhrase(job, "", english_determiner="a", feminine=woman)
            if clause.modal is None and self.chance(0.45):
                word = self.adjective(job)
                if word is not None:
                    clause.predicate = NounPhrase(job, "a", adjectives=(word,), feminine=woman)
            clause.negated = clause.modal is None and self.chance(0.2)
        return Sentence(clause)

    def superlative(self) -> Sentence:
        """This is the biggest house in the city."""
        self.verbs.append("sein")
        noun = self.noun(
            ("building", "town", "vehicle", "thing", "film", "text", "animal", "person", "Park", "Wald")
        )
        words = [a for a in self.adjectives_of(noun) if a.superlative]
        if not words or noun.mass or noun.gender == "p":
            return self.superlative()
        word = self.pick(words)
        self.adjectives.append(word.german)
        phrase = NounPhrase(noun, "the", adjectives=(word,), degree="superlative")
        if "family" in noun.classes:
            phrase.determiner = self.possessive(None)
            phrase.degree = "comparative" if word.german in ("alt", "jung") else "positive"
        tree = Clause(self.verb_named["sein"], Fixed("das", "this"), predicate=phrase)
        dice = self.random.random()
        if "town" in noun.classes or "building" in noun.classes or dice < 0.3:
            inside = self.noun(("settlement",))
            phrase.attribute = Prepositional(
                "in", "in", DATIVE, NounPhrase(inside, "the" if dice < 0.7 else "our")
            )
        elif dice < 0.5:
            phrase.attribute = self.geography("country" if self.chance(0.5) else "city", DATIVE)
        tree.tense = "past" if self.chance(0.15) else "present"
        return Sentence(tree)

    def sensation(self) -> Sentence:
        """The soup tastes good; she feels ill."""
        degree = self.pick(self.adverbs("degree"))
        if self.chance(0.5):
            verb = self.verb_named["schmecken"]
            subject: Slot = self.noun_phrase(verb.subject, indefinite=0.0, adjectives=0.3)
            words = ("gut", "schlecht", "süß", "frisch")
        else:
            verb = self.verb_named["sich fühlen"]
            subject = self.subject(("person",))
            words = ("gut", "schlecht", "krank", "müde", "gesund", "stark", "schwach", "glücklich", "nervös")
        self.verbs.append(verb.german)
        word = self.pick([a for a in self.lexicon.adjectives if a.german in words])
        self.adjectives.append(word.german)
        intensifier = Fixed(degree.german, degree.english) if self.chance(0.3) else None
        tree = Clause(verb, subject, predicate=Property(word, intensifier))
        tree.tense = "past" if self.chance(0.35) else "present"
        tree.negated = intensifier is None and subject != Pronoun("nobody") and self.chance(0.2)
        self._keep_kein_clear(tree)
        return Sentence(tree)

    def _age(self) -> Slot:
        years = self.random.randint(2, 99)
        return Fixed(
            f"{numerals.german_number(years)} Jahre alt", f"{numerals.english_number(years)} years old"
        )

    def _named(self) -> Clause:
        noun = self.noun(("family", "relation", "pet"))
        subject = NounPhrase(noun, self.possessive(None))
        if noun.gender == "p":
            subject = NounPhrase(self.by_german["Hund"], "my")
            self.nouns.append("Hund")
        self.verbs.append("heißen")
        tree = Clause(self.verb_named["heißen"], subject)
        if noun.gender == "f":
            tree.predicate = self.pick([n for n in map(_as_name, self.first_names) if n.gender == "f"])
        else:
            tree.predicate = self.pick([n for n in map(_as_name, self.first_names) if n.gender == "m"])
        return tree

    def existence(self) -> Sentence:
        """There is a big park in the city."""
        verb = self.verb_named["es geben"]
        self.verbs.append(verb.german)
        inside = self.pick(EXISTENCE)
        direct = self.noun_phrase(inside[0], indefinite=1.0, adjectives=0.5)
        if direct.determiner == "all":
            direct.determiner = "many"
        tree = Clause(verb, direct=direct)
        tree.place = self.place(inside[1])
        if self.chance(0.25):
            tree.tense = "past"
        if self.chance(0.3) and direct.determiner == "a" and not direct.adjectives and not direct.plural:
            direct.determiner = "no"
        tree.front = "place" if self.chance(0.4) else ""
        question = self.chance(0.15) and direct.determiner != "no"
        if question:
            tree.front = ""
        return Sentence(tree, "question" if question else "statement")

    def figures(self) -> Sentence:
        """Prices, durations, clock times, dates and the weather."""
        dice = self.random.random()
        if dice < 0.3:
            verb = self.verb_named["kosten"]
            tree = Clause(verb, self.noun_phrase(verb.subject, indefinite=0.1))
            tree.predicate = numerals.price(self.random.randint(2, 150), self.chance(0.6))
        elif dice < 0.5:
            verb = self.verb_named["dauern"]
            event = self.noun_phrase(verb.subject, indefinite=0.0)
            tree = Clause(verb, event)
            units = ("day", "week") if "trip" in event.noun.classes else ("hour", "minute")
            tree.predicate = numerals.span(self.random.randint(1, 12), self.pick(units))
            tree.tense = "past" if self.chance(0.3) else "present"
        elif dice < 0.7:
            verb = self.pick(self.verbs_by_frame["weather"])
            self.verbs.append(verb.german)
            tree = Clause(verb, Pronoun("it_n"))
            mood = self.pick(("past", "now", "now", "future", "habit"))
            self._tense(tree, mood, False)
            if mood in ("past", "now") and self.chance(0.6):
                kind = "city" if self.chance(0.6) else "country"
                tree.place = self.geography(kind, DATIVE)
            self._front(tree)
            return Sentence(tree)
        else:
            return Sentence(self._time_of_day())
        self.verbs.append(verb.german)
        if isinstance(tree.subject, NounPhrase) and tree.subject.determiner in ("all", "some", "every", ""):
            tree.subject.determiner, tree.subject.count = "the", 0
        return Sentence(tree)

    def _time_of_day(self) -> Clause:
        """It is half past three; today is the third of May; the film begins at eight o'clock."""
        being = self.verb_named["sein"]
        dice = self.random.random()
        if dice < 0.3:
            hour, minute = self.random.randint(1, 12), self.pick((0, 30, 15, 45, 5, 10, 20, 40, 50, 55))
            self.verbs.append("sein")
            return Clause(being, Pronoun("it_n"), predicate=numerals.clock(hour, minute))
        if dice < 0.55:
            day, month = self.random.randint(1, 31), self.pick(self.calendar["month"])
            name, word = self.pick((("today", "heute"), ("tomorrow", "morgen")))
            predicate = Fixed(
                f"der {numerals.german_ordinal(day, 'e')} {month.german}",
                f"the {numerals.english_ordinal(day)} of {month.english}",
            )
            self.verbs.append("sein")
            return Clause(being, Fixed(word, name), predicate=predicate)
        verb = self.verb_named[
            self.pick(("beginnen", "enden", "anfangen", "abfahren", "ankommen", "aufstehen"))
        ]
        tree = self.clause(verb, mood="bare", plain=True)
        tree.time = self.clock(figures=verb.german in ("abfahren", "ankommen"))
        return tree

    def possession(self) -> Sentence:
        """My father's car, Anna's new dress, the door of the house, the biggest house in the city."""
        clause = self.quality() if self.chance(0.5) else self.clause(self.verb_named[self.pick(OWNING)])
        name = "subject" if clause.predicate is not None else "direct"
        dice = self.random.random()
        if dice < 0.3:
            noun = self.noun(("opening", "Dach", "Wand"))
            whole = NounPhrase(self.noun(("dwelling", "room", "Schule", "Hotel", "Kirche")))
            owned = NounPhrase(noun, "the", owner=whole)
        else:
            noun = self.noun(("own", "clothing", "pet", "device", "text", "flat", "container"))
            owner = self.name() if dice < 0.6 else self._owner()
            owned = NounPhrase(noun, "the", owner=owner, plural=self.chance(0.15))
        if name == "subject":
            word = self.adjective(noun)
            clause.predicate = Property(word) if word else _as_name(self.first_names[0])
            if word is None:
                clause = self.clause(self.verb_named["sehen"], mood="past")
                name = "direct"
        elif self.chance(0.4):
            word = self.adjective(noun)
            owned.adjectives = (word,) if word else ()
        setattr(clause, name, owned)
        return Sentence(clause)

    def _owner(self) -> NounPhrase:
        noun = self.noun(("family", "relation", "child", "job"))
        if "family" in noun.classes or ("relation" in noun.classes and self.chance(0.6)):
            return NounPhrase(noun, self.possessive(None), plural=noun.gender == "p")
        return NounPhrase(noun, "the")

    # Questions --------------------------------------------------------------------------------------------

    def wh_question(self) -> Sentence:
        subject = Pronoun(self.you) if self.chance(0.35) else None
        clause = self.clause(self.human_verb() if subject else None, subject)
        tree = Sentence(clause)
        self._as_question(tree)
        clause.attitude = clause.aspect = ""
        if clause.tense == "perfect":
            clause.tense = "past"
        self._ask(clause)
        return tree

    def _ask(self, clause: Clause) -> None:
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
        name = self.pick(choices)
        clause.front = name
        if name == "time":
            clause.time, clause.frequency = WH_TIME, None
        elif name == "reason":
            clause.reason = WH_REASON
            clause.time = clause.time if clause.tense in ("past", "future") and self.chance(0.4) else None
        elif name == "place":
            clause.place = WH_PLACE
        elif name == "direction":
            clause.direction = WH_DIRECTION
        elif name == "subject" and verb.frame != "swap":
            clause.subject = Pronoun("who")
        else:
            setattr(clause, name, self._asked(getattr(clause, name)))

    def _asked(self, slot: Slot) -> Slot:
        """who, what, or which for the thing that a slot held."""
        if not isinstance(slot, NounPhrase):
            return Pronoun("who")
        if slot.noun.gender != "p" and not slot.noun.mass and not slot.owner and self.chance(0.5):
            slot.determiner, slot.english_determiner, slot.count = "which", None, 0
            return slot
        return Pronoun("who" if "person" in slot.noun.classes else "what")

    # Two clauses ------------------------------------------------------------------------------------------

    def _pronoun_for(self, subject: Slot | None) -> Pronoun:
        """The pronoun that takes up a subject again."""
        if isinstance(subject, Pronoun):
            return subject if subject.key != "who" else Pronoun("he")
        if isinstance(subject, Pair):
            return Pronoun("we" if isinstance(subject.second, Pronoun) else "they")
        if isinstance(subject, Name):
            return Pronoun("he" if subject.gender == "m" else "she")
        assert isinstance(subject, NounPhrase)
        gender = gender_of(subject)
        if gender == "p" or subject.determiner == "every":
            return Pronoun("they")
        if "person" in subject.noun.classes and gender != "n":
            return Pronoun("he" if gender == "m" else "she")
        return Pronoun("it_" + gender)

    def main_person(self, mood: str = "", verb: Verb | None = None) -> Clause:
        """A clause about a person whom a second clause can take up by a pronoun."""
        while True:
            subject = self.subject(("person",))
            if isinstance(subject, NounPhrase) and (
                gender_of(subject) == "n" or subject.determiner == "every"
            ):
                continue
            return self.clause(verb or self.human_verb(), subject, mood or self.pick(MAIN_MOODS), plain=True)

    def cause(self, person: Slot, past: bool) -> Clause:
        """Why somebody does something: he is tired, has no time, has to work, it rains."""
        tense = "past" if past else "present"
        dice = self.random.random()
        if dice < 0.25:
            word = self.pick([a for a in self.lexicon.adjectives if a.german in CAUSES])
            self.adjectives.append(word.german)
            self.verbs.append("sein")
            intensifier = Fixed("sehr", "very") if self.chance(0.3) else None
            return Clause(self.verb_named["sein"], person, predicate=Property(word, intensifier), tense=tense)
        if dice < 0.38:
            noun = self.noun(("Zeit", "Geld", "Auto", "Termin", "Prüfung", "Problem", "Handy"))
            kind = "no" if noun.german in ("Zeit", "Geld", "Auto", "Handy") else "a"
            self.verbs.append("haben")
            return Clause(self.verb_named["haben"], person, NounPhrase(noun, kind), tense=tense)
        if dice < 0.5:
            verb = self.pick(self.verbs_by_frame["weather"])
            self.verbs.append(verb.german)
            return Clause(verb, Pronoun("it_n"), tense=tense, progressive=True)
        if dice < 0.8:
            clause = self.clause(self.human_verb(), person, "bare", plain=True)
            if not clause.verb.simple:
                clause.modal = self.modal_named[self.pick(("müssen", "wollen", "können", "dürfen"))]
                clause.negated = clause.modal.german in ("können", "dürfen")
                self._keep_kein_clear(clause)
            clause.tense = tense
            return clause
        clause = self.clause(self.human_verb(), person, "past" if past else "future", plain=True)
        return clause

    def because(self) -> Sentence:
        past = self.chance(0.45)
        main = self.main_person("past" if past else "")
        main.frequency = None
        person = self._pronoun_for(main.subject)
        german, english = ("weil", "because") if self.chance(0.7) else ("obwohl", "although")
        clause = self.cause(person, past)
        first = self.chance(0.22)
        if first:
            main.subject, clause.subject = self._swap(main, clause)
        return Sentence(main, subordinate=Subordinate("finite", clause, german, english, first))

    def _swap(self, main: Clause, clause: Clause) -> tuple[Slot | None, Slot | None]:
        """When the dependent clause comes first, it names the person and the main clause has the pronoun."""
        weather = isinstance(clause.subject, Pronoun) and clause.subject.key == "it_n"
        if weather:
            return main.subject, clause.subject
        return self._pronoun_for(main.subject), main.subject

    def condition(self) -> Sentence:
        """If it rains, ...; when ..., before ..., after ..."""
        main = self.main_person(self.pick(("future", "modal", "bare")))
        main.negated = main.negated and main.tense != "future"
        person = self._pronoun_for(main.subject)
        dice = self.random.random()
        if dice < 0.65:
            clause = self.cause(person if self.chance(0.6) else self.pronoun(), False)
            clause.progressive = False
            clause.tense = "present"
            german, english = "wenn", "if"
        elif dice < 0.85:
            clause = self.clause(self.human_verb(), person, "bare", plain=True)
            german, english = "bevor", "before"
        else:
            main = self.main_person("past")
            main.negated = False
            clause = self.clause(self.human_verb(), self._pronoun_for(main.subject), "bare", plain=True)
            clause.tense, clause.negated = "pluperfect", False
            german, english = "nachdem", "after"
        first = self.chance(0.5)
        if first and clause.subject is person and not isinstance(clause.subject, Pronoun):
            main.subject, clause.subject = self._swap(main, clause)
        elif first and isinstance(clause.subject, Pronoun) and clause.subject.key != "it_n":
            if clause.subject == self._pronoun_for(main.subject):
                main.subject, clause.subject = self._swap(main, clause)
        return Sentence(main, subordinate=Subordinate("finite", clause, german, english, first))

    def past_moment(self) -> Sentence:
        """When I was a child, ...: als."""
        main = self.main_person("past")
        main.time, main.negated = None, False
        person = self._pronoun_for(main.subject)
        dice = self.random.random()
        if dice < 0.3:
            plural = person.key in ("we", "they", "you_all")
            self.nouns.append("Kind")
            child = NounPhrase(self.by_german["Kind"], "a", plural=plural)
            clause = Clause(self.verb_named["sein"], person, predicate=child, tense="past")
        elif dice < 0.5:
            clause = self.cause(person, True)
        elif dice < 0.75:
            clause = self.clause(
                self.verb_named[self.pick(("wohnen", "ankommen", "aufstehen"))], person, "past", True
            )
            clause.negated = False
        else:
            clause = self.clause(self.human_verb(), person, "past", plain=True)
            clause.negated = False
        first = self.chance(0.6)
        if first:
            main.subject, clause.subject = self._swap(main, clause)
        return Sentence(main, subordinate=Subordinate("finite", clause, "als", "when", first))

    def complement(self) -> Sentence:
        """I know that ..., he does not know where ..."""
        verb = self.pick([v for v in self.lexicon.verbs if v.frame.startswith("that")])
        self.verbs.append(verb.german)
        main = Clause(verb, self.subject(("person",)))
        inner = self.clause() if self.chance(0.7) else self.quality(past=False)
        inner.front = ""
        inner.reason = None
        if verb.german != "wissen" or self.chance(0.4):
            return Sentence(main, subordinate=Subordinate("finite", inner, "dass", "that"))
        main.negated = self.chance(0.6)
        inner.negated = False
        inner.aspect = "already" if inner.aspect == "yet" else inner.aspect
        if inner.predicate is not None or self.chance(0.35):
            main.negated = True
            return Sentence(main, subordinate=Subordinate("finite", inner, "ob", "whether"))
        inner.attitude = ""
        self._ask(inner)
        return Sentence(main, subordinate=Subordinate("question", inner))

    def infinitive(self) -> Sentence:
        """He tries to ..., in order to ..."""
        if self.chance(0.5):
            verb = self.pick([v for v in self.lexicon.verbs if v.frame.split()[-1:] == ["to"]])
            self.verbs.append(verb.german)
            subject = self.subject(("person",))
            main = Clause(verb, subject)
            if verb.simple:
                main.tense = "present"
            elif self.chance(0.6) or verb.german != "versuchen":
                main.tense = "past"
            else:
                main.progressive = True
            form = "infinitive"
        else:
            main = self.main_person(self.pick(("past", "now", "bare", "modal")), verb=self.pick(self.going))
            main.negated = False
            subject, form = main.subject, "purpose"
        verb = (
            self.verb_named[self.pick(PURPOSES).replace("_", " ")]
            if form == "purpose"
            else self.voluntary_verb()
        )
        clause = self.clause(verb, subject, "bare", plain=True)
        if self.chance(0.25):
            clause.place = clause.place or self.place(verb.where, subject)
        return Sentence(main, subordinate=Subordinate(form, clause))

    def joined(self) -> Sentence:
        """..., and ...; ..., but it ...; ..., therefore ..."""
        dice = self.random.random()
        if dice < 0.35:
            return self._thing_again()
        main = self.main_person("past" if self.chance(0.4) else "")
        past = main.tense == "past"
        person = self._pronoun_for(main.subject)
        if dice < 0.65:
            cause = self.cause(person, past)
            main.subject, cause.subject = self._swap(main, cause)
            tree = Sentence(cause, joined=main, conjunction=Fixed("deshalb", "therefore"), inverted=True)
            return tree
        word = Fixed("aber", "but") if dice < 0.85 else Fixed("und", "and")
        other = self.subject(("person",))
        second = self.clause(self.human_verb(), other, "past" if past else self.pick(MAIN_MOODS), plain=True)
        second.negated = word.english == "but" and not second.frequency and self.chance(0.4)
        self._keep_kein_clear(second)
        return Sentence(main, joined=second, conjunction=word)

    def _thing_again(self) -> Sentence:
        """The soup is hot, but it tastes good: the pronoun follows the German gender."""
        verb = self.verb_named[
            self.pick(("kaufen", "sehen", "haben", "suchen", "bekommen", "lesen", "bestellen"))
        ]
        while True:
            main = self.clause(verb, mood=self.pick(("past", "bare")), plain=True)
            direct = main.direct
            if (
                isinstance(direct, NounPhrase)
                and not direct.noun.mass
                and "person" not in direct.noun.classes
            ):
                break
        main.negated = False
        word = self.adjective(direct.noun)
        it = self._pronoun_for(direct)
        if direct.determiner == "every" or gender_of(direct) == "p":
            it = Pronoun("they")
        if word is None or word in direct.adjectives:
            second = self.clause(
                self.verb_named[self.pick(("vergessen", "verkaufen", "mögen"))], main.subject, "bare", True
            )
            second.subject = (
                self._pronoun_for(main.subject) if not isinstance(main.subject, Pronoun) else main.subject
            )
            second.direct, second.tense = it, main.tense
        else:
            self.verbs.append("sein")
            second = Clause(
                self.verb_named["sein"], it, predicate=Property(word, Fixed("sehr", "very")), tense=main.tense
            )
            if self.chance(0.4):
                assert isinstance(second.predicate, Property)
                second.predicate.intensifier = Fixed("zu", "too")
        conjunction = Fixed("und", "and") if self.chance(0.4) else Fixed("aber", "but")
        return Sentence(main, joined=second, conjunction=conjunction)

    # Relative clauses -------------------------------------------------------------------------------------

    def relative(self) -> Sentence:
        """The man who lives here ...; the book that I am reading ...; the house in which we live ..."""
        if self.chance(0.55):
            main = self.quality(past=False if self.chance(0.7) else None)
            head = main.subject
        else:
            main = self.clause(self.pick(self.verbs_by_frame["acc"]), plain=True)
            head = main.direct
        if not isinstance(head, NounPhrase) or head.noun.mass or head.owner or "family" in head.noun.classes:
            return self.relative()
        if head.determiner not in ("the", "this", "a"):
            head.determiner, head.count = "the", 0
        main.negated = False
        if isinstance(main.predicate, Property) and main.predicate.standard is not None:
            main.predicate.comparison, main.predicate.standard = "", None
        clause = self._about(head)
        if clause is None:
            return self.relative()
        head.relative = clause
        return Sentence(main)

    def _about(self, head: NounPhrase) -> Clause | None:
        """A relative clause about the noun of `head`, or None if nothing in the lexicon fits."""
        noun = head.noun
        person = "person" in noun.classes
        who = Relative(gender_of(head), person)
        dice = self.random.random()
        if noun.where and "furniture" not in noun.classes and dice < 0.4:
            return self._about_place(head, who)
        if person and dice < 0.12:
            clause = self.quality(past=False)
            owned = NounPhrase(self.noun(("own", "dwelling", "pet", "child")), "the", owner=who)
            word = self.adjective(owned.noun)
            if word is None:
                return None
            clause.subject, clause.predicate, clause.negated = owned, Property(word), False
            clause.front = "subject"
            return clause
        slots = self._roles(head)
        if not slots:
            return None
        verb, slot = self.pick(slots)
        mood = self.pick(("past", "state" if verb.simple else "now"))
        if slot == "subject":
            clause = self.clause(verb, who, mood, plain=True)
        elif verb.german == self.verbs[-1]:
            return None
        else:
            subject = self.subject(verb.subject)
            if isinstance(subject, NounPhrase):
                subject.adjectives = ()
            clause = self.clause(verb, subject, mood, plain=True)
            setattr(clause, slot, who)
        clause.negated = False
        clause.front = slot
        return clause

    def _roles(self, head: NounPhrase) -> list[tuple[Verb, str]]:
        """Which verbs the noun can serve, and in which slot."""
        key = head.noun.german
        found = self._known_roles.get(key)
        if found is None:
            found = []
            classes = head.noun.classes
            for verb in self.lexicon.verbs:
                if verb.frame in ROLE_FRAMES and classes.intersection(verb.subject):
                    found.append((verb, "subject"))
                slot = ROLE_SLOTS.get(verb.frame)
                if slot and classes.intersection(verb.object):
                    found.append((verb, slot))
            self._known_roles[key] = found
        return found

    _known_roles: dict[str, list[tuple[Verb, str]]] = {}

    def _about_place(self, head: NounPhrase, who: Relative) -> Clause | None:
        noun = head.noun
        verbs = [
            v for v in self.lexicon.verbs if noun.classes.intersection(v.where) and "person" in v.subject
        ]
        if not verbs:
            return None
        verb = self.pick(verbs)
        clause = self.clause(verb, mood=self.pick(("past", "state" if verb.simple else "now")), plain=True)
        clause.negated = False
        english = noun.english_where
        clause.place = Prepositional(noun.where, english, DATIVE, who)
        clause.front = "place"
        return clause


MAIN_MOODS = ("past", "now", "modal", "future", "bare")
UNCOMMANDED = frozenset(
    {
        "einschlafen",
        "aufwachen",
        "sich verlieben",
        "widersprechen",
        "träumen",
        "sich ärgern",
        "sich langweilen",
        "sich erholen",
        "gewinnen",
        "weinen",
        "tragen",
    }
)
PURPOSES = [
    "besuchen",
    "treffen",
    "abholen",
    "helfen",
    "gratulieren",
    "danken",
    "kaufen",
    "suchen",
    "zurückgeben",
    "lernen",
    "arbeiten",
    "einkaufen",
    "sehen",
    "sich_erholen",
    "sich_ausruhen",
    "feiern",
    "sprechen",
    "sich_entschuldigen",
    "teilnehmen",
    "essen",
    "trinken",
    "holen",
    "fotografieren",
    "bewundern",
    "sich_treffen",
    "bringen",
    "zeigen",
    "zurückbringen",
    "schlafen",
    "tanzen",
    "wandern",
    "schwimmen",
    "mitbringen",
    "kochen",
]
OWNING = ("sehen", "suchen", "finden", "reparieren", "kaufen", "nehmen")
EXISTENCE = (
    (("town",), ("settlement",)),
    (("furniture",), ("room",)),
    (("Park", "Fluss", "Brücke", "Wiese", "Spielplatz"), ("settlement",)),
    (("food", "dish"), ("Küche",)),
    (("plant",), ("Garten", "Park", "Wald")),
    (("wild",), ("Zoo",)),
    (("farm",), ("Bauernhof",)),
)
ROLE_FRAMES = frozenset({"acc", "dat acc", "oblique", "dir", "loc", "loc?", "-", "on", "dat"})
ROLE_SLOTS = {"acc": "direct", "dat": "indirect"}


def _as_name(word: object) -> Name:
    from endeavour.data.textbook.entries import Word

    assert isinstance(word, Word)
    return Name(word.german, word.english, word.use)
