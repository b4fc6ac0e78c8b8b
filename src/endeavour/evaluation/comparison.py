"""Two or more systems' translations of one test set, compared: from lines of text to figures.

Knows sentences, scores and training words; not which folders they lie in, and not how a report looks. The first
system is the baseline, against which all others are tested.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import pydantic.dataclasses
from pydantic import Field

from endeavour.evaluation.comet import LABEL, Comet, comet_signature
from endeavour.evaluation.config import MIN_BOOTSTRAP_SAMPLES
from endeavour.evaluation.mean_tests import paired_mean_tests
from endeavour.evaluation.metrics import sentence_scores
from endeavour.evaluation.rates import OutputRates, anomalies, output_rates
from endeavour.evaluation.significance import MetricTest, paired_tests
from endeavour.evaluation.subsets import RowGroup, part_bleu, range_label, rows_by_length
from endeavour.evaluation.words import TrainingText, rows_by_rarest, word_f1_by_frequency
from endeavour.settings import STRICT

REFERENCES = "references"  # as a column beside the systems


@pydantic.dataclasses.dataclass(kw_only=True, config=STRICT)
class CompareConfig:
    """Values and their meaning: conf/compare.yaml."""

    bootstrap_samples: Annotated[int, Field(ge=MIN_BOOTSTRAP_SAMPLES)]  # fewer make no 95% interval
    randomization_trials: Annotated[int, Field(ge=1)]
    seed: Annotated[int, Field(ge=1)]  # sacreBLEU takes 0 for none
    sentences: Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class System:
    """One run's translations, or another system's, and what is known of how they were made, to be shown."""

    name: str
    hypotheses: Sequence[str]
    settings: Mapping[str, object]
    comet: Comet | None = None


@dataclass(frozen=True)
class Slice:
    """A part of the test set: which, how many sentences (or reference words), and each system's figure there."""

    label: str
    count: int
    values: list[float]


@dataclass(frozen=True)
class Difference:
    """A sentence on which two systems differ: line number from 1, texts, and both sentence chrF2 (0–100)."""

    line: int
    source: str
    reference: str
    baseline: str
    hypothesis: str
    baseline_chrf: float
    chrf: float


@dataclass(frozen=True)
class PairwiseResult:
    """One system against the baseline, sentence by sentence, by sentence chrF2."""

    system: str
    better: int
    equal: int
    worse: int
    most_better: list[Difference]
    most_worse: list[Difference]


@dataclass(frozen=True)
class Comparison:
    title: str
    systems: list[str]  # baseline first
    sentences: int
    tests: list[MetricTest]
    bleu_by_source_length: list[Slice]
    # By occurrences in the training text; None without one.
    bleu_by_rarest_source_word: list[Slice] | None
    word_f1_by_frequency: list[Slice] | None
    pairwise: list[PairwiseResult]  # of every system but the baseline
    rates: dict[str, OutputRates]  # of each system, and of the references
    anomalies: dict[str, list[str]]  # system → names of its rates that are not normal
    settings: dict[str, Mapping[str, object]]
    notes: list[str]


def compare_systems(
    systems: Sequence[System],
    *,
    title: str,
    sources: Sequence[str],
    references: Sequence[str],
    training: TrainingText | None,
    config: CompareConfig,
    notes: Sequence[str],
    lowercase: bool,
) -> Comparison:
    """Every figure of the comparison; the same input gives the same result.

    `training` is what the systems learned from, in normal form; without it there are no figures by word frequency and
    none of unseen characters. `notes` are passed on. `lowercase` says that all text is in small letters, which goes
    into the signatures.

    Raises:
        UserError: the line counts differ, or there are no lines.
    """
    tests = paired_tests(
        [(system.name, system.hypotheses) for system in systems],
        references,
        bootstrap_samples=config.bootstrap_samples,
        randomization_trials=config.randomization_trials,
        seed=config.seed,
        lowercase=lowercase,
    )
    known = None if training is None else training.target_characters
    columns = {system.name: system.hypotheses for system in systems} | {REFERENCES: references}
    rates = {
        name: output_rates(sources, lines, references, known_characters=known)
        for name, lines in columns.items()
    }
    normal = rates[REFERENCES]
    names = [system.name for system in systems]
    return Comparison(
        title=title,
        systems=names,
        sentences=len(references),
        tests=[*tests, *_comet_tests(systems, config)],
        bleu_by_source_length=_bleu_of_groups(systems, references, rows_by_length(sources)),
        bleu_by_rarest_source_word=training
        and _bleu_of_groups(systems, references, rows_by_rarest(sources, training.source)),
        word_f1_by_frequency=training and _word_f1(systems, references, training),
        pairwise=_pairwise(systems, sources, references, config.sentences),
        rates=rates,
        anomalies={name: anomalies(rates[name], normal, sources) for name in names},
        settings={system.name: system.settings for system in systems},
        notes=list(notes),
    )


def compared_by_comet(systems: Sequence[System]) -> list[tuple[str, Comet]]:
    """Those that have COMET as the baseline has it, with references or without; none if that is nobody else."""
    baseline = systems[0].comet
    scored = [
        (one.name, one.comet)
        for one in systems
        if one.comet is not None and baseline is not None and one.comet.references == baseline.references
    ]
    return scored if len(scored) > 1 else []


def _comet_tests(systems: Sequence[System], config: CompareConfig) -> list[MetricTest]:
    scored = compared_by_comet(systems)
    if not scored:
        return []
    return [
        paired_mean_tests(
            LABEL,
            [(name, comet.sentences) for name, comet in scored],
            made=comet_signature([comet for _, comet in scored]),
            bootstrap_samples=config.bootstrap_samples,
            randomization_trials=config.randomization_trials,
            seed=config.seed,
        )
    ]


def _bleu_of_groups(
    systems: Sequence[System], references: Sequence[str], groups: Sequence[RowGroup]
) -> list[Slice]:
    slices: list[Slice] = []
    for low, high, rows in groups:
        wanted = [references[row] for row in rows]
        values = [part_bleu([system.hypotheses[row] for row in rows], wanted) for system in systems]
        slices.append(Slice(range_label(low, high), len(rows), values))
    return slices


def _word_f1(systems: Sequence[System], references: Sequence[str], training: TrainingText) -> list[Slice]:
    columns = [word_f1_by_frequency(system.hypotheses, references, training.target) for system in systems]
    return [
        Slice(
            range_label(buckets[0].lowest, buckets[0].highest),
            buckets[0].words,
            [100 * bucket.f1 for bucket in buckets],
        )
        for buckets in zip(*columns, strict=True)
    ]


def _pairwise(
    systems: Sequence[System], sources: Sequence[str], references: Sequence[str], count: int
) -> list[PairwiseResult]:
    """Each system against the first; of equal differences the longer source comes first, as it shows more."""
    scores = [sentence_scores(system.hypotheses, references) for system in systems]
    results: list[PairwiseResult] = []
    for system, chrf in zip(systems[1:], scores[1:], strict=True):
        differences = [
            Difference(
                row + 1,
                sources[row],
                references[row],
                systems[0].hypotheses[row],
                system.hypotheses[row],
                scores[0][row],
                chrf[row],
            )
            for row in range(len(references))
        ]
        better = [one for one in differences if one.chrf > one.baseline_chrf]
        worse = [one for one in differences if one.chrf < one.baseline_chrf]
        for found in (better, worse):
            found.sort(key=lambda one: (-abs(one.chrf - one.baseline_chrf), -len(one.source)))
        equal = len(differences) - len(better) - len(worse)
        results.append(
            PairwiseResult(system.name, len(better), equal, len(worse), better[:count], worse[:count])
        )
    return results
