"""Paired tests of means: sacreBLEU's p-values, of a metric that is a mean."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from sacrebleu.metrics.base import Metric, Score
from sacrebleu.significance import PairedTest

from endeavour.evaluation.mean_tests import paired_mean_tests
from endeavour.evaluation.metrics import sacrebleu_seed
from endeavour.evaluation.significance import MetricTest

SAMPLES, TRIALS, SEED = 200, 400, 12345


class Mean(Metric):
    """Of hypotheses that are numbers."""

    def _extract_corpus_statistics(self, hypotheses: Sequence[str], references: object) -> list[list[float]]:
        self.num_refs = 1
        return [[float(line), 1.0] for line in hypotheses]

    def _aggregate_and_compute(self, stats: Any) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])

    def _compute_score_from_stats(self, stats: Any) -> Score:
        return Score("Mean", stats[0] / stats[1])

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: object) -> dict[str, Any]:
        return {}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: object) -> list[Any]:
        return []


def numbers(mean: float, seed: int, count: int = 80) -> list[float]:
    """Multiples of 1/8, so that every sum is exact."""
    draw = random.Random(seed)
    return [round(8 * draw.gauss(mean, 10)) / 8 for _ in range(count)]


def compared(*systems: list[float], seed: int = SEED) -> MetricTest:
    named = [(f"system {number}", values) for number, values in enumerate(systems)]
    return paired_mean_tests(
        "COMET", named, made="x:1", bootstrap_samples=SAMPLES, randomization_trials=TRIALS, seed=seed
    )


@pytest.mark.parametrize("other", [70.5, 72.0, 80.0])
def test_the_p_values_are_sacrebleus(other: float) -> None:
    systems = numbers(70, 1), numbers(other, 2)
    ours = compared(*systems).systems[1]
    lines = [(f"system {number}", list(map(str, values))) for number, values in enumerate(systems)]
    p_values: list[float] = []
    for kind, samples in (("bs", SAMPLES), ("ar", TRIALS)):
        with sacrebleu_seed(SEED):
            test = PairedTest(lines, {"Mean": Mean()}, [[]], test_type=kind, n_samples=samples)
            results: Any = test()[1]["Mean"]
        assert ours.value == pytest.approx(results[1].score)
        p_values.append(results[1].p_value)
    assert ours.p_bootstrap == pytest.approx(p_values[0], abs=0.02)
    assert ours.p_randomization == pytest.approx(p_values[1], abs=0.06)  # of other draws


def test_a_clear_difference_is_significant_and_flips_its_sign() -> None:
    worse, better = numbers(60, 1), numbers(80, 2)
    there, back = compared(worse, better).systems[1], compared(better, worse).systems[1]
    assert there.difference == -back.difference > 10
    assert there.significant
    assert back.significant
    assert there.p_randomization == pytest.approx(1 / (TRIALS + 1))


def test_the_baseline_and_equal_systems() -> None:
    values = numbers(70, 1)
    test = compared(values, list(values), numbers(70, 3))
    baseline, same, equal = test.systems
    assert (baseline.difference, baseline.p_bootstrap, baseline.p_randomization) == (0, None, None)
    assert (same.difference, same.p_bootstrap, same.p_randomization) == (0, 1, 1)
    assert not equal.significant
    assert baseline.low < baseline.value < baseline.high
    assert test.bootstrap_signature == f"bs:{SAMPLES}|seed:{SEED}|x:1"
    assert test.randomization_signature == f"ar:{TRIALS}|seed:{SEED}|x:1"


@pytest.mark.parametrize("differing", [1, 2, 4])
def test_a_few_differing_sentences_are_never_called_significant(differing: int) -> None:
    values = numbers(70, 1)
    better = [value + 20 * (row < differing) for row, value in enumerate(values)]
    result = compared(values, better).systems[1]
    assert result.p_randomization is not None
    assert result.p_randomization >= 2.0 ** (1 - differing)
    assert not result.significant


def test_the_result_comes_of_the_seed() -> None:
    systems = numbers(70, 1), numbers(72, 2)
    assert compared(*systems) == compared(*systems)
    assert compared(*systems) != compared(*systems, seed=1)
