"""Whether systems differ by more than chance: sacreBLEU's paired tests, by some METRICS, against a baseline.

Knows names and lines of text; not where they come from or how results are shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import ne
from typing import cast

from sacrebleu.metrics.base import Metric, Signature
from sacrebleu.significance import PairedTest, Result

from endeavour.evaluation.metrics import BOOTSTRAP_BYTES, METRICS, affordable, check_counts, sacrebleu_seed

TRIAL_BYTES = 10  # of memory that sacreBLEU needs for a trial of randomisation, per sentence
LEVEL = 0.05  # below it a p-value is called significant


@dataclass(frozen=True)
class SystemScore:
    """One system's corpus score (0–100) with its 95% bootstrap interval, and its difference to the baseline.

    A p-value is the probability of a difference at least as large, were the systems equal. That of randomisation is
    two-sided. That of the bootstrap is sacreBLEU's: it compares the samples' absolute differences, less their
    mean, with the one observed, which for clear differences is one side alone, so about half of the other.
    The baseline itself has none.
    """

    system: str
    value: float
    low: float
    high: float
    difference: float
    p_bootstrap: float | None
    p_randomization: float | None

    @property
    def significant(self) -> bool:
        """Whether both tests say so."""
        return max(self.p_bootstrap or 0, self.p_randomization or 0) < LEVEL and self.p_bootstrap is not None


@dataclass(frozen=True)
class MetricTest:
    """One metric over all systems, baseline first, with sacreBLEU's signatures of the two tests."""

    metric: str
    systems: list[SystemScore]
    bootstrap_signature: str
    randomization_signature: str


def paired_tests(
    systems: Sequence[tuple[str, Sequence[str]]],
    references: Sequence[str],
    *,
    bootstrap_samples: int,
    randomization_trials: int,
    seed: int,
    lowercase: bool,
) -> list[MetricTest]:
    """The `compared` METRICS (BLEU and chrF2) of each (name, hypotheses), tested against the first.

    Paired bootstrap resampling: Koehn 2004; approximate randomisation: Riezler & Maxwell 2005; both as
    sacreBLEU computes them, which counts the samples that differ by *more* than the systems do. Where few outputs
    differ, many samples differ by exactly as much, and that count is too small: so outputs that a metric does not
    tell apart (it ignores spaces) get p = 1 here, and with k sentences that it does randomisation's p is
    at least 2^(1-k), the share of its assignments that equal the observed one or its mirror image.

    To limit the memory, there are fewer samples and trials for more than some 20,000 sentences; the signatures say
    how many.

    Args:
        seed: 1 or more (sacreBLEU takes 0 for none).
        lowercase: whether capitals are ignored.

    Raises:
        UserError: the line counts differ, or there are no lines.
    """
    assert seed > 0
    for name, hypotheses in systems:
        check_counts(**{f"hypotheses of {name}": hypotheses, "references": references})
    bootstrap_samples = affordable(bootstrap_samples, len(references), size=BOOTSTRAP_BYTES)
    randomization_trials = affordable(randomization_trials, len(references), size=TRIAL_BYTES)
    bootstrap, bootstrap_signatures = _run("bs", systems, references, bootstrap_samples, seed, lowercase)
    randomized, randomized_signatures = _run("ar", systems, references, randomization_trials, seed, lowercase)
    differing = _differing(systems, references, lowercase)
    tests: list[MetricTest] = []
    for (metric, results), counts in zip(bootstrap.items(), differing, strict=True):
        columns = zip(systems, results, randomized[metric], counts, strict=True)
        scores = [
            _system_score(name, results[0].score, result, other, count)
            for (name, _), result, other, count in columns
        ]
        signatures = str(bootstrap_signatures[metric]), str(randomized_signatures[metric])
        tests.append(MetricTest(metric, scores, *signatures))
    return tests


def _metrics(lowercase: bool) -> dict[str, Metric]:
    return {key: metric.compared(lowercase=lowercase) for key, metric in METRICS.items() if metric.compared}


def _differing(
    systems: Sequence[tuple[str, Sequence[str]]], references: Sequence[str], lowercase: bool
) -> list[list[int]]:
    """For each metric, in how many sentences each system's counts (matches, lengths) are not those of the first."""
    columns: list[list[int]] = []
    for metric in _metrics(lowercase).values():
        # What the paired tests draw from; there is no public access to it.
        counts = [metric._extract_corpus_statistics(lines, [references]) for _, lines in systems]  # pyright: ignore[reportPrivateUsage]
        columns.append([sum(map(ne, theirs, counts[0])) for theirs in counts])
    return columns


def _run(
    kind: str,
    systems: Sequence[tuple[str, Sequence[str]]],
    references: Sequence[str],
    samples: int,
    seed: int,
    lowercase: bool,
) -> tuple[dict[str, list[Result]], dict[str, Signature]]:
    """sacreBLEU's paired test: metric → a result a system, and metric → signature."""
    with sacrebleu_seed(seed):
        # New metrics for each test, whose kind goes into their signatures.
        test = PairedTest(list(systems), _metrics(lowercase), [references], test_type=kind, n_samples=samples)
        signatures, columns = test()
    results = {name: cast(list[Result], columns[name]) for name in columns if name != "System"}
    return results, signatures


def _system_score(
    name: str, baseline: float, bootstrap: Result, randomized: Result, differing: int
) -> SystemScore:
    mean, half_width = float(bootstrap.mean or 0), float(bootstrap.ci or 0)
    p_values = bootstrap.p_value, randomized.p_value
    if p_values[0] is not None and p_values[1] is not None:
        p_values = at_least_by_chance(p_values[0], p_values[1], differing=differing)
    return SystemScore(
        system=name,
        value=float(bootstrap.score),
        low=max(mean - half_width, 0.0),
        high=min(mean + half_width, 100.0),
        difference=float(bootstrap.score - baseline),
        p_bootstrap=p_values[0],
        p_randomization=p_values[1],
    )


def at_least_by_chance(bootstrap: float, randomized: float, *, differing: int) -> tuple[float, float]:
    """p-values of outputs of which `differing` sentences are told apart, see `paired_tests`."""
    return (bootstrap, max(randomized, 2.0 ** (1 - differing))) if differing else (1.0, 1.0)
