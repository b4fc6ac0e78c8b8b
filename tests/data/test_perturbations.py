"""What each perturbation alters and what it leaves, on any text and on sentences that a reader can judge."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endeavour.data.perturbations import (
    PERTURBATIONS,
    Perturbation,
    copy_name,
    copy_of,
    draw_for,
    perturbed,
)
from endeavour.directions import Language

HOW = st.sampled_from(PERTURBATIONS)
TEXT = st.text(st.sampled_from("abßäÜ EÉñ.!?… ,'7<{}>%@/-\u00a0\t"), max_size=40)
LANGUAGE = st.sampled_from(["en", "de"])


def altered(source: str, how: Perturbation, language: Language = "en", target: str = "x.", seed: int = 1):
    pair = source, target
    return perturbed(pair, how, language, draw_for(pair, how, seed))


def words(text: str) -> int:
    return len(text.split())


@given(TEXT, TEXT, HOW, LANGUAGE, st.integers(0, 3))
def test_a_copy_is_a_function_of_pair_and_seed_and_has_as_many_words(source, target, how, language, seed):
    copy = altered(source, how, language, target, seed)
    assert copy == altered(source, how, language, target, seed)
    if how not in (
        "no_final_punctuation",
        "placeholders",
    ):  # " . " may be a word, and a placeholder is one more
        assert list(map(words, copy)) == [words(source), words(target)]
    assert [bool(text.strip()) for text in copy] == [bool(text.strip()) for text in (source, target)]


@given(TEXT, TEXT, LANGUAGE)
def test_all_but_typing_errors_done_twice_are_done_once(source, target, language):
    for how in PERTURBATIONS:
        if how != "typos":
            once = altered(source, how, language, target)
            assert altered(once[0], how, language, once[1]) == once


@given(TEXT, LANGUAGE, st.integers(0, 9))
def test_typing_errors_alter_words_of_two_letters_or_more_and_at_least_one(source, language, seed):
    (copy, target) = altered(source, "typos", language, seed=seed)
    assert target == "x."
    outside = re.sub(r"</?[A-Za-z][^<>]*>|\{[^{}]*\}|%[A-Za-z]\b|(?<!\S)\S*(@|://)\S*", "", source)
    if re.search(r"[^\W\d_]{2}", outside):
        assert copy != source
    if not re.search(r"[^\W\d_]{2}", source):
        assert copy == source


def test_about_one_word_in_five_is_mistyped_each_time_by_one_key():
    mistyped = total = 0
    kinds = set()
    for number in range(500):
        line = f"the quick brown fox jumps over the lazy dog again and again {number}"
        copy, _ = altered(line, "typos")
        for one, other in zip(line.split(), copy.split(), strict=True):
            total += one.isalpha()
            mistyped += one != other
            if one != other:
                longer = len(other) - len(one)
                assert longer in (-1, 0, 1)
                kinds.add((longer, sorted(one) == sorted(other)))
    assert 0.17 < mistyped / total < 0.23
    assert kinds == {(-1, False), (1, False), (0, True), (0, False)}


def test_wrong_keys_are_beside_the_right_ones_of_the_sources_keyboard():
    wrong = {
        language: {
            copy[1]
            for seed in range(400)
            if len(copy := altered("zz", "typos", language, seed=seed)[0]) == 2 and copy[0] == "z"
        }
        for language in ("en", "de")
    }
    assert wrong == {"en": set("asx"), "de": set("tugh")}


@pytest.mark.parametrize(
    ("how", "language", "pair", "expected"),
    [
        ("upper_case", "en", ("A street, no?", "Eine Straße, ja?"), ("A STREET, NO?", "EINE STRASSE, JA?")),
        (
            "title_case",
            "en",
            ("he doesn't – well-known", "Er tut's"),
            ("He Doesn't – Well-Known", "Er tut's"),
        ),
        ("no_final_punctuation", "en", ("Is it so?! ", "Ist es so … ?"), ("Is it so", "Ist es so")),
        ("no_final_punctuation", "en", ("A list:", "Eine Liste."), ("A list:", "Eine Liste.")),
        ("no_final_punctuation", "en", ("...", "…"), ("...", "…")),
        ("no_umlauts", "de", ("Über ÄRZTE, Größe, MAẞ!", "ä"), ("Ueber AERZTE, Groesse, MASS!", "ä")),
        ("no_umlauts", "de", ("U\u0308bel", "x"), ("Uebel", "x")),
    ],
)
def test_sentences(how, language, pair, expected):
    assert altered(pair[0], how, language, pair[1]) == expected


@pytest.mark.parametrize("how", ["upper_case", "title_case", "typos", "no_umlauts"])
@pytest.mark.parametrize(
    "kept", ["<b class='grün'>", "</i>", "{größe}", "%s", "für@example.org", "https://example.org/über", "www.grün.de"]
)  # fmt: skip
def test_tags_placeholders_and_addresses_stay(how, kept):
    for seed in range(20):
        copy, _ = altered(f"für alle {kept} für alle", how, "de", seed=seed)
        assert copy != f"für alle {kept} für alle"
        assert kept in copy


def test_the_name_of_a_copy_tells_what_it_is_of():
    for how in PERTURBATIONS:
        assert copy_of(copy_name("news14", how)) == ("news14", how)
    assert copy_of("test_unseen") == ("test_unseen", None)
    assert copy_of("wmt.typo") == ("wmt.typo", None)
