"""Reads lexicon/*.tsv into entries and refuses what breaks a rule. Knows no inflection and draws no sentences.

What the columns, flags and groups mean is explained in lexicon/README.md.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from endeavour.errors import UserError
from endeavour.textbook.entries import Adjective, Lexicon, Modal, Noun, Scene, Verb, Word
from endeavour.textbook.morphology_english import with_s
from endeavour.textbook.rows import Row, read_table

FOLDER = Path(__file__).parent / "lexicon"

COLUMNS = {
    "nouns": "german gender genitive plural english english_plural classes where whereto english_where feminine",
    "verbs": "german er perfect english english_past english_participle frame subject object english_preposition "
    "where manner flags",
    "adjectives": "german stem comparative superlative english english_comparative classes flags",
    "adverbs": "german english kind use flags",
    "names": "german english gender kind",
    "places": "german english kind article",
    "prepositions": "german english case use",
    "calendar": "german english kind",
    "modals": "german english english_past kind",
    "auxiliaries": "german tense ich du er wir ihr sie",
    "groups": "group kind words",
    "scenes": "construction what where",
}
FRAMES = frozenset({
    "-", "acc", "acc?", "dat", "dat acc", "swap", "dir", "onto", "acc onto", "acc wall", "acc body", "loc", "loc?",
    "on", "to", "that", "that to", "that wh", "predicate", "name", "feel", "taste", "there", "price", "duration",
    "weather",
})  # fmt: skip
VERB_FLAGS = frozenset({
    "simple", "since", "lasting", "company", "by_vehicle", "anything", "no_article", "definite", "uncommanded",
    "timetable", "trying", "doubled", "particle_last",
})  # fmt: skip
ADJECTIVE_FLAGS = frozenset({"state", "cause", "taste", "feel", "age"})
ADVERB_FLAGS = frozenset({"clock", "deniable"})
ADVERB_KINDS = frozenset({"manner", "time", "frequency", "place", "direction", "degree"})
GEOGRAPHIC = frozenset({"city", "country"})
WORDS = {  # file → the column with the kind, the kinds, the column that Word.use holds, and what it may be
    "names": ("kind", {"first", "family"}, "gender", {"m", "f", ""}),
    "places": ("kind", GEOGRAPHIC, "article", {"", "f", "p"}),
    "prepositions": (
        "use", {"companion", "position", "wall", "reason", "occasion"}, "case", {"acc", "dat", "gen", "two-way"},
    ),
    "calendar": ("kind", {"weekday", "month", "season", "daypart"}, None, ()),
}  # fmt: skip
TENSES_OF_TIME = frozenset({"past", "present", "progressive", "future"})
NOUN_GROUPS = frozenset({
    "occasion", "reason", "by_vehicle", "own_place", "ownable", "near_vehicles", "near_things", "support",
    "below_pictures", "needed", "lacking", "washed_by_several", "comparable", "superlative", "owner", "owned",
    "named", "whose", "part", "whole_of_opening", "whole_of_part",
})  # fmt: skip
VERB_GROUPS = frozenset({
    "going", "purpose", "owning", "done_to_opening", "done_to_part", "got", "given_up", "past_moment",
    "time_of_day",
})  # fmt: skip
PERSONS = ("ich", "du", "er", "wir", "ihr", "sie")
SCENES = frozenset({"being", "existence"})


def _distinct(rows: Sequence[Row], columns: str, what: str) -> None:
    """Raises `UserError` for the second row with the same cells in these columns."""
    firsts: dict[tuple[str, ...], Row] = {}
    for row in rows:
        first = firsts.setdefault(tuple(row[column] for column in columns.split()), row)
        if first is not row:
            raise row.error(f"{what} is already in {first.place}; keep one of the two")


def _noun(row: Row) -> Noun:
    german, plural = row["german"], row["plural"]
    gender = row.one_of("gender", {"m", "f", "n", "p"})
    classes = row.words("classes")
    if gender in ("m", "n") and not row["genitive"]:
        raise row.error(f"{german} needs its genitive (des Hundes: Hundes)")
    if not plural or (gender == "p" and plural == "-"):
        raise row.error(f"{german} needs its plural, or - if it is a singular noun without one")
    ways = (row["where"], row["whereto"], row["english_where"])
    if not all(ways) and (any(ways) or "place" in classes):
        raise row.error(f"the place {german} needs where, whereto and english_where")
    if "job" in classes and not row["feminine"]:
        raise row.error(f"the profession {german} needs its feminine")
    return row.entry(
        Noun,
        genitive=row["genitive"] or german,
        plural="" if plural == "-" else plural,
        english_plural=row["english_plural"] or with_s(row["english"]),
        classes=frozenset([german, *classes]),
    )


def _verb(row: Row, classes: Collection[str], places: Collection[str], manners: Collection[str]) -> Verb:
    first, _, rest = row["german"].partition(" ")
    reflexive = {"sich": "accusative", "sich_dat": "dative"}.get(first, "")
    german = rest if reflexive else row["german"]
    prefix, bar, base = german.partition("|")
    if not bar:
        prefix, base = "", german.split(" ")[-1]
    auxiliary, _, participle = row["perfect"].partition(" ")
    if auxiliary not in ("hat", "ist"):
        raise row.error(f"the perfect of {row['german']} should begin with hat or ist")
    preposition, plus, case = row["frame"].partition("+")
    if plus and case not in ("acc", "dat"):
        raise row.error(f"the case of frame {row['frame']!r} should be acc or dat")
    return Verb(
        german=("sich " if reflexive else "") + german.replace("|", ""),
        base=base,
        prefix=prefix,
        reflexive=reflexive,
        third_person=row["er"].split(" ")[0],
        auxiliary=auxiliary,
        participle=participle,
        english=row["english"],
        english_past=row["english_past"],
        english_participle=row["english_participle"],
        frame="oblique" if plus else row.one_of("frame", FRAMES),
        preposition=preposition if plus else "",
        preposition_case=case,
        subject=row.words("subject", classes),
        object=row.words("object", classes),
        english_preposition=row["english_preposition"],
        where=row.words("where", places),
        manner=row.words("manner", manners),
        flags=frozenset(row.words("flags", VERB_FLAGS)),
    )


def _adjective(row: Row, classes: Collection[str]) -> Adjective:
    return row.entry(
        Adjective,
        stem=row["stem"] or row["german"],
        classes=row.words("classes", classes),
        flags=frozenset(row.words("flags", ADJECTIVE_FLAGS)),
    )


def _words(tables: dict[str, list[Row]], classes: Collection[str]) -> dict[str, tuple[Word, ...]]:
    words: dict[str, tuple[Word, ...]] = defaultdict(tuple)
    for row in tables["adverbs"]:
        kind = row.one_of("kind", ADVERB_KINDS)
        row.words("use", {"time": TENSES_OF_TIME, "place": classes, "manner": None}.get(kind, ()))
        flags = frozenset(row.words("flags", ADVERB_FLAGS))
        words[kind] += (Word(row["german"], row["english"], row["use"], flags),)
    for file, (kind_column, kinds, use_column, uses) in WORDS.items():
        for row in tables[file]:
            use = row.one_of(use_column, uses) if use_column else ""
            words[row.one_of(kind_column, kinds)] += (Word(row["german"], row["english"], use),)
    return words


def _modal(row: Row, finite_forms: Collection[tuple[str, str]]) -> Modal:
    for tense in ("present", "past") if row["english_past"] else ("present",):
        if (row["german"], tense) not in finite_forms:
            raise row.error(f"the modal verb {row['german']} has no {tense} in auxiliaries.tsv")
    phrase = row.one_of("kind", {"auxiliary", "phrase"}) == "phrase"
    return Modal(row["german"], row["english"], row["english_past"], phrase)


def _groups(
    rows: Sequence[Row], classes: Collection[str], verbs: dict[str, Verb]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[Verb, ...]]]:
    nouns_of: dict[str, tuple[str, ...]] = {}
    verbs_of: dict[str, tuple[Verb, ...]] = {}
    for row in rows:
        if row.one_of("kind", {"nouns", "verbs"}) == "nouns":
            nouns_of[row.one_of("group", NOUN_GROUPS)] = row.words("words", classes, ", ")
        else:
            words = row.words("words", verbs, ", ")
            verbs_of[row.one_of("group", VERB_GROUPS)] = tuple(verbs[word] for word in words)
    missing = (NOUN_GROUPS | VERB_GROUPS) - nouns_of.keys() - verbs_of.keys()
    if missing:
        raise UserError(f"groups.tsv: no row for the group {min(missing)}")
    return nouns_of, verbs_of


def read_lexicon(folder: Path) -> Lexicon:
    """The lexicon of a folder.

    Raises:
        UserError: a row breaks a rule; the message names file and line.
    """
    tables = {name: read_table(folder / f"{name}.tsv", columns.split()) for name, columns in COLUMNS.items()}
    for name in ("nouns", "adjectives", "adverbs", "modals"):
        _distinct(tables[name], "english", "this English word")
    _distinct(tables["groups"], "group", "this group")
    valency = "english frame english_preposition subject object"
    _distinct(tables["verbs"], valency, "this English verb with the same frame, subject and object")
    nouns = tuple(map(_noun, tables["nouns"]))
    # Cities and countries are no nouns, but may stand where a class does.
    classes = GEOGRAPHIC.union(*(noun.classes for noun in nouns))
    places = classes.difference(*(noun.classes for noun in nouns if not noun.where))
    words = _words(tables, classes)
    manners = {use for adverb in words["manner"] for use in adverb.use.split()}
    verbs = tuple(_verb(row, classes, places, manners) for row in tables["verbs"])
    finite_forms = {
        (row["german"], row.one_of("tense", {"present", "past"})): tuple(row[person] for person in PERSONS)
        for row in tables["auxiliaries"]
    }
    noun_groups, verb_groups = _groups(tables["groups"], classes, {verb.german: verb for verb in verbs})
    scenes: dict[str, tuple[Scene, ...]] = dict.fromkeys(SCENES, ())
    for row in tables["scenes"]:
        scenes[row.one_of("construction", SCENES)] += (
            Scene(row.words("what", classes), row.words("where", places)),
        )
    return Lexicon(
        nouns=nouns,
        verbs=verbs,
        adjectives=tuple(_adjective(row, classes) for row in tables["adjectives"]),
        words=words,
        modals=tuple(_modal(row, finite_forms) for row in tables["modals"]),
        finite_forms=finite_forms,
        noun_groups=noun_groups,
        verb_groups=verb_groups,
        scenes=scenes,
    )


@cache
def load_lexicon() -> Lexicon:
    """The lexicon that comes with the package, read once."""
    return read_lexicon(FOLDER)
