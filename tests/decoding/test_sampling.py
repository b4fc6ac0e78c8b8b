"""Sampling against the distribution that it is to follow, against greedy decoding, against Hugging Face; in batches."""

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
from endeavour.decoding.beam_search import STEPS_UNSEEN
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.sampling import sample, truncated
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS, PAD
from scripted import OTHER, REST, WORD, Scripted, sources

CERTAIN = 1.0 - 1e-9


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


def test_what_is_drawn_first_is_no_better_than_what_is_drawn_last() -> None:
    """Or samples of two sentences, joined one to one, would be good together and bad together."""
    drawn = draw(random_model(12), random_sources(12, [5, 3]), 2000)
    for values in ([one.score for one in row] for row in drawn):
        first, last = torch.tensor(values).split(1000)
        assert abs(first.mean() - last.mean()) < 4 * math.sqrt((first.var() + last.var()) / 1000)


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


def test_draws_that_have_ended_leave_the_batch_together() -> None:
    """Each draw is a row of its own; one of eight waits, two of eight are a quarter and go."""
    lengths = [1, 4, 2, 4, 5, 4, 4, 4]
    model = Scripted([[*[{WORD: CERTAIN}] * length, {EOS: CERTAIN}] for length in lengths])
    found = draw(model, sources(8), limit=5)
    assert [one.ids for (one,) in found] == [[WORD] * length for length in lengths]
    assert [one.log_probability for (one,) in found] == pytest.approx([0.0] * 8, abs=1e-4)
    assert model.seen == [(8, 1)] * 3 + [(6, 1)] * 2 + [(1, 1)]
    model.seen.clear()
    assert [[one.ids for one in row] for row in draw(model, sources(8), 3, limit=5)] == [
        [[WORD] * length] * 3 for length in lengths
    ]
    assert model.seen[0] == (24, 1)


def test_on_a_gpu_the_host_asks_every_few_steps_who_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS_UNSEEN, "cpu", 4)
    lengths = [1, 4, 2, 4, 5, 4, 4, 4]
    model = Scripted([[*[{WORD: CERTAIN}] * length, {EOS: CERTAIN}] for length in lengths])
    found = draw(model, sources(8), limit=5)
    assert [one.ids for (one,) in found] == [[WORD] * length for length in lengths]
    assert model.seen == [(8, 1)] * 4 + [(6, 1)] * 2


def test_a_model_without_probabilities_is_the_users_error() -> None:
    model = random_model(12)
    with torch.no_grad():
        model.output_weight.fill_(torch.nan)
    with pytest.raises(UserError, match=r"lower training\.learning_rate"):
        draw(model, random_sources(12, [4, 3]), 2)


def test_a_draw_at_its_limit_ends_at_the_models_price() -> None:
    model = Scripted([[{WORD: 0.6, OTHER: 0.3}, {EOS: 0.05, WORD: 0.9}]] * 2)
    for row in draw(model, sources(2), 20, limit=1):
        for one in row:
            chance = {WORD: 0.6, OTHER: 0.3, REST: 0.1}[one.ids[0]]
            assert len(one.ids) == 1
            assert math.exp(one.log_probability) == pytest.approx(chance * 0.05, rel=1e-4)


def test_what_may_be_drawn_is_a_matter_of_each_row_alone() -> None:
    """Rows of any shape, however unlike their sizes and low the temperature."""
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 5, 12) * 3
    logits[0] += 1000
    for settings in (
        {"temperature": 0.3, "top_k": 4, "epsilon": 0.0},
        {"temperature": 1.0, "top_k": None, "epsilon": 0.1},
        {"temperature": 1e-6, "top_k": 100, "epsilon": 0.05},
    ):
        together = truncated(logits, **settings)
        alone = torch.stack([truncated(row, **settings) for row in logits.flatten(0, 2)])
        assert torch.equal(together.flatten(0, 2), alone)
        torch.testing.assert_close(together.sum(dim=-1), torch.ones(2, 3, 5))
    unlike = torch.tensor([[0.0, 0, 0, 1000.0, -1e9, -1e9], [-1e9, -1e9, -1e9, -1e9, 0.0, -1e-5]])
    (_, second) = truncated(unlike, temperature=1e-6, top_k=None, epsilon=0.0)
    assert second[5].item() == pytest.approx(1 / (1 + math.exp(10)), rel=0.01)
    close = torch.tensor([0.0, 0, 0, 1000.0, 1000.0 - 2**-14])  # there is no number between them
    shares = truncated(close, temperature=1e-5, top_k=None, epsilon=0.0)
    assert (shares[4] / shares[3]).item() == pytest.approx(math.exp(-(2**-14) / 1e-5), rel=1e-3)


def test_at_the_threshold_a_token_stays_and_the_most_probable_always_does() -> None:
    logits = torch.tensor([[0.0, 0.0, math.log(0.5), math.log(0.25), math.log(0.25)]])
    logits[:, [PAD, BOS]] = 7.0  # more probable than all, yet never drawn
    excluded = torch.tensor([token in (PAD, BOS) for token in range(5)])
    shares = logits.masked_fill(excluded, -torch.inf).softmax(dim=-1)[0]
    smallest = shares[~excluded].min().item()
    assert (truncated(logits, temperature=1.0, top_k=None, epsilon=smallest)[0] > 0).sum() == 3
    assert (truncated(logits, temperature=1.0, top_k=None, epsilon=smallest * 1.01)[0] > 0).sum() < 3
    assert (truncated(logits, temperature=1.0, top_k=None, epsilon=0.99)[0] > 0).sum() == 1


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_everything_is_made_on_the_models_device_whatever_the_default_is(positions: str) -> None:
    """A tensor on `meta`, the default here, could not be used together with the others."""
    model = random_model(12, positions=positions)
    ensemble = Ensemble([model, random_model(12, seed=1)])
    source = random_sources(12, [5, 2, 7])
    tokens, parents, kept = torch.full((3, 2), BOS), torch.tensor([[1, 0]] * 3), torch.tensor([2, 0])
    options = {"top_k": 5, "epsilon": 0.01, "temperature": 0.9}
    expected = draw(model, source, 3, **options), search(model, source, beam_size=3, num_hypotheses=2)
    generator = torch.Generator().manual_seed(1)
    with torch.device("meta"):
        found = (
            draw(model, source, 3, generator=generator, **options),
            search(model, source, beam_size=3, num_hypotheses=2),
        )
        for decoder in (model, ensemble):
            cache = decoder.start(decoder.encode(source), beam_size=2)
            decoder.step(tokens, cache)
            cache.reorder(parents)
            cache.select(kept)
            assert decoder.project(decoder.step(tokens[:2], cache)).isfinite().all()
    assert found == expected
