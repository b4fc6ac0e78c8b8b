"""Sampling against the distribution that it is to follow, against greedy decoding, and against Hugging Face."""

import math
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
import torch
from reference import log_probability_of, random_model, random_sources, search
from transformers.generation.logits_process import (
    EpsilonLogitsWarper,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
)

from endeavour.config import load_config
from endeavour.decoding.beam_search import Hypothesis
from endeavour.decoding.config import SamplingConfig
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.model import Model
from endeavour.decoding.sampling import sample, truncated
from endeavour.errors import UserError
from endeavour.special import BOS, EOS, PAD

PLAIN = SamplingConfig(temperature=1.0, top_k=None, epsilon=0.0, seed=1)


def draw(
    model: Model, source: torch.Tensor, count: int, sampling: SamplingConfig = PLAIN, **changes: float
) -> list[list[Hypothesis]]:
    settings = {"length_penalty": 0.0, "max_length_ratio": 1.5, "max_length_offset": 2, **changes}
    generator = torch.Generator().manual_seed(sampling.seed)
    return sample(
        model, source, num_hypotheses=count, sampling=sampling, generator=generator, **settings  # type: ignore[arg-type]
    )  # fmt: skip


def test_sentences_come_as_often_as_the_model_finds_them_probable() -> None:
    vocabulary, limit, count = 6, 3, 20_000
    model = random_model(vocabulary, seed=2)
    source = random_sources(vocabulary, [3])
    (found,) = draw(model, source, count, max_length_ratio=0.0, max_length_offset=limit)
    assert len(found) == count
    times = Counter(tuple(one.ids) for one in found)
    # The probability to be drawn: that of each token among those that may be, with EOS certain at the limit.
    everything = [ids for length in range(limit + 1) for ids in product([1, 4, 5], repeat=length)]
    expected = {ids: _chance(model, source, ids, limit) for ids in everything}
    assert sum(expected.values()) == pytest.approx(1.0, abs=1e-5)
    assert set(times) <= set(expected)
    likely = {ids: chance * count for ids, chance in expected.items() if chance * count > 5}
    assert len(likely) > 20
    statistic = sum((times[ids] - mean) ** 2 / mean for ids, mean in likely.items())
    # Chi-square: mean as many as there are terms, standard deviation the root of twice that.
    assert statistic < len(likely) + 4 * math.sqrt(2 * len(likely))


def _chance(model: Model, source: torch.Tensor, ids: tuple[int, ...], limit: int) -> float:
    with torch.no_grad():
        logits = model(source, torch.tensor([[BOS, *ids]]))[0]  # type: ignore[operator]
    probabilities = truncated(logits, PLAIN)
    chance = 1.0
    for place, token in enumerate([*ids, EOS][:limit]):
        chance *= float(probabilities[place, token])
    return chance


def test_scores_are_the_models_own_whatever_is_drawn_from() -> None:
    model = random_model(12)
    source = random_sources(12, [5, 3])
    narrow = SamplingConfig(temperature=0.7, top_k=4, epsilon=0.05, seed=3)
    for row, found in zip(source, draw(model, source, 6, narrow, length_penalty=0.6), strict=True):
        alone = row[None, : int((row > EOS).sum()) + 1]
        for one in found:
            assert one.log_probability == pytest.approx(log_probability_of(model, alone, one.ids), abs=1e-4)
            assert one.score == pytest.approx(one.log_probability / ((6 + len(one.ids)) / 6) ** 0.6, abs=1e-5)
            assert not {PAD, BOS, EOS} & set(one.ids)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"temperature": 1e-4}, {"epsilon": 0.999}])
def test_the_most_probable_token_alone_is_greedy_decoding(narrow: dict[str, float]) -> None:
    model = random_model(12)
    source = random_sources(12, [6, 2, 0, 9])
    greedy = search(model, source, beam_size=1, length_penalty=0.0)
    sampled = draw(model, source, 3, replace(PLAIN, **narrow))  # type: ignore[arg-type]
    assert [[one.ids for one in row] for row in sampled] == [[row[0].ids] * 3 for row in greedy]


@pytest.mark.parametrize(
    ("temperature", "top_k", "epsilon"), [(0.5, None, 0.0), (1.0, 3, 0.0), (1.3, 9, 0.08)]
)
def test_truncation_is_that_of_hugging_face(temperature: float, top_k: int | None, epsilon: float) -> None:
    torch.manual_seed(0)
    logits = 2 * torch.randn(40, 30)
    theirs = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    theirs += [TopKLogitsWarper(top_k)] if top_k else []
    theirs += [EpsilonLogitsWarper(epsilon)] if epsilon else []
    excluded = logits.clone()
    excluded[:, [PAD, BOS]] = -torch.inf
    expected = theirs(torch.zeros(40, 1, dtype=torch.long), excluded).softmax(dim=-1)
    ours = truncated(logits, SamplingConfig(temperature=temperature, top_k=top_k, epsilon=epsilon, seed=1))
    torch.testing.assert_close(ours, expected)


def test_limits_hold_and_what_is_drawn_is_a_matter_of_the_seed() -> None:
    model = random_model(12)
    source = random_sources(12, [5, 0, 9])
    found = draw(
        model, source, 40, replace(PLAIN, temperature=3.0), max_length_ratio=0.5, max_length_offset=1
    )
    assert [max(len(one.ids) for one in row) for row in found] == [3, 1, 5]
    assert draw(model, source, 8) == draw(model, source, 8)
    assert draw(model, source, 8) != draw(model, source, 8, replace(PLAIN, seed=2))
    assert len({tuple(one.ids) for one in found[2]}) > 20
    assert draw(model, source[:0], 8) == []


def test_an_ensemble_draws_from_the_mean() -> None:
    model = random_model(12)
    source = random_sources(12, [5, 3])
    assert [[one.ids for one in row] for row in draw(Ensemble([model, model]), source, 5)] == [
        [one.ids for one in row] for row in draw(model, source, 5)
    ]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["sampling.temperature=0"], "decoding.sampling.temperature=0.0: must be above 0"),
        (["sampling.top_k=0"], "decoding.sampling.top_k=0: must be at least 1, or null"),
        (["sampling.epsilon=1"], "decoding.sampling.epsilon=1.0: must be from 0 to below 1"),
        (["sampling.seed=-1"], "decoding.sampling.seed=-1: must not be negative"),
        (["engine=ctranslate2"], "decoding.sampling needs decoding.engine=pytorch: ctranslate2 searches"),
        (
            ["beam_size=5"],
            "decoding.beam_size=5: sampling searches nothing, ask for decoding.num_hypotheses=5 instead",
        ),
    ],
)
def test_what_describes_no_sampling_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError) as refusal:
        load_config(["decoding=sample", *(f"decoding.{override}" for override in overrides)])
    assert str(refusal.value) == message


def test_a_validation_does_not_draw() -> None:
    with pytest.raises(UserError, match=r"validation_decoding\.sampling: a model in training"):
        load_config(["decoding@validation_decoding=sample"])
