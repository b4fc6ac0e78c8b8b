"""Sampling against the distribution that it is to follow, against greedy decoding, and against Hugging Face."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest
import torch
from reference import draw, log_probability_of, random_model, random_sources, search
from transformers.generation.logits_process import (
    EpsilonLogitsWarper,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
)

from configs import run_config
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.sampling import sample, truncated
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS, PAD


def assert_as_often_as_probable(
    found: list[Hypothesis], models: Sequence[Transformer], source: torch.Tensor
) -> None:
    """Chi-square of the draws of a vocabulary of 6 and at most 3 tokens against the mean of the models."""
    limit, count = 3, len(found)
    times = Counter(tuple(one.ids) for one in found)
    everything = [ids for length in range(limit + 1) for ids in product([1, 4, 5], repeat=length)]
    expected = {ids: chance(models, source, ids, limit) for ids in everything}
    assert sum(expected.values()) == pytest.approx(1.0, abs=1e-5)
    assert set(times) <= set(expected)
    likely = {ids: share * count for ids, share in expected.items() if share * count > 5}
    assert len(likely) > 20
    statistic = sum((times[ids] - mean) ** 2 / mean for ids, mean in likely.items())
    # Its mean is as many as there are terms, its standard deviation the root of twice that.
    assert statistic < len(likely) + 4 * math.sqrt(2 * len(likely))


def chance(models: Sequence[Transformer], source: torch.Tensor, ids: tuple[int, ...], limit: int) -> float:
    """To be drawn: of each token among those that may be, with EOS certain at the limit."""
    with torch.no_grad():
        each = [model(source, torch.tensor([[BOS, *ids]]))[0].softmax(dim=-1) for model in models]
    mean = torch.stack(each).mean(dim=0)
    mean[:, [PAD, BOS]] = 0.0
    mean /= mean.sum(dim=-1, keepdim=True)
    return math.prod(float(mean[place, token]) for place, token in enumerate([*ids, EOS][:limit]))


def test_sentences_come_as_often_as_the_model_finds_them_probable() -> None:
    model, source = random_model(6, seed=2), random_sources(6, [3])
    (found,) = draw(model, source, 20_000, limit=3)
    assert len(found) == 20_000
    assert_as_often_as_probable(found, [model], source)


def test_an_ensemble_draws_from_the_mean_of_its_models() -> None:
    models, source = [random_model(6, seed=seed) for seed in (2, 3)], random_sources(6, [3])
    (found,) = draw(Ensemble(models), source, 20_000, limit=3)
    assert_as_often_as_probable(found, models, source)
    with pytest.raises(AssertionError):  # which neither of them alone explains
        assert_as_often_as_probable(found, models[:1], source)


def test_scores_are_the_models_own_whatever_is_drawn_from() -> None:
    model = random_model(12)
    source = random_sources(12, [5, 3])
    narrow = {"temperature": 0.7, "top_k": 4, "epsilon": 0.05}
    for row, found in zip(source, draw(model, source, 6, seed=3, **narrow, alpha=0.6), strict=True):
        alone = row[None, : int((row > EOS).sum()) + 1]
        for one in found:
            assert one.log_probability == pytest.approx(log_probability_of(model, alone, one.ids), abs=1e-4)
            assert one.score == pytest.approx(one.log_probability / ((6 + len(one.ids)) / 6) ** 0.6, abs=1e-5)
            assert not {PAD, BOS, EOS} & set(one.ids)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@pytest.mark.parametrize(
    "narrow",
    [
        {"top_k": 1},
        {"temperature": 1e-4},
        {"temperature": 1e-6},
        {"epsilon": 0.999},
        {"top_k": 1, "temperature": 1e6},
    ],
)
def test_the_most_probable_token_alone_is_greedy_decoding(narrow: dict[str, float]) -> None:
    model = random_model(12)
    source = random_sources(12, [6, 2, 0, 9])
    greedy = search(model, source, beam_size=1, alpha=0.0)
    sampled = draw(model, source, 3, **narrow)
    assert [[one.ids for one in row] for row in sampled] == [[row[0].ids] * 3 for row in greedy]


@pytest.mark.parametrize(
    ("temperature", "top_k", "epsilon"), [(0.5, None, 0.0), (1.0, 3, 0.0), (1.3, 9, 0.08)]
)
def test_truncation_is_that_of_hugging_face(temperature: float, top_k: int | None, epsilon: float) -> None:
    torch.manual_seed(0)
    logits = 2 * torch.randn(40, 30)
    before = logits.clone()
    theirs = LogitsProcessorList([TopKLogitsWarper(top_k)] if top_k else [])
    theirs += [EpsilonLogitsWarper(epsilon)] if epsilon else []
    theirs += [TemperatureLogitsWarper(temperature)]
    excluded = logits.clone()
    excluded[:, [PAD, BOS]] = -torch.inf
    expected = theirs(torch.zeros(40, 1, dtype=torch.long), excluded).softmax(dim=-1)
    ours = truncated(logits, temperature=temperature, top_k=top_k, epsilon=epsilon)
    torch.testing.assert_close(ours, expected)
    assert torch.equal(logits, before)


def test_of_equal_tokens_no_more_than_k_stay() -> None:
    logits = torch.zeros(3, 12)
    kept = truncated(logits, temperature=1.0, top_k=4, epsilon=0.0)
    assert (kept > 0).sum(dim=-1).tolist() == [4, 4, 4]
    assert not kept[:, [PAD, BOS]].any()


def test_limits_hold_and_what_is_drawn_is_a_matter_of_the_seed() -> None:
    model = random_model(12)
    source = random_sources(12, [5, 0, 9])
    generator = torch.Generator().manual_seed(1)
    hot = {"temperature": 3.0, "top_k": None, "epsilon": 0.0, "alpha": 0.0}
    found = sample(model, source, [3, 1, 5], num_hypotheses=40, generator=generator, **hot)
    assert [max(len(one.ids) for one in row) for row in found] == [3, 1, 5]
    assert draw(model, source, 8) == draw(model, source, 8)
    assert draw(model, source, 8) != draw(model, source, 8, seed=2)
    assert len({tuple(one.ids) for one in found[2]}) > 20
    assert draw(model, source[:0], 8) == []


def test_what_an_engine_drew_before_does_not_matter() -> None:
    decoding = run_config(["decoding=sample", "decoding.num_hypotheses=4"]).decoding
    sources = [[5, 6, 7, EOS], [8, EOS]]
    engine, other = (PyTorchEngine(random_model(12), decoding) for _ in range(2))
    other.search([[9, 9, EOS]])
    assert engine.search(sources) == other.search(sources)
