import dataclasses
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from small_corpus import HYPOTHESES, REFERENCES

from endeavour.errors import UserError
from endeavour.evaluation import metrics, moses
from endeavour.evaluation.rates import output_rates
from endeavour.evaluation.result import EvaluationResult
from endeavour.evaluation.significance import paired_tests
from endeavour.evaluation.subsets import bleu_by_source_length
from random_corpus import corpus


def _score(hypotheses: list[str], references: list[str], seed: int = 1) -> dict[str, metrics.Score]:
    return metrics.score_corpus(hypotheses, references, bootstrap_samples=100, seed=seed)


def test_the_values_are_sacrebleus_own() -> None:
    scores = _score(HYPOTHESES, REFERENCES)
    expected = {"bleu": BLEU(), "bleu_lowercased": BLEU(lowercase=True), "chrf": CHRF(), "ter": TER()}
    assert list(scores) == list(expected)
    for key, metric in expected.items():
        assert scores[key].value == metric.corpus_score(HYPOTHESES, [REFERENCES]).score


def test_the_tokenized_bleu_is_given_where_it_is_asked_for_and_changes_no_other() -> None:
    plain = _score(HYPOTHESES, REFERENCES)
    scores = metrics.score_corpus(HYPOTHESES, REFERENCES, bootstrap_samples=100, seed=1, tokenized_as="de")
    tokenized = scores.pop("bleu_tokenized")
    assert scores == plain
    assert tokenized.low <= tokenized.value <= tokenized.high
    assert {"nrefs:1", "bs:100", "seed:1", "tok:none", "moses:lc.norm.tok"} <= set(
        tokenized.signature.split("|")
    )
    assert re.search(r"\|sacremoses:\d+\.\d+", tokenized.signature)


def test_the_tokenized_bleu_forgives_case_quotation_marks_and_nothing_else() -> None:
    references = [*REFERENCES, "Er sagt: „Ja, morgen.“"]
    alike = [line.upper() for line in REFERENCES] + ['er  sagt : "ja, morgen."']
    scores = metrics.score_corpus(alike, references, bootstrap_samples=100, seed=1, tokenized_as="de")
    assert scores["bleu_tokenized"].value == pytest.approx(100)
    alike[1] = "Zwei Kinder spielen in Garten."
    scores = metrics.score_corpus(alike, references, bootstrap_samples=100, seed=1, tokenized_as="de")
    assert scores["bleu_tokenized"].value < 98


def test_tokenized_references_are_taken_as_they_stand() -> None:
    def tokenized(references: list[str] | None) -> metrics.Score:
        more = {"tokenized_as": "de", "tokenized_references": references}
        return metrics.score_corpus(HYPOTHESES, REFERENCES, bootstrap_samples=100, seed=1, **more)[
            "bleu_tokenized"
        ]

    ours, theirs = tokenized(None), tokenized(moses.tokenize(REFERENCES, "de"))
    assert theirs == dataclasses.replace(ours, signature=ours.signature + "|references:file")
    assert tokenized(REFERENCES).value < ours.value
    with pytest.raises(UserError, match="5 references, 4 tokenized_references"):
        tokenized(REFERENCES[1:])


def test_only_the_lowercased_bleu_forgives_case() -> None:
    shouted = [line.upper() for line in REFERENCES]
    scores = _score(shouted, REFERENCES)
    assert scores["bleu_lowercased"].value == pytest.approx(100)
    assert scores["bleu"].value < 50


def test_perfect_translations_get_the_best_scores_with_no_interval_left() -> None:
    for key, score in _score(REFERENCES, REFERENCES).items():
        best = 0 if key == "ter" else 100
        assert (score.value, score.low, score.high) == pytest.approx((best, best, best), abs=1e-4)


def test_outputs_without_a_match_are_scored_and_not_refused() -> None:
    scores = _score([""] * len(REFERENCES), REFERENCES)
    assert [scores[key].value for key in ("bleu", "chrf", "ter")] == [0, 0, 100]


def test_resamples_without_any_match_or_reference_word_have_an_interval_too() -> None:
    for hypotheses, references in ((["a b c d e", "x"], ["a b c d e", "y"]), (["a", "b"], ["", "b"])):
        for score in _score(hypotheses, references).values():
            assert score.low <= score.high


def test_the_interval_is_sacrebleus() -> None:
    hypotheses, references = corpus(0.7)
    with metrics.sacrebleu_seed(1):
        theirs = BLEU().corpus_score(hypotheses, [references], n_bootstrap=100)
    ours = _score(hypotheses, references)["bleu"]
    mean, half_width = theirs._mean, theirs._ci
    assert (ours.low, ours.high) == pytest.approx((mean - half_width, mean + half_width))


def test_the_interval_holds_the_value_and_narrows_with_more_sentences() -> None:
    few, many = _score(*corpus(0.7, 40)), _score(*corpus(0.7, 400))
    for key, score in few.items():
        assert score.low < score.value < score.high
        assert many[key].high - many[key].low < score.high - score.low


def test_the_interval_comes_of_the_seed_alone_and_the_value_does_not() -> None:
    lines = corpus(0.7)
    one, again, other = _score(*lines, seed=1), _score(*lines, seed=1), _score(*lines, seed=2)
    assert one == again
    for key in one:
        assert one[key].value == other[key].value
        assert one[key].low != other[key].low


def test_signatures_tell_how_the_score_was_made() -> None:
    scores = _score(HYPOTHESES, REFERENCES, seed=7)
    for score in scores.values():
        assert {"nrefs:1", "bs:100", "seed:7"} <= set(score.signature.split("|"))
        assert "version:" in score.signature
    assert "case:mixed" in scores["bleu"].signature
    assert "case:lc" in scores["bleu_lowercased"].signature


def test_a_large_corpus_gets_as_many_resamples_as_memory_allows_and_says_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hypotheses, references = corpus(0.7, 30)
    for most, samples in ((30 * 50, 50), (30 * 50 + 29, 50), (30 * 1000, 100), (1, 40)):
        monkeypatch.setattr(metrics, "RESAMPLING_MEMORY", 80 * most)
        scores = metrics.score_corpus(hypotheses, references, bootstrap_samples=100, seed=7)
        assert all(f"bs:{samples}" in score.signature.split("|") for score in scores.values())


@pytest.mark.parametrize("before", [None, "99"])
def test_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    if before is not None:
        monkeypatch.setenv("SACREBLEU_SEED", before)
    _score(HYPOTHESES, REFERENCES)
    assert os.environ.get("SACREBLEU_SEED") == before


@settings(max_examples=25)
@given(pairs=st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), min_size=1, max_size=6))
def test_any_text_gets_scores_on_the_scale_inside_their_interval_order(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    scores = metrics.score_corpus(
        hypotheses, references, bootstrap_samples=metrics.MIN_BOOTSTRAP_SAMPLES, seed=1
    )
    for key, score in scores.items():
        assert 0 <= score.low <= score.high
        assert score.value >= 0
        if key != "ter":
            assert score.value <= 100 + 1e-9
            assert score.high <= 100
    assert metrics.corpus_bleu(hypotheses, references) == scores["bleu"].value
    assert metrics.corpus_bleu(hypotheses, references, lowercase=True) == scores["bleu_lowercased"].value


def test_sentence_scores_are_one_each_and_highest_for_the_reference_itself() -> None:
    scores = metrics.sentence_scores(HYPOTHESES, REFERENCES)
    assert len(scores) == len(HYPOTHESES)
    assert scores[3] == pytest.approx(100)
    assert scores[4] == 0
    assert max(scores[:3]) < 100


@pytest.mark.parametrize("references", [[], ["a"], ["a", "b", "c"]])
def test_differing_line_counts_are_refused_with_the_counts(references: list[str]) -> None:
    lines = ["a", "b"]
    drawn = {"bootstrap_samples": 100, "randomization_trials": 100, "seed": 1}
    result = {"title": "t", "scores": {}, "decoding": {}, "model": {}, "bootstrap_samples": 40, "seed": 1}
    for call in (
        lambda: _score(lines, references),
        lambda: metrics.corpus_bleu(lines, references),
        lambda: metrics.sentence_scores(lines, references),
        lambda: output_rates(lines, lines, references),
        lambda: bleu_by_source_length(lines, lines, references),
        lambda: EvaluationResult(sources=lines, hypotheses=lines, references=references, **result),
    ):
        with pytest.raises(UserError, match=f"2 hypotheses, {len(references)} references"):
            call()
    with pytest.raises(UserError, match=f"{len(references)} sources, 2 hypotheses, 2 references"):
        EvaluationResult(sources=references, hypotheses=lines, references=lines, **result)
    with pytest.raises(UserError, match="1 hypotheses of bad, 2 references"):
        paired_tests([("good", lines), ("bad", ["a"])], lines, lowercase=False, **drawn)


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(UserError, match="nothing to score"):
        metrics.corpus_bleu([], [])
