"""Whether systems differ by more than chance in the mean of scores that each sentence has, such as COMET's.

The tests of `significance`, for a score that is a mean: the paired bootstrap (Koehn 2004) with sacreBLEU's p-value, and
approximate randomisation (Riezler & Maxwell 2005). Knows names and numbers.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sacrebleu.significance import estimate_ci

from endeavour.evaluation.metrics import affordable
from endeavour.evaluation.significance import TRIAL_BYTES, MetricTest, SystemScore, at_least_by_chance

RESAMPLE_BYTES = 16  # of memory for a resample, per sentence
# Sums of the same numbers in another order differ in their last digits.
ROUNDING = 1e-9

Numbers = NDArray[np.float64]


def paired_mean_tests(
    metric: str,
    systems: Sequence[tuple[str, Sequence[float]]],
    *,
    made: str,
    bootstrap_samples: int,
    randomization_trials: int,
    seed: int,
) -> MetricTest:
    """Each (name, score of each sentence) tested against the first; `made` is appended to the signatures.

    For large test sets there are fewer samples and trials, as in `significance.paired_tests`.
    """
    scores = [np.asarray(values, np.float64) for _, values in systems]
    count = len(scores[0])
    samples = affordable(bootstrap_samples, count, size=RESAMPLE_BYTES)
    trials = affordable(randomization_trials, count, size=TRIAL_BYTES)
    resampled = [resampled_means(values, samples, seed) for values in scores]
    results: list[SystemScore] = []
    for number, ((name, _), values, means) in enumerate(zip(systems, scores, resampled, strict=True)):
        middle, half_width = estimate_ci(means)
        difference = float(values.mean() - scores[0].mean())
        p_values = None, None
        if number:
            p_values = at_least_by_chance(
                _bootstrap_p(means - resampled[0], abs(difference)),
                _randomization_p(values - scores[0], trials, seed),
                differing=int(np.count_nonzero(values != scores[0])),
            )
        results.append(
            SystemScore(
                name, float(values.mean()), middle - half_width, middle + half_width, difference, *p_values
            )
        )
    return MetricTest(metric, results, f"bs:{samples}|seed:{seed}|{made}", f"ar:{trials}|seed:{seed}|{made}")


def resampled_means(values: Numbers, samples: int, seed: int) -> Numbers:
    """The means of `samples` resamples of sentences; of the same number of sentences always the same ones are drawn."""
    rows = np.random.default_rng(seed).choice(len(values), size=(samples, len(values)), replace=True)
    return values[rows].mean(axis=1)


def _bootstrap_p(differences: Numbers, observed: float) -> float:
    """The share of resamples whose difference, less the mean of all, is larger than the one observed."""
    sizes = np.abs(differences)
    return _share(sizes - sizes.mean() > observed * (1 + ROUNDING))


def _randomization_p(differences: Numbers, trials: int, seed: int) -> float:
    """The share of trials, each swapping the systems' scores of some sentences, with a larger difference."""
    drawn = np.random.default_rng(seed).integers(2, size=(trials, len(differences)), dtype=np.int8)
    swapped = np.abs((2 * drawn - 1) @ differences) / len(differences)
    return _share(swapped > abs(differences.mean()) * (1 + ROUNDING))


def _share(larger: NDArray[np.bool_]) -> float:
    return float((larger.sum() + 1) / (len(larger) + 1))
