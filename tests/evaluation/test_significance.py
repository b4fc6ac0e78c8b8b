import os

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from endeavour.evaluation import metrics
from endeavour.evaluation.significance import MetricTest, SystemScore, paired_tests
from random_corpus import corpus

SAMPLES, TRIALS = 100, 200


def _test(*outputs: list[str], references: list[str], seed: int = 12345) -> dict[str, MetricTest]:
    systems = [(f"system {number}", lines) for number, lines in enumerate(outputs)]
    drawn = {"bootstrap_samples": SAMPLES, "randomization_trials": TRIALS, "seed": seed}
    tests = paired_tests(systems, references, lowercase=False, **drawn)
    return {test.metric: test for test in tests}


def test_scores_are_sacrebleus_and_the_first_system_is_the_baseline() -> None:
    worse, references = corpus(0.5)
    better, _ = corpus(0.9)
    tests = _test(worse, better, references=references)
    assert list(tests) == ["BLEU", "chrF2"]
    for name, metric in (("BLEU", BLEU()), ("chrF2", CHRF())):
        baseline, other = tests[name].systems
        assert baseline.value == metric.corpus_score(worse, [references]).score
        assert other.value == metric.corpus_score(better, [references]).score
        assert other.difference == other.value - baseline.value
        assert (baseline.difference, baseline.p_bootstrap, baseline.p_randomization) == (0, None, None)
        assert not baseline.significant
        assert baseline.low < baseline.value < baseline.high


def test_a_clearly_better_system_is_significantly_better_and_swapping_flips_the_sign() -> None:
    worse, references = corpus(0.5)
    better, _ = corpus(0.9)
    there, back = _test(worse, better, references=references), _test(better, worse, references=references)
    for name, test in there.items():
        assert test.systems[1].significant
        assert test.systems[1].difference > 5
        assert back[name].systems[1].difference == -test.systems[1].difference
        assert back[name].systems[1].significant
        assert test.systems[1].p_randomization == pytest.approx(1 / (TRIALS + 1))


def test_equally_good_systems_are_not_told_apart() -> None:
    one, references = corpus(0.7, seed=5)
    other, _ = corpus(0.7, seed=6)
    for test in _test(one, other, references=references).values():
        assert not test.systems[1].significant


def test_the_same_outputs_again_differ_by_nothing_with_p_1() -> None:
    outputs, references = corpus(0.7)
    for test in _test(outputs, list(outputs), references=references).values():
        again = test.systems[1]
        assert (again.difference, again.p_bootstrap, again.p_randomization) == (0, 1, 1)


@pytest.mark.parametrize("differing", [1, 2, 4])
def test_a_few_differing_sentences_are_never_called_significant(differing: int) -> None:
    # Every assignment of k sentences is as extreme as the observed one with probability 2^(1-k) at least.
    outputs, references = corpus(0.5)
    better = [*references[:differing], *outputs[differing:]]
    for test in _test(outputs, better, references=references).values():
        p_value = test.systems[1].p_randomization
        assert p_value is not None
        assert p_value >= 2.0 ** (1 - differing)
        assert not test.systems[1].significant


@pytest.mark.parametrize("changed", [0, 1])
def test_what_a_metric_does_not_see_makes_no_difference_significant(changed: int) -> None:
    outputs, references = corpus(0.5)
    outputs = [f"{line}." for line in outputs]
    spaced = [f"{line[:-1]} ." for line in outputs]
    spaced[:changed] = [f"{line}." for line in references[:changed]]
    for test in _test(outputs, spaced, references=references).values():
        other = test.systems[1]
        assert (other.difference == 0) == (changed == 0)
        assert other.p_randomization == 1
        assert not other.significant


@pytest.mark.parametrize(("bootstrap", "randomization"), [(0.2, 0.01), (0.01, 0.2), (0.01, 0.01)])
def test_significant_is_what_both_tests_call_so(bootstrap: float, randomization: float) -> None:
    score = SystemScore("a", 1.0, 0.0, 2.0, 1.0, bootstrap, randomization)
    assert score.significant == (max(bootstrap, randomization) < 0.05)


def test_each_system_is_tested_against_the_first() -> None:
    worse, references = corpus(0.5)
    better, _ = corpus(0.9)
    for test in _test(worse, better, list(worse), references=references).values():
        assert [score.significant for score in test.systems] == [False, True, False]


def test_results_come_of_the_seed_and_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "99")
    one, references = corpus(0.7, seed=5)
    other, _ = corpus(0.75, seed=6)
    first, again = (_test(one, other, references=references, seed=7) for _ in range(2))
    assert first == again
    assert first != _test(one, other, references=references, seed=8)
    assert os.environ["SACREBLEU_SEED"] == "99"


def test_signatures_name_the_test_its_size_and_its_seed() -> None:
    outputs, references = corpus(0.7)
    for test in _test(outputs, outputs, references=references, seed=7).values():
        bootstrap, randomization = (
            set(signature.split("|"))
            for signature in (test.bootstrap_signature, test.randomization_signature)
        )
        assert {"nrefs:1", f"bs:{SAMPLES}", "seed:7", "case:mixed"} <= bootstrap
        assert {"nrefs:1", f"ar:{TRIALS}", "seed:7", "case:mixed"} <= randomization


def test_scores_without_capitals_are_sacrebleus_too() -> None:
    outputs, references = corpus(0.7)
    loud = [line.upper() for line in outputs]
    for lines in (loud, [line.lower() for line in loud]):
        bleu, chrf = paired_tests(
            [("a", lines), ("b", references)],
            references,
            bootstrap_samples=SAMPLES,
            randomization_trials=TRIALS,
            seed=1,
            lowercase=True,
        )
        for test, metric in ((bleu, BLEU(lowercase=True)), (chrf, CHRF(lowercase=True))):
            assert test.systems[0].value == metric.corpus_score(loud, [references]).score > 0
            assert "case:lc" in test.bootstrap_signature.split("|")
            assert "case:lc" in test.randomization_signature.split("|")


def test_outputs_without_a_match_are_tested_too() -> None:
    outputs, references = corpus(0.7)
    for test in _test(outputs, [""] * len(outputs), references=references).values():
        assert test.systems[1].value == 0
        assert test.systems[1].significant


def test_large_test_sets_get_as_many_samples_and_trials_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hypotheses, references = corpus(0.7)
    monkeypatch.setattr(metrics, "RESAMPLING_MEMORY", 80 * 60 * 50)
    one, *_ = paired_tests(
        [("a", hypotheses), ("b", references)],
        references,
        bootstrap_samples=100,
        randomization_trials=1000,
        seed=1,
        lowercase=False,
    )
    assert "bs:50" in one.bootstrap_signature.split("|")
    assert "ar:400" in one.randomization_signature.split("|")
