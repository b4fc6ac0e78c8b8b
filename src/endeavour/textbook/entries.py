"""The lexicon: reads lexicon/*.tsv into entries and checks them. It knows no inflection and draws no sentences.

A file is a header line and tab-separated rows; empty lines and lines that begin with # are skipped. What each
column means stands in lexicon/README.md.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from endeavour.errors import UserError

FOLDER = Path(__file__).parent / "lexicon"

GENDERS = ("m", "f", "n", "p")


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun with its dictionary forms; `plural` is empty for a mass noun, gender "p" means plural only."""

    german: str
    gender: str
    genitive: str
    plural: str
    english: str
    english_plural: str
    classes: frozenset[str]
    where: str
    whereto: str
    english_where: str
    feminine: str

    @property
    def mass(self) -> bool:
        return not self.plural


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb: `prefix` is split off in main clauses, `reflexive` is "", "accusative" or "dative"."""

    german: str
    base: str
    prefix: str
    reflexive: str
    third_person: str
    auxiliary: str
    participle: str
    english: str
    english_past: str
    english_participle: str
    frame: str
    preposition: str
    preposition_case: str
    subject: tuple[str, ...]
    object: tuple[str, ...]
    english_preposition: str
    where: tuple[str, ...]
    manner: tuple[str, ...]
    simple: bool


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective; `stem` takes the endings, `comparative` is empty where the word has none."""

    german: str
    stem: str
    comparative: str
    superlative: str
    english: str
    english_comparative: str
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """An uninflected pair: adverb, name, place, preposition or calendar word; `use` and `kind` group them."""

    german: str
    english: str
    kind: str
    use: str


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """A modal verb; `phrase` tells an English head with "to" (have to) from a bare auxiliary (can)."""

    german: str
    english: str
    english_past: str
    phrase: bool


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """All entries, in the order of the files."""

    nouns: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    adverbs: tuple[Word, ...]
    names: tuple[Word, ...]
    places: tuple[Word, ...]
    prepositions: tuple[Word, ...]
    calendar: tuple[Word, ...]
    modals: tuple[Modal, ...]
    finite_forms: dict[tuple[str, str], tuple[str, ...]]  # (verb, "present" or "past") -> six persons

    def size(self) -> int:
        """The number of entries."""
        parts = (self.nouns, self.verbs, self.adjectives, self.adverbs, self.names, self.places)
        return sum(map(len, parts)) + len(self.prepositions) + len(self.calendar) + len(self.modals)


def read_table(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Rows of a lexicon file as (line number, column -> cell).

    Raises:
        UserError: a row has more or fewer cells than the header.
    """
    header: list[str] = []
    rows: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if not header:
            header = cells
            continue
        if len(cells) != len(header):
            raise UserError(
                f"{path.name}, line {number}: {len(cells)} cells, but the header names {len(header)} columns; "
                "separate the cells by single tabs and leave empty cells empty"
            )
        rows.append((number, dict(zip(header, cells, strict=True))))
    return rows


def _noun(where: str, row: dict[str, str]) -> Noun:
    gender = row["gender"]
    if gender not in GENDERS:
        raise UserError(f"{where}: gender {gender!r} of {row['german']} should be m, f, n or p")
    if gender in ("m", "n") and not row["genitive"]:
        raise UserError(f"{where}: {row['german']} needs its genitive (des Hundes: Hundes)")
    english = row["english"]
    plural = "" if row["plural"] == "-" else row["plural"]
    return Noun(
        german=row["german"],
        gender=gender,
        genitive=row["genitive"] or row["german"],
        plural=plural,
        english=english,
        english_plural=row["english_plural"] or regular_plural(english),
        classes=frozenset([row["german"], *row["classes"].split()]),
        where=row["where"],
        whereto=row["whereto"],
        english_where=row["english_where"],
        feminine=row["feminine"],
    )


def regular_plural(english: str) -> str:
    """book -> books, box -> boxes, city -> cities."""
    if english.endswith(("s", "sh", "ch", "x")):
        return english + "es"
    if english.endswith("y") and english[-2] not in "aeiou":
        return english[:-1] + "ies"
    return english + "s"


def _verb(where: str, row: dict[str, str]) -> Verb:
    first, _, rest = row["german"].partition(" ")
    reflexive = {"sich": "accusative", "sich_dat": "dative"}.get(first, "")
    german = rest if reflexive else row["german"]
    prefix, bar, base = german.partition("|")
    if not bar:
        prefix, base = "", german
    auxiliary, _, participle = row["perfect"].partition(" ")
    if auxiliary not in ("hat", "ist"):
        raise UserError(f"{where}: the perfect of {row['german']} should begin with hat or ist")
    third_person = row["er"].split(" ")[0]
    preposition, plus, preposition_case = row["frame"].partition("+")
    name = ("sich " if reflexive else "") + german.replace("|", "")
    return Verb(
        german=name,
        base=base.split(" ")[-1] if not prefix else base,
        prefix=prefix,
        reflexive=reflexive,
        third_person=third_person,
        auxiliary=auxiliary,
        participle=participle,
        english=row["english"],
        english_past=row["english_past"],
        english_participle=row["english_participle"],
        frame="oblique" if plus else row["frame"],
        preposition=preposition if plus else "",
        preposition_case=preposition_case,
        subject=tuple(row["subject"].split()),
        object=tuple(row["object"].split()),
        english_preposition=row["english_preposition"],
        where=tuple(row["where"].split()),
        manner=tuple(row["manner"].split()),
        simple=row["flags"] == "simple",
    )


def _adjective(row: dict[str, str]) -> Adjective:
    return Adjective(
        german=row["german"],
        stem=row["stem"] or row["german"],
        comparative=row["comparative"],
        superlative=row["superlative"],
        english=row["english"],
        english_comparative=row["english_comparative"],
        classes=tuple(row["classes"].split()),
    )


def _words(name: str, kind: str, use: str) -> tuple[Word, ...]:
    table = read_table(FOLDER / name)
    return tuple(Word(r["german"], r["english"], r[kind], r.get(use, "")) for _, r in table)


@cache
def load_lexicon() -> Lexicon:
    """The lexicon of this folder, read once.

    Raises:
        UserError: a row of a file is malformed; the message names file and line.
    """
    forms: dict[tuple[str, str], tuple[str, ...]] = {}
    for _, row in read_table(FOLDER / "auxiliaries.tsv"):
        forms[row["german"], row["tense"]] = tuple(
            row[person] for person in ("ich", "du", "er", "wir", "ihr", "sie")
        )
    return Lexicon(
        nouns=tuple(_noun(f"nouns.tsv, line {n}", r) for n, r in read_table(FOLDER / "nouns.tsv")),
        verbs=tuple(_verb(f"verbs.tsv, line {n}", r) for n, r in read_table(FOLDER / "verbs.tsv")),
        adjectives=tuple(_adjective(r) for _, r in read_table(FOLDER / "adjectives.tsv")),
        adverbs=_words("adverbs.tsv", "kind", "use"),
        names=_words("names.tsv", "kind", "gender"),
        places=_words("places.tsv", "kind", "article"),
        prepositions=_words("prepositions.tsv", "use", "case"),
        calendar=_words("calendar.tsv", "kind", ""),
        modals=tuple(
            Modal(r["german"], r["english"], r["english_past"], r["kind"] == "phrase")
            for _, r in read_table(FOLDER / "modals.tsv")
        ),
        finite_forms=forms,
    )
