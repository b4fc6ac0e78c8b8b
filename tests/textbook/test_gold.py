# ruff: noqa: E501, E741  (a gold pair is one row; I is the pronoun)
"""Gold pairs, written by hand as a German teacher would: each tree must be written exactly so in both languages.

A row is a phenomenon, a tree, the English and the German sentence. The small functions below build trees; words
are named by their German dictionary form.
"""

import pytest

from endeavour.textbook import english, german, numerals
from endeavour.textbook.adverbials import city_or_country
from endeavour.textbook.draw import Draw
from endeavour.textbook.entries import Word
from endeavour.textbook.morphology_german import ACCUSATIVE, DATIVE, GENITIVE
from endeavour.textbook.reading import ADVERB_KINDS, load_lexicon
from endeavour.textbook.trees import (
    Clause,
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

LEXICON = load_lexicon()
NOUNS = {noun.german: noun for noun in LEXICON.nouns}
VERBS = {verb.german: verb for verb in LEXICON.verbs}
ADJECTIVES = {word.german: word for word in reversed(LEXICON.adjectives)}
MODALS = {modal.german: modal for modal in LEXICON.modals}
ADVERBS = {word.german: word for kind in ADVERB_KINDS for word in LEXICON.words[kind]}
CALENDAR = {
    word.english: word for kind in ("weekday", "month", "season", "daypart") for word in LEXICON.words[kind]
}

I, YOU, HE, SHE, WE, YOU_ALL, THEY, FORMAL = map(
    Pronoun, ("I", "you", "he", "she", "we", "you_all", "they", "you_formal")
)
IT = Pronoun("it_n")
ANNA, PAUL = Name("Anna", "Anna", "f"), Name("Paul", "Paul", "m")
WEBER, MRS_WEBER = Name("Weber", "Weber", "m", "Mr."), Name("Weber", "Weber", "f", "Mrs.")


def n(noun: str, determiner: str = "the", *adjectives: str, **rest: object) -> NounPhrase:
    return NounPhrase(NOUNS[noun], determiner, adjectives=tuple(ADJECTIVES[a] for a in adjectives), **rest)  # type: ignore[arg-type]


def ns(noun: str, determiner: str = "the", *adjectives: str, **rest: object) -> NounPhrase:
    return n(noun, determiner, *adjectives, plural=True, **rest)


def c(subject: Slot | None, verb: str, direct: Slot | None = None, **rest: object) -> Clause:
    modal = rest.pop("modal", None)
    return Clause(VERBS[verb], subject, direct, modal=MODALS[str(modal)] if modal else None, **rest)  # type: ignore[arg-type]


def say(*parts: object, **rest: object) -> Sentence:
    return Sentence(c(*parts, **rest))  # type: ignore[arg-type]


def ask(*parts: object, **rest: object) -> Sentence:
    return Sentence(c(*parts, **rest), "question")  # type: ignore[arg-type]


def tell(
    who: Pronoun,
    verb: str,
    direct: Slot | None = None,
    *,
    to: Phrase | None = None,
    please: bool = False,
    **rest: object,
) -> Sentence:
    return Sentence(c(who, verb, direct, **rest), "imperative", who.key, to, please)  # type: ignore[arg-type]


def sub(main: Clause, german_word: str, english_word: str, clause: Clause, first: bool = False) -> Sentence:
    return Sentence(main, subordinate=Subordinate("finite", clause, german_word, english_word, first))


def be(
    adjective: str, intensifier: str = "", comparison: str = "", standard: Phrase | None = None
) -> Property:
    return Property(
        ADJECTIVES[adjective], ADVERBS[intensifier] if intensifier else None, comparison, standard
    )


def on(
    noun: str,
    case: int,
    german_word: str = "auf",
    english_word: str = "on",
    determiner: str = "the",
    *adjectives: str,
) -> Prepositional:
    return Prepositional(german_word, english_word, case, n(noun, determiner, *adjectives))


class The(Draw):
    """Draws this word and no other."""

    def __init__(self, german_word: str) -> None:
        super().__init__(LEXICON, seed=1)
        self.german = german_word

    def word(self, kind: str) -> Word:
        return next(one for one in LEXICON.words[kind] if one.german == self.german)


def place(noun: str, determiner: str = "the", *adjectives: str) -> Prepositional:
    word = NOUNS[noun]
    return Prepositional(word.where, word.english_where, DATIVE, n(noun, determiner, *adjectives))


def to(noun: str, determiner: str = "the", *adjectives: str) -> Prepositional:
    word = NOUNS[noun]
    case = DATIVE if word.whereto == "zu" else ACCUSATIVE
    return Prepositional(word.whereto, "to", case, n(noun, determiner, *adjectives))


def month(name: str) -> Word:
    return CALENDAR[name]


TODAY, TOMORROW, YESTERDAY = ADVERBS["heute"], ADVERBS["morgen"], ADVERBS["gestern"]
PAST, NOT = {"tense": "past"}, {"negated": True}
MALE_WHO, THING_M = Relative("m", True), Relative("m", False)

GOLD: list[tuple[str, Sentence, str, str]] = [
    # Cases and genders
    ("nominative", say(n("Hund"), "schlafen", progressive=True), "The dog is sleeping.", "Der Hund schläft."),
    ("accusative m", say(n("Mann"), "sehen", n("Hund")), "The man sees the dog.", "Der Mann sieht den Hund."),
    ("accusative f", say(n("Mann"), "sehen", n("Katze")), "The man sees the cat.", "Der Mann sieht die Katze."),
    ("accusative n", say(n("Frau"), "sehen", n("Kind")), "The woman sees the child.", "Die Frau sieht das Kind."),
    ("accusative ein", say(I, "kaufen", n("Mantel", "a"), **PAST), "I bought a coat.", "Ich habe einen Mantel gekauft."),
    ("dative m", say(I, "helfen", indirect=n("Mann"), progressive=True), "I am helping the man.", "Ich helfe dem Mann."),
    ("dative f", say(HE, "danken", indirect=n("Frau"), progressive=True), "He is thanking the woman.", "Er dankt der Frau."),
    ("dative n", say(SHE, "helfen", indirect=n("Kind"), **PAST), "She helped the child.", "Sie hat dem Kind geholfen."),
    ("dative plural", say(WE, "helfen", indirect=ns("Kind"), progressive=True), "We are helping the children.", "Wir helfen den Kindern."),
    ("dative plural -s", say(HE, "helfen", indirect=ns("Baby"), progressive=True), "He is helping the babies.", "Er hilft den Babys."),
    ("direction m", say(I, "fahren", direction=to("Park"), progressive=True), "I am driving to the park.", "Ich fahre in den Park."),
    ("dative plural -n", say(HE, "sprechen", oblique=ns("Frau"), progressive=True), "He is speaking with the women.", "Er spricht mit den Frauen."),
    ("genitive m", say(n("Auto", owner=n("Vater", "my")), "sein", predicate=be("alt")), "My father's car is old.", "Das Auto meines Vaters ist alt."),
    ("genitive f", say(n("Hund", owner=n("Schwester", "my")), "sein", predicate=be("braun")), "My sister's dog is brown.", "Der Hund meiner Schwester ist braun."),
    ("genitive n", say(n("Ball", owner=n("Kind")), "sein", predicate=be("rot")), "The child's ball is red.", "Der Ball des Kindes ist rot."),
    ("genitive plural", say(n("Haus", owner=n("Eltern", "our")), "sein", predicate=be("groß")), "Our parents' house is big.", "Das Haus unserer Eltern ist groß."),
    ("genitive thing", say(n("Dach", owner=n("Haus")), "sein", predicate=be("alt")), "The roof of the house is old.", "Das Dach des Hauses ist alt."),
    ("genitive name", say(n("Kleid", "the", "neu", owner=ANNA), "sein", predicate=be("blau")), "Anna's new dress is blue.", "Annas neues Kleid ist blau."),
    ("genitive name in -s", say(n("Fahrrad", owner=Name("Lukas", "Lukas", "m")), "sein", predicate=be("neu")), "Lukas's bicycle is new.", "Lukas' Fahrrad ist neu."),
    ("genitive preposition", say(WE, "bleiben", place=ADVERBS["zu Hause"], reason=Prepositional("wegen", "because of", GENITIVE, n("Wetter", "the", "schlecht")), progressive=True), "We are staying at home because of the bad weather.", "Wir bleiben wegen des schlechten Wetters zu Hause."),
    ("genitive während", say(HE, "schlafen", time=Prepositional("während", "during", GENITIVE, n("Konzert")), **PAST), "He slept during the concert.", "Er hat während des Konzerts geschlafen."),
    # The n-declension
    ("n-declension acc", say(I, "kennen", n("Student")), "I know the student.", "Ich kenne den Studenten."),
    ("n-declension dat", say(SHE, "helfen", indirect=n("Junge"), **PAST), "She helped the boy.", "Sie hat dem Jungen geholfen."),
    ("n-declension gen", say(n("Auto", owner=n("Nachbar", "my")), "sein", predicate=be("rot")), "My neighbour's car is red.", "Das Auto meines Nachbarn ist rot."),
    ("n-declension Herr", say(I, "anrufen", WEBER, time=TODAY, progressive=True), "I am calling Mr. Weber today.", "Ich rufe heute Herrn Weber an."),
    ("n-declension ein", say(WE, "sehen", n("Bär", "a", "groß"), **PAST), "We saw a big bear.", "Wir haben einen großen Bären gesehen."),
    # Adjectives: weak, mixed, strong
    ("weak nom m", say(n("Mann", "the", "alt"), "lachen", progressive=True), "The old man is laughing.", "Der alte Mann lacht."),
    ("weak acc m", say(HE, "kaufen", n("Hut", "the", "schwarz"), **PAST), "He bought the black hat.", "Er hat den schwarzen Hut gekauft."),
    ("weak dat f", say(I, "danken", indirect=n("Frau", "the", "freundlich"), **PAST), "I thanked the friendly woman.", "Ich habe der freundlichen Frau gedankt."),
    ("weak plural", say(ns("Kind", "the", "klein"), "spielen", progressive=True), "The small children are playing.", "Die kleinen Kinder spielen."),
    ("weak dieser", say(n("Buch", "this", "neu"), "sein", predicate=be("interessant")), "This new book is interesting.", "Dieses neue Buch ist interessant."),
    ("weak diese plural", say(ns("Buch", "this", "alt"), "sein", predicate=be("teuer")), "These old books are expensive.", "Diese alten Bücher sind teuer."),
    ("weak jeder", say(n("Schüler", "every", "gut"), "lernen", n("Deutsch", "")), "Every good pupil learns German.", "Jeder gute Schüler lernt Deutsch."),
    ("weak alle", say(ns("Gast", "all", "nett"), "tanzen", progressive=True), "All nice guests are dancing.", "Alle netten Gäste tanzen."),
    ("mixed nom m", say(n("Zug", "a", "alt"), "ankommen", progressive=True), "An old train is arriving.", "Ein alter Zug kommt an."),
    ("mixed nom n", say(n("Kind", "a", "klein"), "weinen", progressive=True), "A small child is crying.", "Ein kleines Kind weint."),
    ("mixed acc n", say(WE, "haben", n("Auto", "a", "neu")), "We have a new car.", "Wir haben ein neues Auto."),
    ("mixed acc m", say(SHE, "tragen", n("Rock", "a", "kurz"), progressive=True), "She is wearing a short skirt.", "Sie trägt einen kurzen Rock."),
    ("mixed dat m", say(I, "wohnen", place=place("Haus", "a", "alt")), "I live in an old house.", "Ich wohne in einem alten Haus."),
    ("mixed mein", say(n("Bruder", "my", "klein"), "schlafen", progressive=True), "My small brother is sleeping.", "Mein kleiner Bruder schläft."),
    ("mixed meine plural", say(I, "suchen", ns("Schuh", "my", "neu"), progressive=True), "I am looking for my new shoes.", "Ich suche meine neuen Schuhe."),
    ("mixed kein", say(HE, "haben", n("Problem", "no", "groß")), "He has no big problem.", "Er hat kein großes Problem."),
    ("mixed keine plural", say(WE, "kaufen", ns("Schuh", "a", "teuer"), progressive=True, **NOT), "We are not buying expensive shoes.", "Wir kaufen keine teuren Schuhe."),
    ("strong mass m", say(I, "trinken", n("Kaffee", "", "stark"), progressive=True), "I am drinking strong coffee.", "Ich trinke starken Kaffee."),
    ("strong mass f", say(SHE, "trinken", n("Milch", "", "kalt"), progressive=True), "She is drinking cold milk.", "Sie trinkt kalte Milch."),
    ("strong mass n", say(HE, "essen", n("Brot", "", "frisch"), progressive=True), "He is eating fresh bread.", "Er isst frisches Brot."),
    ("strong plural", say(ns("Haus", "", "alt"), "sein", predicate=be("schön")), "Old houses are beautiful.", "Alte Häuser sind schön."),
    ("strong numeral", say(I, "kaufen", n("Apfel", "", "rot", count=3), **PAST), "I bought three red apples.", "Ich habe drei rote Äpfel gekauft."),
    ("strong viele", say(HE, "kennen", ns("Lied", "many", "alt")), "He knows many old songs.", "Er kennt viele alte Lieder."),
    ("strong dat plural", say(WE, "sprechen", oblique=ns("Tourist", "", "jung"), **PAST), "We spoke with young tourists.", "Wir haben mit jungen Touristen gesprochen."),
    ("stem teuer", say(n("Auto", "a", "teuer"), "kosten", predicate=numerals.price(99, True)), "An expensive car costs ninety-nine euros.", "Ein teures Auto kostet neunundneunzig Euro."),
    ("stem dunkel", say(n("Wald", "the", "dunkel"), "sein", predicate=be("groß")), "The dark forest is big.", "Der dunkle Wald ist groß."),
    ("stem hoch", say(n("Brücke", "the", "hoch"), "sein", predicate=be("alt")), "The high bridge is old.", "Die hohe Brücke ist alt."),
    ("article an", say(SHE, "essen", n("Orange", "a"), progressive=True), "She is eating an orange.", "Sie isst eine Orange."),
    ("article a university", say(WE, "suchen", n("Universität", "a"), progressive=True), "We are looking for a university.", "Wir suchen eine Universität."),
    # Pronouns
    ("pronoun acc", say(I, "anrufen", Pronoun("he"), time=TOMORROW, progressive=True), "I am calling him tomorrow.", "Ich rufe ihn morgen an."),
    ("pronoun dat", say(HE, "helfen", indirect=SHE, time=TODAY, progressive=True), "He is helping her today.", "Er hilft ihr heute."),
    ("pronoun dat plural", say(WE, "danken", indirect=THEY, **PAST), "We thanked them.", "Wir haben ihnen gedankt."),
    ("two pronouns", say(I, "geben", IT, indirect=HE, **PAST), "I gave it to him.", "Ich habe es ihm gegeben."),
    ("pronoun before noun", say(SHE, "geben", n("Buch"), indirect=I, **PAST), "She gave me the book.", "Sie hat mir das Buch gegeben."),
    ("pronoun before subject", say(n("Bruder", "my"), "helfen", indirect=I, time=TOMORROW, front="time", progressive=True), "Tomorrow my brother is helping me.", "Morgen hilft mir mein Bruder."),
    ("possessives", say(n("Schwester", "his"), "besuchen", n("Tante", "her"), progressive=True), "His sister is visiting her aunt.", "Seine Schwester besucht ihre Tante."),
    ("possessive euer", Sentence(c(YOU_ALL, "suchen", n("Hund", "your_all"), progressive=True), "question", vocative=Pair(ANNA, PAUL)), "Anna and Paul, are you looking for your dog?", "Anna und Paul, sucht ihr euren Hund?"),
    ("possessive formal", Sentence(c(FORMAL, "verlieren", n("Schlüssel", "your_formal"), tense="past"), "question", vocative=MRS_WEBER), "Mrs. Weber, did you lose your key?", "Frau Weber, haben Sie Ihren Schlüssel verloren?"),
    ("nobody", say(Pronoun("nobody"), "lesen", n("Zeitung"), progressive=True), "Nobody is reading the newspaper.", "Niemand liest die Zeitung."),
    ("nothing", say(I, "kaufen", Pronoun("nothing"), time=YESTERDAY, **PAST), "I bought nothing yesterday.", "Ich habe gestern nichts gekauft."),
    ("we all of us", say(Pair(n("Bruder", "my"), I), "tanzen", **PAST), "My brother and I danced.", "Mein Bruder und ich haben getanzt."),
    # Verbs in the present
    ("stem change e-i", say(n("Kind"), "lesen", n("Buch", "a"), progressive=True), "The child is reading a book.", "Das Kind liest ein Buch."),
    ("stem change du", say(YOU, "sprechen", oblique=n("Lehrer"), progressive=True), "You are speaking with the teacher.", "Du sprichst mit dem Lehrer."),
    ("stem change a-ä", say(YOU, "fahren", direction=Word("nach Berlin", "to Berlin"), progressive=True), "You are driving to Berlin.", "Du fährst nach Berlin."),
    ("stem in t", say(HE, "arbeiten", time=TODAY, progressive=True), "He is working today.", "Er arbeitet heute."),
    ("stem in s", say(YOU, "reisen", direction=Word("in die Schweiz", "to Switzerland"), progressive=True), "You are travelling to Switzerland.", "Du reist in die Schweiz."),
    ("stem in ffn", say(SHE, "öffnen", n("Fenster"), progressive=True), "She is opening the window.", "Sie öffnet das Fenster."),
    ("infinitive in eln", say(I, "sammeln", ns("Postkarte", "")), "I collect postcards.", "Ich sammle Postkarten."),
    ("progressive and simple", say(HE, "trinken", n("Tee", ""), time=ADVERBS["jeden Morgen"]), "He drinks tea every morning.", "Er trinkt jeden Morgen Tee."),
    ("frequency", say(SHE, "lesen", n("Zeitung", "a"), frequency=ADVERBS["oft"]), "She often reads a newspaper.", "Sie liest oft eine Zeitung."),
    ("never", say(n("Vater", "my"), "trinken", n("Bier", ""), frequency=ADVERBS["nie"]), "My father never drinks beer.", "Mein Vater trinkt nie Bier."),
    # Perfect, preterite, future
    ("perfect haben", say(SHE, "schreiben", n("Brief", "a"), **PAST), "She wrote a letter.", "Sie hat einen Brief geschrieben."),
    ("perfect sein", say(WE, "gehen", direction=to("Kino"), time=YESTERDAY, **PAST), "We went to the cinema yesterday.", "Wir sind gestern ins Kino gegangen."),
    ("stem in chn", say(HE, "zeichnen", n("Plan", "a"), place=city_or_country(The("Niederlande"), "country", DATIVE)), "He draws a plan in the Netherlands.", "Er zeichnet in den Niederlanden einen Plan."),
    ("perfect sein ich", say(I, "bleiben", place=ADVERBS["zu Hause"], **PAST), "I stayed at home.", "Ich bin zu Hause geblieben."),
    ("perfect separable", say(n("Zug"), "abfahren", **PAST), "The train left.", "Der Zug ist abgefahren."),
    ("perfect inseparable", say(HE, "vergessen", n("Schlüssel", "his"), **PAST), "He forgot his key.", "Er hat seinen Schlüssel vergessen."),
    ("perfect -ieren", say(n("Mechaniker"), "reparieren", n("Auto"), **PAST), "The mechanic repaired the car.", "Der Mechaniker hat das Auto repariert."),
    ("perfect already", say(I, "lesen", n("Buch"), tense="perfect", aspect="already"), "I have already read the book.", "Ich habe das Buch schon gelesen."),
    ("perfect just", say(SHE, "ankommen", tense="perfect", aspect="just"), "She has just arrived.", "Sie ist gerade angekommen."),
    ("perfect never", say(I, "sehen", n("Elefant", "a"), tense="perfect", aspect="never"), "I have never seen an elephant.", "Ich habe noch nie einen Elefanten gesehen."),
    ("perfect not yet", say(HE, "kaufen", n("Auto", "a"), tense="perfect", aspect="yet", negated=True), "He has not bought a car yet.", "Er hat noch kein Auto gekauft."),
    ("noch kein behind the place", say(HE, "kochen", n("Kartoffel", "a"), place=place("Küche"), tense="perfect", aspect="yet", negated=True), "He has not cooked a potato in the kitchen yet.", "Er hat in der Küche noch keine Kartoffel gekocht."),
    ("perfect ever", ask(YOU, "sehen", n("Bär", "a"), tense="perfect", aspect="ever"), "Have you ever seen a bear?", "Hast du schon einmal einen Bären gesehen?"),
    ("preterite sein", say(n("Film"), "sein", predicate=be("langweilig"), **PAST), "The film was boring.", "Der Film war langweilig."),
    ("preterite haben", say(WE, "haben", n("Geld", "no"), **PAST), "We had no money.", "Wir hatten kein Geld."),
    ("preterite modal", say(HE, "arbeiten", modal="müssen", time=YESTERDAY, **PAST), "He had to work yesterday.", "Er musste gestern arbeiten."),
    ("future", say(I, "besuchen", YOU, time=TOMORROW, tense="future"), "I will visit you tomorrow.", "Ich werde dich morgen besuchen."),
    ("since", say(I, "wohnen", place=Word("in Wien", "in Vienna"), time=numerals.distance("since", 3, "year"), tense="since"), "I have been living in Vienna for three years.", "Ich wohne seit drei Jahren in Wien."),
    ("since simple", say(WE, "kennen", THEY, time=numerals.distance("since", 1, "year"), tense="since"), "We have known them for a year.", "Wir kennen sie seit einem Jahr."),
    ("duration", say(n("Kind"), "schlafen", time=Word("zwei Stunden lang", "for two hours"), **PAST), "The child slept for two hours.", "Das Kind hat zwei Stunden lang geschlafen."),
    # Modal verbs
    ("modal können", say(n("Mädchen"), "schwimmen", modal="können", manner=ADVERBS["gut"]), "The girl can swim well.", "Das Mädchen kann gut schwimmen."),
    ("modal nicht", say(I, "kommen", modal="können", time=TODAY, **NOT), "I cannot come today.", "Ich kann heute nicht kommen."),
    ("modal wollen", say(SHE, "lernen", n("Deutsch", ""), modal="wollen"), "She wants to learn German.", "Sie will Deutsch lernen."),
    ("modal dürfen", say(ns("Kind"), "spielen", modal="dürfen", place=place("Straße"), **NOT), "The children are not allowed to play in the street.", "Die Kinder dürfen nicht auf der Straße spielen."),
    ("modal müssen", say(YOU, "aufstehen", modal="müssen", manner=ADVERBS["früh"]), "You have to get up early.", "Du musst früh aufstehen."),
    ("modal sollen", say(HE, "anrufen", SHE, modal="sollen"), "He is supposed to call her.", "Er soll sie anrufen."),
    ("modal sollte", say(YOU, "sich ausruhen", modal="sollte"), "You should rest.", "Du solltest dich ausruhen."),
    ("modal möchte", say(WE, "bestellen", n("Suppe", "a"), modal="möchte"), "We would like to order a soup.", "Wir möchten eine Suppe bestellen."),
    ("modal past not", say(THEY, "finden", n("Hund", "their"), modal="können", tense="past", **NOT), "They could not find their dog.", "Sie konnten ihren Hund nicht finden."),
    ("need not", say(YOU, "warten", modal="müssen", **NOT), "You do not have to wait.", "Du musst nicht warten."),
    ("gern", say(I, "trinken", n("Kaffee", ""), attitude="like to"), "I like to drink coffee.", "Ich trinke gern Kaffee."),
    ("nicht gern", say(HE, "aufstehen", attitude="like to", manner=ADVERBS["früh"], **NOT), "He does not like to get up early.", "Er steht nicht gern früh auf."),
    ("lieber", say(SHE, "trinken", n("Tee", ""), attitude="would rather"), "She would rather drink tea.", "Sie trinkt lieber Tee."),
    # Separable and reflexive verbs
    ("separable present", say(I, "aufstehen", time=numerals.at_clock(numerals.clock(6, 30))), "I get up at half past six.", "Ich stehe um halb sieben auf."),
    ("separable object", say(SHE, "anziehen", n("Mantel", "her"), progressive=True), "She is putting on her coat.", "Sie zieht ihren Mantel an."),
    ("separable pronoun", say(HE, "ausschalten", IT, progressive=True), "He is turning it off.", "Er schaltet es aus."),
    ("separable stem change", say(HE, "einladen", n("Nachbar", "his"), progressive=True), "He is inviting his neighbour.", "Er lädt seinen Nachbarn ein."),
    ("separable with space", say(WE, "spazieren gehen", place=place("Wald"), progressive=True), "We are going for a walk in the forest.", "Wir gehen im Wald spazieren."),
    ("reflexive", say(I, "sich freuen", oblique=n("Reise"), progressive=True), "I am looking forward to the journey.", "Ich freue mich auf die Reise."),
    ("reflexive du", say(YOU, "sich erinnern", oblique=n("Film"), **NOT), "You do not remember the film.", "Du erinnerst dich nicht an den Film."),
    ("reflexive perfect", say(THEY, "sich beeilen", **PAST), "They hurried.", "Sie haben sich beeilt."),
    ("reflexive dative", say(I, "sich putzen", ns("Zahn", "the", english_determiner="my"), progressive=True), "I am brushing my teeth.", "Ich putze mir die Zähne."),
    ("reflexive dative separable", say(WE, "sich ansehen", n("Film", "a"), progressive=True), "We are watching a film.", "Wir sehen uns einen Film an."),
    ("reflexive before noun", ask(n("Kind"), "sich freuen", oblique=n("Party"), progressive=True), "Is the child looking forward to the party?", "Freut sich das Kind auf die Party?"),
    ("reflexive formal", Sentence(c(FORMAL, "sich interessieren", oblique=n("Musik", "")), "question", vocative=WEBER), "Mr. Weber, are you interested in music?", "Herr Weber, interessieren Sie sich für Musik?"),
    # What verbs govern
    ("dative antworten", say(n("Schüler"), "antworten", indirect=n("Lehrer"), **PAST), "The pupil answered the teacher.", "Der Schüler hat dem Lehrer geantwortet."),
    ("dative gehören", say(n("Auto", "this"), "gehören", indirect=n("Onkel", "my")), "This car belongs to my uncle.", "Dieses Auto gehört meinem Onkel."),
    ("dative folgen", say(n("Hund"), "folgen", indirect=HE, **PAST), "The dog followed him.", "Der Hund ist ihm gefolgt."),
    ("dative zuhören", say(ns("Schüler"), "zuhören", indirect=n("Lehrer"), progressive=True), "The pupils are listening to the teacher.", "Die Schüler hören dem Lehrer zu."),
    ("dative gefallen", say(n("Film"), "gefallen", indirect=I), "I like the film.", "Der Film gefällt mir."),
    ("dative gefallen plural", say(ns("Bild", "this"), "gefallen", indirect=n("Mutter", "my"), **PAST), "My mother liked these pictures.", "Diese Bilder haben meiner Mutter gefallen."),
    ("dative passen", say(n("Kleid"), "passen", indirect=SHE, **NOT), "The dress does not fit her.", "Das Kleid passt ihr nicht."),
    ("two objects", say(n("Vater"), "geben", n("Apfel", "a"), indirect=n("Kind"), progressive=True), "The father is giving the child an apple.", "Der Vater gibt dem Kind einen Apfel."),
    ("two objects to", say(SHE, "zurückgeben", n("Buch"), indirect=n("Freund", "her"), **PAST), "She gave the book back to her friend.", "Sie hat ihrem Freund das Buch zurückgegeben."),
    ("prepositional acc", say(WE, "warten", oblique=n("Bus"), progressive=True), "We are waiting for the bus.", "Wir warten auf den Bus."),
    ("prepositional dat", say(SHE, "träumen", oblique=n("Reise", "a", "lang")), "She dreams about a long journey.", "Sie träumt von einer langen Reise."),
    ("prepositional contraction", say(HE, "teilnehmen", oblique=n("Kurs"), progressive=True), "He is taking part in the course.", "Er nimmt am Kurs teil."),
    ("instrument", say(SHE, "spielen", n("Klavier", "", english_determiner="the"), manner=ADVERBS["gut"]), "She plays the piano well.", "Sie spielt gut Klavier."),
    # Word order
    ("front time", say(WE, "fahren", direction=Word("nach München", "to Munich"), time=TOMORROW, front="time", progressive=True), "Tomorrow we are driving to Munich.", "Morgen fahren wir nach München."),
    ("front time perfect", say(I, "besuchen", n("Museum", "a"), time=ADVERBS["letzten Sommer"], front="time", **PAST), "Last summer, I visited a museum.", "Letzten Sommer habe ich ein Museum besucht."),
    ("front place", say(ns("Kind"), "spielen", n("Fußball", ""), place=place("Garten"), front="place", progressive=True), "In the garden, the children are playing football.", "Im Garten spielen die Kinder Fußball."),
    ("front modal", say(YOU, "lernen", ns("Wort", "the"), modal="müssen", time=ADVERBS["heute Abend"], front="time"), "This evening, you have to learn the words.", "Heute Abend musst du die Wörter lernen."),
    ("time manner place", say(HE, "kommen", companion=Prepositional("mit", "by", DATIVE, n("Zug", english_determiner="")), direction=to("Schule"), time=TODAY, **PAST), "He came to the school by train today.", "Er ist heute mit dem Zug in die Schule gekommen."),
    ("time before definite", say(SHE, "lesen", n("Zeitung"), time=ADVERBS["jeden Morgen"]), "She reads the newspaper every morning.", "Sie liest jeden Morgen die Zeitung."),
    ("indefinite after place", say(n("Mutter"), "backen", n("Kuchen", "a"), place=place("Küche"), time=TODAY, progressive=True), "The mother is baking a cake in the kitchen today.", "Die Mutter backt heute in der Küche einen Kuchen."),
    # Negation
    ("nicht end", say(I, "kennen", n("Mann"), **NOT), "I do not know the man.", "Ich kenne den Mann nicht."),
    ("nicht adjective", say(n("Suppe"), "sein", predicate=be("heiß"), **NOT), "The soup is not hot.", "Die Suppe ist nicht heiß."),
    ("nicht direction", say(WE, "gehen", direction=to("Schule"), time=TODAY, progressive=True, **NOT), "We are not going to the school today.", "Wir gehen heute nicht in die Schule."),
    ("nicht perfect", say(SHE, "anrufen", I, tense="past", **NOT), "She did not call me.", "Sie hat mich nicht angerufen."),
    ("nicht prepositional", say(HE, "warten", oblique=WE, tense="past", **NOT), "He did not wait for us.", "Er hat nicht auf uns gewartet."),
    ("kein acc", say(I, "haben", n("Hund", "a"), **NOT), "I do not have a dog.", "Ich habe keinen Hund."),
    ("kein mass", say(SHE, "trinken", n("Milch", ""), **NOT), "She does not drink milk.", "Sie trinkt keine Milch."),
    ("kein plural", say(HE, "essen", ns("Tomate", "a"), **NOT), "He does not eat tomatoes.", "Er isst keine Tomaten."),
    ("kein profession", say(HE, "sein", predicate=n("Arzt", "", english_determiner="a"), **NOT), "He is not a doctor.", "Er ist kein Arzt."),
    # Clauses with the verb at the end
    ("weil", sub(c(HE, "bleiben", place=ADVERBS["zu Hause"], progressive=True), "weil", "because", c(HE, "sein", predicate=be("krank"))), "He is staying at home because he is ill.", "Er bleibt zu Hause, weil er krank ist."),
    ("weil perfect", sub(c(SHE, "sein", predicate=be("glücklich")), "weil", "because", c(HE, "schreiben", n("Brief", "a"), tense="past")), "She is happy because he wrote a letter.", "Sie ist glücklich, weil er einen Brief geschrieben hat."),
    ("weil separable", sub(c(I, "sein", predicate=be("müde")), "weil", "because", c(I, "aufstehen", manner=ADVERBS["früh"])), "I am tired because I get up early.", "Ich bin müde, weil ich früh aufstehe."),
    ("weil modal first", sub(c(HE, "gehen", direction=ADVERBS["nach Hause"], progressive=True), "weil", "because", c(PAUL, "arbeiten", modal="müssen"), True), "Because Paul has to work, he is going home.", "Weil Paul arbeiten muss, geht er nach Hause."),
    ("dass", sub(c(I, "wissen"), "dass", "that", c(SHE, "kommen", modal="wollen")), "I know that she wants to come.", "Ich weiß, dass sie kommen will."),
    ("dass reflexive", sub(c(I, "hoffen"), "dass", "that", c(n("Kind"), "sich freuen", oblique=n("Party"), progressive=True)), "I hope that the child is looking forward to the party.", "Ich hoffe, dass sich das Kind auf die Party freut."),
    ("dass with an unclear pronoun", sub(c(HE, "sagen"), "dass", "that", c(n("Tante", "his"), "verstehen", SHE, negated=True)), "He says that his aunt does not understand her.", "Er sagt, dass seine Tante sie nicht versteht."),
    ("dass swap", sub(c(I, "hoffen"), "dass", "that", c(n("Film"), "gefallen", indirect=YOU)), "I hope that you like the film.", "Ich hoffe, dass dir der Film gefällt."),
    ("dass place", sub(c(SHE, "wissen"), "dass", "that", c(n("Schlüssel"), "liegen", place=on("Tisch", DATIVE), progressive=True)), "She knows that the key is lying on the table.", "Sie weiß, dass der Schlüssel auf dem Tisch liegt."),
    ("dass future", sub(c(HE, "sagen"), "dass", "that", c(HE, "anrufen", YOU, tense="future")), "He says that he will call you.", "Er sagt, dass er dich anrufen wird."),
    ("wenn", sub(c(WE, "bleiben", place=ADVERBS["zu Hause"]), "wenn", "if", c(IT, "regnen"), True), "If it rains, we stay at home.", "Wenn es regnet, bleiben wir zu Hause."),
    ("wenn second", sub(c(I, "kommen", tense="future"), "wenn", "if", c(I, "haben", n("Zeit", ""))), "I will come if I have time.", "Ich werde kommen, wenn ich Zeit habe."),
    ("obwohl", sub(c(THEY, "spazieren gehen", tense="past"), "obwohl", "although", c(IT, "regnen", tense="past", progressive=True)), "They went for a walk, although it was raining.", "Sie sind spazieren gegangen, obwohl es geregnet hat."),
    ("als", sub(c(I, "wohnen", place=Word("in Köln", "in Cologne"), tense="past"), "als", "when", c(I, "sein", predicate=n("Kind", "a"), tense="past"), True), "When I was a child, I lived in Cologne.", "Als ich ein Kind war, habe ich in Köln gewohnt."),
    ("bevor", sub(c(SHE, "ausschalten", n("Lampe"), progressive=True), "bevor", "before", c(SHE, "ausgehen")), "She is turning off the lamp before she goes out.", "Sie schaltet die Lampe aus, bevor sie ausgeht."),
    ("nachdem", sub(c(HE, "einschlafen", tense="past"), "nachdem", "after", c(HE, "lesen", n("Buch"), tense="pluperfect")), "He fell asleep after he had read the book.", "Er ist eingeschlafen, nachdem er das Buch gelesen hatte."),
    ("ob", sub(c(I, "wissen", negated=True), "ob", "whether", c(HE, "kommen", tense="future")), "I do not know whether he will come.", "Ich weiß nicht, ob er kommen wird."),
    ("indirect question", Sentence(c(SHE, "wissen", negated=True), subordinate=Subordinate("question", c(HE, "wohnen", place=Word("wo", "where"), front="place"))), "She does not know where he lives.", "Sie weiß nicht, wo er wohnt."),
    ("zu", Sentence(c(HE, "versuchen", progressive=True), subordinate=Subordinate("infinitive", c(HE, "reparieren", n("Fahrrad", "his")))), "He is trying to repair his bicycle.", "Er versucht, sein Fahrrad zu reparieren."),
    ("zu separable", Sentence(c(I, "beschließen", tense="past"), subordinate=Subordinate("infinitive", c(I, "aufräumen", n("Zimmer", "my")))), "I decided to tidy up my room.", "Ich habe beschlossen, mein Zimmer aufzuräumen."),
    ("um zu", Sentence(c(WE, "fahren", direction=Word("nach Berlin", "to Berlin"), progressive=True), subordinate=Subordinate("purpose", c(WE, "besuchen", n("Tante", "our")))), "We are driving to Berlin in order to visit our aunt.", "Wir fahren nach Berlin, um unsere Tante zu besuchen."),
    ("um zu reflexive", Sentence(c(I, "gehen", direction=to("Park"), progressive=True), subordinate=Subordinate("purpose", c(I, "sich ausruhen"))), "I am going to the park in order to rest.", "Ich gehe in den Park, um mich auszuruhen."),
    # Relative clauses
    ("relative nom", say(n("Mann", relative=c(MALE_WHO, "wohnen", place=ADVERBS["hier"], front="subject")), "sein", predicate=be("nett")), "The man who lives here is nice.", "Der Mann, der hier wohnt, ist nett."),
    ("relative acc", say(n("Film", relative=c(WE, "sehen", THING_M, tense="past", front="direct")), "sein", predicate=be("gut"), **PAST), "The film that we saw was good.", "Der Film, den wir gesehen haben, war gut."),
    ("relative dat", say(n("Frau", relative=c(I, "helfen", indirect=Relative("f", True), tense="past", front="indirect")), "sein", predicate=be("alt")), "The woman whom I helped is old.", "Die Frau, der ich geholfen habe, ist alt."),
    ("relative dat plural", say(ns("Kind", relative=c(WE, "helfen", indirect=Relative("p", True), progressive=True, front="indirect")), "sein", predicate=be("klein")), "The children whom we are helping are small.", "Die Kinder, denen wir helfen, sind klein."),
    ("relative gen", say(n("Mann", relative=c(n("Auto", owner=MALE_WHO), "sein", predicate=be("kaputt"), front="subject")), "warten", progressive=True), "The man whose car is broken is waiting.", "Der Mann, dessen Auto kaputt ist, wartet."),
    ("relative place", say(n("Haus", relative=c(WE, "wohnen", place=Prepositional("in", "in", DATIVE, Relative("n", False)), front="place")), "sein", predicate=be("alt")), "The house in which we live is old.", "Das Haus, in dem wir wohnen, ist alt."),
    ("relative behind bracket", say(I, "lesen", n("Buch", relative=c(n("Lehrer", "my"), "empfehlen", Relative("n", False), tense="past", front="direct")), **PAST), "I read the book that my teacher recommended.", "Ich habe das Buch gelesen, das mein Lehrer empfohlen hat."),
    ("particle before relative", say(SHE, "zurückbringen", n("Auto", relative=c(I, "kaufen", Relative("n", False), tense="past", front="direct")), **PAST), "She brought the car back that I bought.", "Sie hat das Auto zurückgebracht, das ich gekauft habe."),
    # Questions
    ("yes-no", ask(YOU, "haben", n("Zeit", "")), "Do you have time?", "Hast du Zeit?"),
    ("yes-no perfect", ask(YOU, "schlafen", manner=ADVERBS["gut"], **PAST), "Did you sleep well?", "Hast du gut geschlafen?"),
    ("yes-no modal", ask(I, "öffnen", n("Fenster"), modal="können"), "Can I open the window?", "Kann ich das Fenster öffnen?"),
    ("who", ask(Pronoun("who"), "wohnen", place=ADVERBS["hier"], front="subject"), "Who lives here?", "Wer wohnt hier?"),
    ("whom acc", ask(YOU, "besuchen", Pronoun("who"), progressive=True, front="direct"), "Who are you visiting?", "Wen besuchst du?"),
    ("whom dat", ask(YOU, "helfen", indirect=Pronoun("who"), tense="past", front="indirect"), "Who did you help?", "Wem hast du geholfen?"),
    ("what", ask(HE, "lesen", Pronoun("what"), progressive=True, front="direct"), "What is he reading?", "Was liest er?"),
    ("which", ask(YOU, "kaufen", n("Kleid", "which"), tense="past", front="direct"), "Which dress did you buy?", "Welches Kleid hast du gekauft?"),
    ("where", ask(n("Bruder", "your"), "wohnen", place=Word("wo", "where"), front="place"), "Where does your brother live?", "Wo wohnt dein Bruder?"),
    ("where to", ask(YOU, "gehen", direction=Word("wohin", "where"), front="direction", progressive=True), "Where are you going?", "Wohin gehst du?"),
    ("when", ask(n("Zug"), "ankommen", time=Word("wann", "when"), front="time"), "When does the train arrive?", "Wann kommt der Zug an?"),
    ("why", ask(n("Kind"), "weinen", reason=Word("warum", "why"), front="reason", progressive=True), "Why is the child crying?", "Warum weint das Kind?"),
    ("what for", ask(YOU, "warten", oblique=Pronoun("what"), front="oblique", progressive=True), "What are you waiting for?", "Worauf wartest du?"),
    ("who with", ask(YOU, "sprechen", oblique=Pronoun("who"), front="oblique", tense="past"), "Who did you speak with?", "Mit wem hast du gesprochen?"),
    # Imperatives
    ("imperative du", tell(YOU, "öffnen", n("Tür")), "Open the door!", "Öffne die Tür!"),
    ("imperative stem", tell(YOU, "nehmen", n("Bus")), "Take the bus!", "Nimm den Bus!"),
    ("imperative lesen", tell(YOU, "lesen", n("Buch", "this")), "Read this book!", "Lies dieses Buch!"),
    ("imperative no umlaut", tell(YOU, "fahren", manner=ADVERBS["langsam"]), "Drive slowly!", "Fahr langsam!"),
    ("imperative separable", tell(YOU, "ausschalten", n("Radio"), to=ANNA, please=True), "Anna, please turn off the radio!", "Anna, schalte bitte das Radio aus!"),
    ("imperative reflexive", tell(YOU, "sich beeilen"), "Hurry!", "Beeil dich!"),
    ("imperative ihr", tell(YOU_ALL, "aufräumen", n("Zimmer", "your_all"), to=ns("Kind", "")), "Children, tidy up your room!", "Kinder, räumt euer Zimmer auf!"),
    ("imperative Sie", tell(FORMAL, "helfen", indirect=I, to=MRS_WEBER, please=True), "Mrs. Weber, please help me!", "Frau Weber, helfen Sie mir bitte!"),
    ("imperative not", tell(YOU, "vergessen", n("Pass", "your"), **NOT), "Do not forget your passport!", "Vergiss deinen Pass nicht!"),
    ("imperative giving", tell(YOU, "geben", n("Buch"), indirect=I, please=True), "Please give me the book!", "Gib mir bitte das Buch!"),
    # Two-way prepositions
    ("two-way place", say(n("Buch"), "liegen", place=on("Tisch", DATIVE), progressive=True), "The book is lying on the table.", "Das Buch liegt auf dem Tisch."),
    ("two-way motion", say(HE, "legen", n("Buch"), direction=on("Tisch", ACCUSATIVE)), "He lays the book on the table.", "Er legt das Buch auf den Tisch."),
    ("two-way in", say(SHE, "sein", place=place("Garten")), "She is in the garden.", "Sie ist im Garten."),
    ("two-way into", say(SHE, "laufen", direction=to("Garten"), progressive=True), "She is running to the garden.", "Sie läuft in den Garten."),
    ("two-way under", say(n("Schuh"), "liegen", place=on("Bett", DATIVE, "unter", "under"), progressive=True), "The shoe is lying under the bed.", "Der Schuh liegt unter dem Bett."),
    ("two-way next to", say(WE, "stellen", n("Lampe"), direction=on("Sofa", ACCUSATIVE, "neben", "next to", "our"), tense="past"), "We put the lamp next to our sofa.", "Wir haben die Lampe neben unser Sofa gestellt."),
    ("two-way wall", say(HE, "hängen", n("Bild"), direction=on("Wand", ACCUSATIVE, "an"), **PAST), "He hung the picture on the wall.", "Er hat das Bild an die Wand gehängt."),
    ("contraction am", say(WE, "spielen", place=place("Strand"), **PAST), "We played on the beach.", "Wir haben am Strand gespielt."),
    ("contraction zum", say(HE, "gehen", direction=Prepositional("zu", "to", DATIVE, n("Arzt")), progressive=True), "He is going to the doctor.", "Er geht zum Arzt."),
    ("contraction zur", say(WE, "laufen", direction=to("Haltestelle"), progressive=True), "We are running to the bus stop.", "Wir laufen zur Haltestelle."),
    ("there is", say(None, "es geben", n("Park", "a", "schön"), place=place("Stadt")), "There is a beautiful park in the city.", "Es gibt in der Stadt einen schönen Park."),
    ("there are", say(None, "es geben", ns("Löwe", "no"), place=place("Zoo", "this"), front="place"), "At this zoo, there are no lions.", "In diesem Zoo gibt es keine Löwen."),
    # Comparison
    ("comparative", say(n("Hund"), "sein", predicate=be("groß", "", "than", n("Katze"))), "The dog is bigger than the cat.", "Der Hund ist größer als die Katze."),
    ("comparative long", say(n("Mantel", "this"), "sein", predicate=be("teuer", "", "than", n("Jacke", "my"))), "This coat is more expensive than my jacket.", "Dieser Mantel ist teurer als meine Jacke."),
    ("comparative irregular", say(n("Kaffee"), "sein", predicate=be("gut", "", "than", n("Tee"))), "The coffee is better than the tea.", "Der Kaffee ist besser als der Tee."),
    ("as ... as", say(ANNA, "sein", predicate=be("alt", "", "as", PAUL)), "Anna is as old as Paul.", "Anna ist so alt wie Paul."),
    ("attributive comparative", say(I, "brauchen", n("Tasche", "a", "groß", degree="comparative")), "I need a bigger bag.", "Ich brauche eine größere Tasche."),
    ("attributive superlative", say(Word("das", "this"), "sein", predicate=n("Haus", "the", "alt", degree="superlative", attribute=place("Dorf"))), "This is the oldest house in the village.", "Das ist das älteste Haus im Dorf."),
    ("intensifier", say(n("Prüfung"), "sein", predicate=be("schwierig", "sehr"), **PAST), "The exam was very difficult.", "Die Prüfung war sehr schwierig."),
    # Numbers, times, dates
    ("age", say(HE, "sein", predicate=Word("einundzwanzig Jahre alt", "twenty-one years old")), "He is twenty-one years old.", "Er ist einundzwanzig Jahre alt."),
    ("number", say(WE, "sehen", n("Pferd", "", count=17), **PAST), "We saw seventeen horses.", "Wir haben siebzehn Pferde gesehen."),
    ("price", say(n("Hemd", "this"), "kosten", predicate=numerals.price(76, True)), "This shirt costs seventy-six euros.", "Dieses Hemd kostet sechsundsiebzig Euro."),
    ("price in figures", say(n("Uhr"), "kosten", predicate=numerals.price(120, False)), "The watch costs 120 euros.", "Die Uhr kostet 120 Euro."),
    ("clock half", say(IT, "sein", predicate=numerals.clock(3, 30)), "It is half past three.", "Es ist halb vier."),
    ("clock half one", say(IT, "sein", predicate=numerals.clock(12, 30)), "It is half past twelve.", "Es ist halb eins."),
    ("clock quarter to", say(IT, "sein", predicate=numerals.clock(11, 45)), "It is a quarter to twelve.", "Es ist Viertel vor zwölf."),
    ("clock one", say(IT, "sein", predicate=numerals.clock(1, 0)), "It is one o'clock.", "Es ist ein Uhr."),
    ("clock twenty past", say(n("Film"), "beginnen", time=numerals.at_clock(numerals.clock(8, 20))), "The film begins at twenty past eight.", "Der Film beginnt um zwanzig nach acht."),
    ("timetable", say(n("Zug"), "abfahren", time=numerals.timetable(14, 35)), "The train leaves at 14:35.", "Der Zug fährt um 14:35 Uhr ab."),
    ("date", say(WE, "feiern", n("Hochzeit", "a"), time=numerals.date(3, month("May")), tense="future"), "We will celebrate a wedding on the third of May.", "Wir werden am dritten Mai eine Hochzeit feiern."),
    ("date nominative", say(Word("heute", "today"), "sein", predicate=Word(f"der {numerals.german_ordinal(7, 'e')} Juli", f"the {numerals.english_ordinal(7)} of July")), "Today is the seventh of July.", "Heute ist der siebte Juli."),
    ("weekday", say(I, "arbeiten", time=numerals.on_weekday(CALENDAR["Monday"], None), front="time", **NOT), "On Monday, I do not work.", "Am Montag arbeite ich nicht."),
    ("evening", say(SHE, "tanzen", time=numerals.on_weekday(CALENDAR["Friday"], CALENDAR["evening"])), "She dances on Friday evening.", "Sie tanzt am Freitagabend."),
    ("season", say(WE, "schwimmen", place=place("See"), time=numerals.in_period(CALENDAR["summer"]), front="time"), "In summer, we swim at the lake.", "Im Sommer schwimmen wir am See."),
    ("ago", say(HE, "ankommen", time=numerals.distance("ago", 2, "day"), **PAST), "He arrived two days ago.", "Er ist vor zwei Tagen angekommen."),
    ("in a week", say(I, "zurückkommen", time=numerals.distance("ahead", 1, "week"), tense="future"), "I will come back in a week.", "Ich werde in einer Woche zurückkommen."),
    ("film lasts", say(n("Film"), "dauern", predicate=numerals.span(2, "hour")), "The film lasts two hours.", "Der Film dauert zwei Stunden."),
    # Professions, names and the rest
    ("profession m", say(PAUL, "sein", predicate=n("Lehrer", "", english_determiner="a")), "Paul is a teacher.", "Paul ist Lehrer."),
    ("profession f", say(SHE, "sein", predicate=n("Arzt", "a", "gut", feminine=True)), "She is a good doctor.", "Sie ist eine gute Ärztin."),
    ("becoming", say(ANNA, "werden", predicate=n("Pilot", "", english_determiner="a", feminine=True), modal="wollen"), "Anna wants to become a pilot.", "Anna will Pilotin werden."),
    ("name", say(n("Hund", "my"), "heißen", predicate=Name("Felix", "Felix", "m")), "My dog is called Felix.", "Mein Hund heißt Felix."),
    ("deshalb", Sentence(c(IT, "regnen", progressive=True), joined=c(WE, "bleiben", place=ADVERBS["zu Hause"], progressive=True), conjunction=Word("deshalb", "therefore"), inverted=True), "It is raining, therefore we are staying at home.", "Es regnet, deshalb bleiben wir zu Hause."),
    ("it follows gender", Sentence(c(I, "kaufen", n("Tisch", "a"), tense="past"), joined=c(Pronoun("it_m"), "sein", predicate=be("klein", "zu"), tense="past"), conjunction=Word("aber", "but")), "I bought a table, but it was too small.", "Ich habe einen Tisch gekauft, aber er war zu klein."),
    ("taste", say(n("Suppe"), "schmecken", predicate=be("gut", "sehr")), "The soup tastes very good.", "Die Suppe schmeckt sehr gut."),
    ("feel", say(SHE, "sich fühlen", predicate=be("krank")), "She feels ill.", "Sie fühlt sich krank."),
    ("vocative", Sentence(Clause(VERBS["helfen"], YOU, indirect=I, modal=MODALS["können"]), "question", vocative=PAUL), "Paul, can you help me?", "Paul, kannst du mir helfen?"),
]  # fmt: skip


def test_there_are_enough_gold_pairs() -> None:
    assert len(GOLD) >= 150
    assert len({english_text for _, _, english_text, _ in GOLD}) == len(GOLD)
    assert len({german_text for *_, german_text in GOLD}) == len(GOLD)


@pytest.mark.parametrize(("phenomenon", "tree", "source", "target"), GOLD, ids=[row[0] for row in GOLD])
def test_gold_pair(phenomenon: str, tree: Sentence, source: str, target: str) -> None:
    assert english.sentence(tree) == source, phenomenon
    assert german.sentence(tree) == target, phenomenon
