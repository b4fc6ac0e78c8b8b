"""Properties of the textbook corpus: its splits, its lexicon and the shape of its sentences."""

import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from endeavour.data.textbook import entries, german, textbook_splits
from endeavour.data.textbook.draw import Draw
from endeavour.data.textbook.entries import load_lexicon, read_table
from endeavour.data.textbook.generate import held_out
from endeavour.data.textbook.sentences import CONSTRUCTIONS, draw_sentence
from endeavour.data.textbook.trees import words_of
from endeavour.errors import UserError

Splits = dict[str, list[tuple[str, str]]]

TRAIN_PAIRS = 34_000
EVALUATION = ("validation", "test", "test_unseen")


def drawn(seed: int, train_pairs: int) -> Splits:
    return {name: list(pairs) for name, pairs in textbook_splits(seed, train_pairs).items()}


@pytest.fixture(scope="module")
def splits() -> Splits:
    return drawn(1, TRAIN_PAIRS)


@pytest.fixture(scope="module")
def texts(splits: Splits) -> tuple[str, str]:
    """All English and all German training text."""
    english, german = zip(*splits["train"], strict=True)
    return "\n".join(english), "\n".join(german)


def test_sizes(splits: Splits) -> None:
    assert {name: len(pairs) for name, pairs in splits.items()} == {
        "train": TRAIN_PAIRS,
        "validation": 1000,
        "test": 1000,
        "test_unseen": 1000,
    }


def test_same_seed_same_pairs() -> None:
    assert drawn(3, 300) == drawn(3, 300)
    assert drawn(3, 300) != drawn(4, 300)


def test_same_pairs_in_another_process() -> None:
    code = "from endeavour.data.textbook import textbook_splits; print(list(textbook_splits(5, 40)['train']))"
    command = [sys.executable, "-c", code]
    other = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    assert other.strip() == str(drawn(5, 40)["train"])


def test_shorter_training_split_is_the_beginning_of_a_longer_one(splits: Splits) -> None:
    short = drawn(1, 500)
    assert short["train"] == splits["train"][:500]
    assert all(short[name] == splits[name] for name in EVALUATION)


def test_training_pairs_are_distinct(splits: Splits) -> None:
    sources = [source for source, _ in splits["train"]]
    assert len(set(sources)) == len(sources)


def test_english_decides_german(splits: Splits) -> None:
    """No English sentence has two translations, in whatever split."""
    translations: dict[str, str] = {}
    for pairs in splits.values():
        for source, target in pairs:
            assert translations.setdefault(source, target) == target


def test_no_sentence_stands_in_two_splits(splits: Splits) -> None:
    names = list(splits)
    for side in (0, 1):
        sentences = {name: {pair[side] for pair in splits[name]} for name in names}
        for number, name in enumerate(names):
            for other in names[number + 1 :]:
                assert not sentences[name] & sentences[other]


def test_unseen_combinations_are_never_in_training(splits: Splits) -> None:
    """Judged from the text alone, by the sentences of the pattern "Die NOUN ist ADJECTIVE."."""
    lexicon = load_lexicon()
    nouns = {noun.german for noun in lexicon.nouns}
    adjectives = {word.german for word in lexicon.adjectives}
    pattern = re.compile(r"^(?:Der|Die|Das) (\S+) ist (?:sehr |zu |ziemlich |nicht )?(\S+)\.$")

    def combinations(name: str) -> set[tuple[str, str]]:
        found = (pattern.match(target) for _, target in splits[name])
        return {(m[1], m[2]) for m in found if m and m[1] in nouns and m[2] in adjectives}

    seen = combinations("train") | combinations("validation") | combinations("test")
    assert len(seen) > 100
    assert combinations("test_unseen")
    assert not any(held_out(noun, "sein", adjective) for noun, adjective in seen)
    assert all(held_out(noun, "sein", adjective) for noun, adjective in combinations("test_unseen"))


def test_words_of_a_tree_are_those_it_is_drawn_from() -> None:
    """Every lexicon noun that stands in its dictionary form in the German text is among the words of the tree."""
    also_other_words = {"Frau", "Uhr", "Reise", "Koch"}  # Frau Weber, um drei Uhr, Reise bald!, Koch das Ei!
    nouns = {noun.german for noun in load_lexicon().nouns} - also_other_words
