"""Scores of translations: BLEU, chrF and TER by sacreBLEU, of a corpus and of its sentences.

Knows lines of text only: nothing of models, tokenizers, files or reports. Hypotheses and references are
whole, untokenized lines, one reference a sentence; except for `bleu_tokenized` sacreBLEU's own tokenization is the
only one applied, so that the scores can be compared with published ones of the same signature.
"""

import json
import math
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from sacrebleu.metrics.base import Metric as SacrebleuMetric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from endeavour.errors import UserError
from endeavour.evaluation import moses
from endeavour.evaluation.config import MIN_BOOTSTRAP_SAMPLES

# sacreBLEU draws all resamples at once: the bytes they may take together, and those of one for each sentence.
RESAMPLING_MEMORY = 1_600_000_000
BOOTSTRAP_BYTES = 80


@dataclass(frozen=True)
class Score:
    """A corpus score with its 95% bootstrap interval; all three numbers on sacreBLEU's scale (0–100; TER may
    pass 100). `signature` is sacreBLEU's and holds version, tokenization, resamples and seed; what was done to
    the lines before is appended to it."""

    name: str
    value: float
    low: float
    high: float
    signature: str


# sacreBLEU sums resamples in numpy, but scores some of them as a plain 0.0 (no match at all, no reference
# word), and then fails to average the mixture. Passing plain numbers to both metrics avoids it.
class _PlainNumbers(SacrebleuMetric):
    def _compute_score_from_stats(self, stats: list[Any]) -> Any:
        return super()._compute_score_from_stats([float(count) for count in stats])


class _Chrf(_PlainNumbers, CHRF): ...


class _Ter(_PlainNumbers, TER): ...


@dataclass(frozen=True)
class Metric:
    """A corpus metric of sacreBLEU's.

    Attributes:
        label: its name in reports.
        make: builds sacreBLEU's.
        less_is_better: whether lower scores are better.
        ceiling: the highest possible score.
        compared: builds the one for the significance tests of `compare`, given `lowercase`; None: it is not tested.
            Not always the same: `_Chrf` computes in float64 what the tests' samples have in float32.
        tokenized: of both sides tokenized by Moses' rules; only where this is asked for.
    """

    label: str
    make: Callable[[], BLEU | CHRF | TER]
    less_is_better: bool = False
    ceiling: float = 100.0
    compared: Callable[..., BLEU | CHRF] | None = None
    tokenized: bool = False


# BLEU: Papineni et al. 2002, with sacreBLEU's defaults (13a tokenization, cased; Post 2018). chrF2: Popović 2015.
# TER: Snover et al. 2006, caseless as in tercom. `force` silences the warning of outputs that look tokenized:
# once is enough.
METRICS = {
    "bleu": Metric("BLEU", BLEU, compared=partial(BLEU, force=True)),
    "bleu_lowercased": Metric("BLEU, lowercased", partial(BLEU, lowercase=True, force=True)),
    "chrf": Metric("chrF2", _Chrf, compared=CHRF),
    "ter": Metric("TER", _Ter, less_is_better=True, ceiling=math.inf),
    "bleu_tokenized": Metric("BLEU, tokenized", partial(BLEU, tokenize="none", force=True), tokenized=True),
}


def bleu_key(*, lowercase: bool) -> str:
    """The one of METRICS by which a model is to be judged, which may write no capitals."""
    return "bleu_lowercased" if lowercase else "bleu"


def score_corpus(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    bootstrap_samples: int,
    seed: int,
    tokenized_as: str | None = None,
    tokenized_references: Sequence[str] | None = None,
    standard: tuple[str, str] | None = None,
) -> dict[str, Score]:
    """Score a corpus by all of METRICS, in their order; the tokenized ones only where `tokenized_as` is given.

    Intervals: bootstrap resampling over sentences, Koehn 2004, as sacreBLEU reports it: mean of the resamples ± half
    the width of their central 95%. To limit the memory, corpora of more than 20,000 sentences get fewer than 1,000
    resamples; signatures say how many.

    `tokenized_as`, a language, asks for `bleu_tokenized`: of both sides lowercased, normalized and tokenized by
    Moses' rules, and not tokenized again. `tokenized_references` replace ours there, unchanged.

    `standard`, sacreBLEU's name of the test set and the direction, goes into the signatures in its form.

    Raises UserError where the line counts differ or there are no lines.
    """
    check_counts(hypotheses=hypotheses, references=references)
    if tokenized_references is not None:
        check_counts(references=references, tokenized_references=tokenized_references)
    bootstrap_samples = affordable(bootstrap_samples, len(references), size=BOOTSTRAP_BYTES)
    # By `Metric.tokenized`: both sides, and what is appended to the signature.
    texts = {False: (hypotheses, references, "")}
    if tokenized_as is not None:
        made = f"|{moses.signature()}"
        if tokenized_references is None:
            tokenized_references = moses.tokenize(references, tokenized_as)
        else:
            made += "|references:file"
        texts[True] = (moses.tokenize(hypotheses, tokenized_as), tokenized_references, made)
    test_set = {} if standard is None else {"test": standard[0], "lang": standard[1]}
    with sacrebleu_seed(seed):
        return {
            key: score_with_interval(
                metric, *texts[metric.tokenized], test_set=test_set, samples=bootstrap_samples
            )
            for key, metric in METRICS.items()
            if metric.tokenized in texts
        }


def affordable(samples: int, sentences: int, *, size: int) -> int:
    """As many of `samples`, of `size` bytes a sentence each, as RESAMPLING_MEMORY holds, but enough for an interval."""
    return min(samples, max(RESAMPLING_MEMORY // (size * sentences), MIN_BOOTSTRAP_SAMPLES))


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False) -> float:
    """BLEU (0–100), the same as `bleu`, or `bleu_lowercased`, of `score_corpus` without an interval: cheap enough for
    validation. Raises UserError where the line counts differ or there are no lines."""
    check_counts(hypotheses=hypotheses, references=references)
    return float(BLEU(lowercase=lowercase, force=True).corpus_score(hypotheses, [references]).score)


def sentence_scores(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF2 (0–100) of each sentence: unlike BLEU it needs no smoothing for short ones.

    Raises UserError where the line counts differ or there are no lines.
    """
    check_counts(hypotheses=hypotheses, references=references)
    metric = CHRF()
    return [
        float(metric.sentence_score(hypothesis, [reference]).score)
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def score_with_interval(
    metric: Metric,
    hypotheses: Sequence[str],
    references: Sequence[str],
    made: str = "",
    *,
    test_set: Mapping[str, str] | None = None,
    samples: int,
) -> Score:
    """By one metric. Within `sacrebleu_seed`.

    Args:
        made: what was done to the lines before; it is appended to the signature.
        test_set: what the signature says of the test set.
        samples: of the bootstrap; see `affordable`.
    """
    scorer = metric.make()
    result = scorer.corpus_score(hypotheses, [references], n_bootstrap=samples)
    fields = scorer.get_signature()
    for key, value in (test_set or {}).items():
        fields.update(key, value)
    signature = str(fields)
    # sacreBLEU returns the interval only in its JSON form, and not where every resample scored 0.
    described = cast(dict[str, Any], json.loads(result.format(width=10, is_json=True, signature=signature)))
    value = float(result.score)
    mean = float(described.get("confidence_mean", value))
    half_width = float(described.get("confidence_var", 0.0))
    # Mean ± half width can pass the ends of the scale where the resamples are skewed.
    low, high = max(mean - half_width, 0.0), min(mean + half_width, metric.ceiling)
    return Score(metric.label, value, low, high, signature + made)


@contextmanager
def sacrebleu_seed(seed: int) -> Generator[None]:
    """sacreBLEU takes the seed of its resampling from the environment alone."""
    name = "SACREBLEU_SEED"
    before = os.environ.get(name)
    os.environ[name] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def length_ratio(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Output words ÷ words of the references, over all lines."""
    words = sum(len(reference.split()) for reference in references)
    return sum(len(hypothesis.split()) for hypothesis in hypotheses) / max(words, 1)


def check_counts(**columns: Sequence[str]) -> None:
    """Raises UserError where the named columns differ in length or are empty."""
    counts = {name: len(lines) for name, lines in columns.items()}
    if len(set(counts.values())) > 1:
        listing = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise UserError(f"line counts differ: {listing}; line n of each must belong to the same sentence")
    if not all(counts.values()):
        raise UserError(f"nothing to score: no {' and '.join(counts)} given")
