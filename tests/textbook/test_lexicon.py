"""The lexicon: its rules, and what a row that breaks one is told."""

import shutil
from pathlib import Path

import pytest

from endeavour.errors import UserError
from endeavour.textbook import reading
from endeavour.textbook.reading import (
    ADJECTIVE_FLAGS,
    ADVERB_FLAGS,
    ADVERB_KINDS,
    FOLDER,
    VERB_FLAGS,
    load_lexicon,
    read_lexicon,
)

FLAGS = {"verbs": VERB_FLAGS, "adjectives": ADJECTIVE_FLAGS, "adverbs": ADVERB_FLAGS}
GROUPS = reading.NOUN_GROUPS | reading.VERB_GROUPS


def copy_with(folder: Path, file: str, old: str, new: str) -> int:
    """Copies the lexicon with one change in `file`; returns the changed line."""
    shutil.copytree(FOLDER, folder)
    text = (folder / file).read_text("utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), "utf-8")
    return text[: text.index(old) + 1].count("\n") + 1


def refusal(folder: Path, file: str, line: int) -> str:
    """What the reader says of a lexicon, which must name file and line."""
    with pytest.raises(UserError, match=rf"^{file}, line {line}: ") as error:
        read_lexicon(folder)
    return str(error.value)


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_is_known_and_an_unknown_one_is_refused(tmp_path: Path, name: str) -> None:
    known = FLAGS[name]
    lexicon = load_lexicon()
    adverbs = [word for kind in ADVERB_KINDS for word in lexicon.words[kind]]
    entries = {"verbs": lexicon.verbs, "adjectives": lexicon.adjectives, "adverbs": adverbs}[name]
    assert {flag for entry in entries for flag in entry.flags} == known
    lines = (FOLDER / f"{name}.tsv").read_text("utf-8").splitlines()
    rows = [number for number, line in enumerate(lines) if line and not line.startswith("#")][1:]
    for number in (rows[0], rows[len(rows) // 2], rows[-1]):
        folder = tmp_path / str(number)
        shutil.copytree(FOLDER, folder)
        changed = [*lines[:number], lines[number] + " lastin", *lines[number + 1 :]]
        (folder / f"{name}.tsv").write_text("\n".join(changed), "utf-8")
        message = refusal(folder, f"{name}.tsv", number + 1)
        assert "lastin" in message
        assert all(flag in message for flag in known)


def test_every_flag_and_group_is_read_and_documented() -> None:
    sources = [path for path in FOLDER.parent.glob("*.py") if path.name != "reading.py"]
    code = "".join(path.read_text("utf-8") for path in sources)
    guide = (FOLDER / "README.md").read_text("utf-8")
    for name in frozenset[str]().union(GROUPS, *FLAGS.values()):
        assert f'"{name}"' in code, name
        assert f"{name} |" in guide or f"{name}," in guide or f"`{name}`" in guide, name


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        ("nouns.tsv", "\nKatze\tf\t", "\nKatze\tf\t\t", "cells"),
        ("nouns.tsv", "\nHund\tm\t", "\nHund\tx\t", "'x'"),
        ("nouns.tsv", "\nHund\tm\tHundes", "\nHund\tm\t", "genitive"),
        ("nouns.tsv", "\nKatze\tf\t\tKatzen\tcat", "\nKatze\tf\t\tKatzen\tdog", "English"),
        ("nouns.tsv", "place room indoors\tin\tin\tin", "place room indoors\tin\t\tin", "whereto"),
        ("nouns.tsv", "Ärztin", "", "feminine"),
        ("nouns.tsv", "\nHund\tm\tHundes\tHunde", "\nHund\tm\tHundes\t", "plural"),
        ("verbs.tsv", "\ngerman\ter\t", "\ngerman\the\t", "columns"),
        ("verbs.tsv", "ist gefahren\tdrive", "gefahren\tdrive", "perfect"),
        ("verbs.tsv", "auf+acc", "auf+gen", "auf+gen"),
        ("verbs.tsv", "\tloc?\t", "\tlocal\t", "'local'"),
        ("verbs.tsv", "\tfood drink\t", "\tfood drinks\t", "'drinks'"),
        ("verbs.tsv", "\troom outdoors quiet\t", "\troom animal\t", "'animal'"),
        ("verbs.tsv", "\tslow care\t", "\tslow careful\t", "'careful'"),
        ("adjectives.tsv", "Wetter Zimmer", "Wetter Kammer", "'Kammer'"),
        ("adverbs.tsv", "\tdegree", "\tdegrees", "'degrees'"),
        ("adverbs.tsv", "past progressive", "perfect progressive", "'perfect'"),
        ("names.tsv", "\tf\tfirst", "\tw\tfirst", "'w'"),
        ("places.tsv", "\tcountry\tf", "\tstate\tf", "'state'"),
        ("prepositions.tsv", "\tgen\treason", "\tgen\tcause", "'cause'"),
        ("calendar.tsv", "\tseason", "\tquarter", "'quarter'"),
        ("modals.tsv", "\nsollen\t", "\nsölle\t", "auxiliaries.tsv"),
        ("auxiliaries.tsv", "sein\tpast", "sein\tfuture", "'future'"),
        ("groups.tsv", "\ngoing", "\nwalking", "'walking'"),
        ("groups.tsv", "reisen, fliegen", "reisen, flattern", "'flattern'"),
        ("groups.tsv", "\nowned\t", "\nowner\t", "group"),
        ("scenes.tsv", "existence\t", "exists\t", "'exists'"),
        ("scenes.tsv", "\tGarten Park Wald", "\tGarten Park Tal", "'Tal'"),
    ],
)
def test_a_row_that_breaks_a_rule_is_refused(
    tmp_path: Path, file: str, old: str, new: str, named: str
) -> None:
    folder = tmp_path / "lexicon"
    line = copy_with(folder, file, old, new)
    assert named in refusal(folder, file, line)


def test_a_missing_group_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "lexicon"
    copy_with(folder, "groups.tsv", "\ngoing", "\n# going")
    with pytest.raises(UserError, match=r"^groups\.tsv: .*going"):
        read_lexicon(folder)
