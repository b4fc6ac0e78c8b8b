"""The choice among candidates, against sacreBLEU's own sentence scores taken one by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from endeavour.decoding.minimum_bayes_risk import most_useful, pairwise

METRICS = {"bleu": BLEU(effective_order=True), "chrf": CHRF()}
UTILITY = st.sampled_from(sorted(METRICS))

# Few words, so that there is something in common; punctuation that 13a tears off; nothing at all.
SENTENCES = st.one_of(
    st.lists(
        st.sampled_from(["der", "Hund", "sieht", "den", "alten", "Mann", "3,5", "(oft)", "Ja!", "&quot;"]),
        max_size=14,
    ).map(" ".join),
    st.text("ab .ä", max_size=8),
)


@settings(max_examples=150)
@given(st.lists(SENTENCES, min_size=1, max_size=5), UTILITY)
def test_utilities_are_sacrebleus_sentence_scores(texts: list[str], utility: str) -> None:
    metric = METRICS[utility]
    found = pairwise(texts, utility)
    assert found.shape == (len(texts), len(texts))
    for hypothesis, row in zip(texts, found, strict=True):
        for reference, value in zip(texts, row, strict=True):
            naive = metric.sentence_score(hypothesis, [reference]).score
            assert value == pytest.approx(naive, rel=1e-9, abs=1e-9)


@settings(max_examples=80)
@given(
    st.lists(st.tuples(SENTENCES, st.integers(1, 3)), min_size=1, max_size=6).flatmap(
        lambda rows: st.tuples(st.just(rows), st.permutations(rows))
    ),
    UTILITY,
)
def test_the_order_of_the_candidates_does_not_matter(
    orders: tuple[list[tuple[str, int]], list[tuple[str, int]]], utility: str
) -> None:
    one, other = (most_useful([text for text, _ in rows], [n for _, n in rows], utility) for rows in orders)
    assert one == other


@settings(max_examples=80)
@given(st.lists(st.tuples(SENTENCES, st.integers(1, 4)), min_size=1, max_size=5), UTILITY)
def test_a_weight_is_a_number_of_times(rows: list[tuple[str, int]], utility: str) -> None:
    weighted = most_useful([text for text, _ in rows], [float(times) for _, times in rows], utility)
    repeated = [text for text, times in rows for _ in range(times)]
    assert weighted == most_useful(repeated, [0.3] * len(repeated), utility)
    assert len(weighted) == len({text for text, _ in rows})


@settings(max_examples=80)
@given(st.lists(SENTENCES, min_size=1, max_size=5, unique=True), UTILITY)
def test_values_are_expected_utilities_the_highest_first(texts: list[str], utility: str) -> None:
    weights = [1.0 + place for place in range(len(texts))]
    ranked = most_useful(texts, weights, utility)
    values = [value for _, value in ranked]
    assert values == sorted(values, reverse=True)
    for text, value in ranked:
        scores = [METRICS[utility].sentence_score(text, [reference]).score for reference in texts]
        mean = sum(score * weight for score, weight in zip(scores, weights, strict=True)) / sum(weights)
        assert value == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("utility", sorted(METRICS))
def test_what_equals_most_of_the_others_wins(utility: str) -> None:
    common = "Ein Hund läuft über die Wiese ."
    others = ["Zwei Katzen schlafen .", "Der Mann liest heute Zeitung .", "Ein Kind spielt Ball ."]
    texts = [others[0], common, *others[1:], common, common, common]
    assert most_useful(texts, [1.0] * len(texts), utility)[0][0] == common


@pytest.mark.parametrize("utility", sorted(METRICS))
def test_what_is_like_all_the_others_beats_what_is_most_probable(utility: str) -> None:
    probable = "Dort drüben steht jetzt niemand ."
    middle = "Ein alter Hund läuft über die Wiese ."
    texts = [probable, middle, "Ein Hund läuft über die Wiese .", "Ein alter Hund läuft über eine Wiese ."]
    assert most_useful(texts, [0.3, 0.2, 0.25, 0.25], utility)[0][0] == middle
    assert most_useful(texts, [1.0, 0.01, 0.01, 0.01], utility)[0][0] == probable


def test_of_equally_useful_texts_the_one_of_more_weight_comes_first_then_the_alphabets() -> None:
    """Two that say nothing are of no use to each other."""
    for weights, expected in (([2.0, 1.0], [" ", ""]), ([1.0, 2.0], ["", " "]), ([1.0, 1.0], ["", " "])):
        assert [text for text, _ in most_useful([" ", ""], weights, "bleu")] == expected


def test_the_space_after_a_sentence_is_none_of_its_words() -> None:
    texts = ["der Hund-\n", "der Hund", " der Hund-"]
    for text, row in zip(texts, pairwise(texts, "bleu"), strict=True):
        naive = [BLEU(effective_order=True).sentence_score(text, [other]).score for other in texts]
        assert row.tolist() == pytest.approx(naive)
