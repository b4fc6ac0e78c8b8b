"""The cleaning steps find most noise in a small corpus too. docs/experiments.md has the figures of a larger one."""

from collections import Counter
from dataclasses import replace

import pytest
from measure_noise import kept_by, kept_in, single_steps, table
from noise import CLEAN, KINDS, add_noise

from configs import run_config
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.textbook.generate import textbook_splits


@pytest.fixture(scope="module")
def pairs():
    return list(textbook_splits(seed=3, train_pairs=2100)["train"])


@pytest.fixture(scope="module")
def noisy(pairs):
    return add_noise(pairs, seed=1)


@pytest.fixture(scope="module")
def tokenizer(noisy):
    config = replace(run_config([]).tokenizer, vocabulary_size=1000)
    return train_tokenizer((text for _, pair in noisy for text in pair), config)


def test_noise_is_half_as_much_as_there_is_clean_text(noisy, pairs):
    counts = Counter(kind for kind, _ in noisy)
    assert counts == {CLEAN: 1400} | dict.fromkeys(KINDS, 100)
    assert noisy == add_noise(pairs, seed=1)


def test_crawled_finds_most_noise_and_leaves_what_is_clean(noisy, tokenizer):
    kept = kept_by(run_config(["cleaning=crawled"]).cleaning, noisy, tokenizer)
    assert kept["wrong_language"] <= 10
    assert kept["half_translated"] <= 25
    assert kept["boilerplate"] <= 30  # the first of each of 16 stays
    assert kept["near_duplicates"] <= 15
    assert kept["truncated"] <= 60
    assert kept[CLEAN] >= 0.97 * 1400


def test_the_table_has_a_row_for_each_step_and_a_column_for_each_kind(noisy, tokenizer):
    steps = single_steps(run_config(["cleaning=crawled"]).cleaning)
    few = {name: steps[name] for name in ("drop_broken", "language_margin", "max_ratio")}
    header, _, *rows = table(
        noisy, {key: kept_by(config, noisy, tokenizer) for key, config in few.items()}
    ).split("\n")
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in few]
    assert {row.count("|") for row in (header, *rows)} == {len(KINDS) + 5}


def test_what_was_kept_is_counted_by_its_kind():
    noisy = [("clean", ("a", "b")), ("truncated", ("c ", "d")), ("misaligned", ("a", "b"))]
    assert kept_in([("a", "b"), ("c", "d")], noisy) == {"clean": 1, "truncated": 1}
    assert kept_in([("a", "b"), ("a", "b")], noisy) == {"clean": 1, "misaligned": 1}
