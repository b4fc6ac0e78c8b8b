"""BLEU by source length and by label: every sentence counts once, and the figures are sacreBLEU's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from small_corpus import HYPOTHESES, REFERENCES

from endeavour.evaluation.metrics import corpus_bleu, score_corpus
from endeavour.evaluation.subsets import (
    FEW_FOR_INTERVAL,
    bleu_by_label,
    bleu_by_source_length,
    group_rows,
    part_bleu,
)

lines = st.lists(st.text("abAB .,", max_size=12), min_size=1, max_size=6)


def test_length_buckets_part_the_corpus() -> None:
    sources = [" ".join(["word"] * words) for words in (6, 10, 11, 1, 61)]
    buckets = bleu_by_source_length(sources, HYPOTHESES, REFERENCES)
    assert [(bucket.label, bucket.sentences) for bucket in buckets] == [
        ("1–5", 1),
        ("6–10", 2),
        ("11–15", 1),
        ("61+", 1),
    ]
    # “Ja.” alone is too short for any 4-gram; it is right all the same.
    assert buckets[0].bleu == pytest.approx(100)
    assert buckets[0].length_ratio == 1
    assert buckets[-1].length_ratio < 1


def test_empty_buckets_are_left_out_and_a_single_one_is_the_corpus() -> None:
    (bucket,) = bleu_by_source_length(["a few words"] * len(REFERENCES), HYPOTHESES, REFERENCES)
    assert bucket.sentences == len(REFERENCES)
    assert bucket.bleu == corpus_bleu(HYPOTHESES, REFERENCES)


@given(sources=lines)
def test_every_sentence_falls_into_one_bucket(sources: list[str]) -> None:
    buckets = bleu_by_source_length(sources, sources, sources)
    assert sum(bucket.sentences for bucket in buckets) == len(sources)


def test_rows_are_grouped_by_ranges_that_include_both_ends() -> None:
    assert group_rows([0, 5, 1, 9, 4], [0, 4, 6]) == [
        (0, 0, [0]),
        (1, 4, [2, 4]),
        (5, 6, [1]),
        (7, None, [3]),
    ]


def test_a_parts_bleu_does_not_ask_for_longer_outputs_than_there_are() -> None:
    assert part_bleu(["Ja."], ["Ja."]) == pytest.approx(100)
    assert part_bleu(HYPOTHESES, REFERENCES) == pytest.approx(corpus_bleu(HYPOTHESES, REFERENCES))


def test_each_label_has_the_bleu_of_its_own_sentences_the_largest_first() -> None:
    labels = ["news", "talk", "news", "talk", "talk"]
    scores = bleu_by_label(HYPOTHESES, REFERENCES, labels, bootstrap_samples=40, seed=1)
    assert [(score.label, score.sentences) for score in scores] == [("talk", 3), ("news", 2)]
    for score in scores:
        rows = [row for row, label in enumerate(labels) if label == score.label]
        expected = BLEU(effective_order=True).corpus_score(
            [HYPOTHESES[row] for row in rows], [[REFERENCES[row] for row in rows]]
        )
        assert score.bleu == expected.score
        assert (score.low, score.high) == (None, None)


def test_a_label_has_an_interval_where_there_are_enough_sentences_for_one() -> None:
    many = FEW_FOR_INTERVAL // len(REFERENCES)
    hypotheses, references = HYPOTHESES * (many + 1), REFERENCES * (many + 1)
    labels = ["many"] * FEW_FOR_INTERVAL + ["few"] * len(REFERENCES)
    enough, few = bleu_by_label(hypotheses, references, labels, bootstrap_samples=100, seed=1)
    assert (enough.label, few.low) == ("many", None)
    whole = score_corpus(HYPOTHESES * many, REFERENCES * many, bootstrap_samples=100, seed=1)["bleu"]
    assert (enough.bleu, enough.low, enough.high) == pytest.approx((whole.value, whole.low, whole.high))
    assert whole.low < whole.high


@given(lines, st.data())
def test_every_sentence_has_one_label(sources: list[str], data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.sampled_from("ab"), min_size=len(sources), max_size=len(sources)))
    scores = bleu_by_label(sources, sources, labels, bootstrap_samples=40, seed=1)
    assert sum(score.sentences for score in scores) == len(sources)
