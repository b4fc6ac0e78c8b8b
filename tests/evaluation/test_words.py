from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endeavour.evaluation.words import TrainingText, rows_by_rarest, word_f1_by_frequency, words_of

OCCURRENCES = Counter({"der": 5000, "Hund": 50, "Dackel": 2})

lines = st.lists(st.text("ab cd", max_size=12), min_size=1, max_size=6)


def test_words_are_whole_and_cased_and_without_punctuation() -> None:
    assert words_of("Der T-Shirt-Träger, 3 Äpfel (don't)!") == [
        "Der",
        "T-Shirt-Träger",
        "3",
        "Äpfel",
        "don't",
    ]
    assert words_of(" …! ") == []


def test_the_training_text_counts_words_and_characters() -> None:
    training = TrainingText()
    training.add([("a dog", "ein Hund."), ("the dog", "der Hund")])
    training.add([("a", "ß")])
    assert training.source == Counter(a=2, dog=2, the=1)
    assert training.target["Hund"] == 2
    assert training.target_characters == set("ein Hund.der ß")


def test_a_perfect_output_has_f1_1_in_every_range_that_the_references_have() -> None:
    references = ["der Hund", "der Dackel Waldi"]
    buckets = word_f1_by_frequency(references, references, OCCURRENCES)
    assert [(bucket.lowest, bucket.highest, bucket.words) for bucket in buckets] == [
        (0, 0, 1),
        (1, 4, 1),
        (5, 99, 1),
        (1000, None, 2),
    ]
    assert {bucket.f1 for bucket in buckets} == {1.0}


def test_matches_are_clipped_to_each_sentences_own_counts() -> None:
    (bucket,) = word_f1_by_frequency(["der der der", "Hund"], ["der", "der der"], Counter(der=1, Hund=1))
    assert bucket.f1 == pytest.approx(2 / 7)  # of a precision of 1/4 and a recall of 1/3


def test_a_missed_word_counts_in_its_own_range_only() -> None:
    rare, often = word_f1_by_frequency(["der Hund"], ["der Dackel"], Counter(der=1000, Dackel=1, Hund=999))
    assert (rare.f1, often.f1) == (0, 1)


@given(lines)
def test_the_ranges_part_the_reference_words(references: list[str]) -> None:
    buckets = word_f1_by_frequency(references, references, Counter(a=3, ab=7))
    assert sum(bucket.words for bucket in buckets) == sum(len(words_of(line)) for line in references)


def test_a_line_belongs_to_its_rarest_word() -> None:
    groups = rows_by_rarest(["der Hund", "der Dackel Waldi", "...", "der Hu\u00adnd"], OCCURRENCES)
    assert groups == [(0, 0, [1, 2]), (5, 99, [0, 3])]
