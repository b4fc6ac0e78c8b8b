"""How many test sentences a training text has: counted exactly, in normal form, over all its files."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endeavour.data import tables
from endeavour.data.known_sentences import pairs_with_sources
from endeavour.evaluation.overlap import Overlap, measure_overlap

Pairs = list[tuple[str, str]]


def saved(folder: Path, *parts: Pairs) -> Path:
    """A training text, as preparing writes it."""
    paths: list[Path] = []
    for number, pairs in enumerate(parts):
        paths.append(folder.with_name(f"{folder.name}-{number}.arrow"))
        with tables.new_table(paths[-1]) as table:
            for batch in tables.batches(pairs):
                tables.write(table, batch)
    tables.save_tables(paths, folder)
    return folder


def test_sources_and_pairs_are_counted_in_all_parts_and_all_texts(tmp_path: Path) -> None:
    one = saved(tmp_path / "one", [("the dog", "der Hund"), ("a tree", "ein Baum")], [("a man", "ein Mann")])
    two = saved(tmp_path / "two", [("the cat", "die Katze"), ("the dog", "ein Hund")])
    sources = ["the dog", "a man", "the dog", "the cat", "new"]
    references = ["der Hund", "der Mann", "ein Hund", "die Katze", "der Hund"]
    assert measure_overlap(sources, references, [one]) == Overlap(sources=3, pairs=1)
    assert measure_overlap(sources, references, [one, two]) == Overlap(sources=4, pairs=3)
    assert measure_overlap(sources, references, []) == Overlap(sources=0, pairs=0)


def test_test_sentences_are_compared_in_their_normal_form(tmp_path: Path) -> None:
    text = saved(tmp_path / "text", [("the Houses", "die Häuser")])
    decomposed = unicodedata.normalize("NFD", "die Häuser")
    assert measure_overlap([" the\u00a0 Houses "], [decomposed], [text]) == Overlap(1, 1)
    assert measure_overlap(["the houses"], ["die Häuser"], [text]) == Overlap(0, 0)


def test_capitals_count_unless_they_are_not_read(tmp_path: Path) -> None:
    text = saved(tmp_path / "text", [("The OX", "Der ÖX")])
    sources, references = ["the OX", "THE ox", "an ox"], ["DER öx", "ein öx", "Der ÖX"]
    assert measure_overlap(sources, references, [text]) == Overlap(0, 0)
    assert measure_overlap(sources, references, [text], lowercase=True) == Overlap(2, 1)


def test_what_is_found_is_read_as_the_table_has_it(tmp_path: Path) -> None:
    pairs = [(f"s{number % 7}", f"t{number}") for number in range(50)]
    text = saved(tmp_path / "text", pairs[:20], pairs[20:])
    read = [pair for batch in tables.read_tables(text) for pair in batch]
    for wanted in ({"s3", "s5", "other"}, {"other"}, {source for source, _ in pairs}):
        found = pairs_with_sources(text, wanted, lowercase=False)
        assert list(found) == [pair for pair in read if pair[0] in wanted]


TRAINING = [("a", "b"), ("a", "c"), ("ä", "ä")]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("text") / "text", TRAINING)


words = st.sampled_from(["a", "b", "c", "ä"])


@given(test=st.lists(st.tuples(words, words), max_size=6))
def test_it_is_what_a_plain_count_gives(test: Pairs, text: Path) -> None:
    counted = measure_overlap([source for source, _ in test], [target for _, target in test], [text])
    assert counted.sources == sum(source in {"a", "ä"} for source, _ in test)
    assert counted.pairs == sum(pair in TRAINING for pair in test)
