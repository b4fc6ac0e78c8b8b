"""Draws, scores of given translations and the choice among candidates: in which batches, and in what order."""

import math

import pytest
import torch
from reference import draw, random_model, random_sources, search
from sacrebleu.metrics.bleu import BLEU
from torch import Tensor

from endeavour.decoding import scoring
from endeavour.decoding.beam_search import STEPS_UNSEEN
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.minimum_bayes_risk import most_useful, pairwise
from endeavour.decoding.sampling import truncated
from endeavour.decoding.scoring import log_probabilities
from endeavour.errors import UserError
from endeavour.special import BOS, EOS, PAD
from scripted import OTHER, REST, WORD, Scripted, sources

CERTAIN = 1.0 - 1e-9


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
    with pytest.raises(UserError, match=r"decoding\.precision=fp32"):
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


def test_given_translations_are_scored_in_batches_of_like_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "TOKENS_PER_BATCH", 20)  # of the longest pair, 9 and 7 tokens, there are two
    shapes: list[tuple[int, int, int]] = []

    def logits(source: Tensor, target_in: Tensor) -> Tensor:
        shapes.append((len(source), source.shape[1], target_in.shape[1]))
        return torch.zeros(*target_in.shape, 8, dtype=torch.bfloat16)

    lengths = [(3, 1), (8, 6), (3, 0), (5, 2), (5, 1), (3, 3)]
    given = [[4] * source + [EOS] for source, _ in lengths], [[5] * target for _, target in lengths]
    found = log_probabilities(logits, *given)
    assert shapes == [(2, 9, 7), (3, 6, 2), (1, 4, 4)]
    assert found == pytest.approx([-(target + 1) * math.log(8) for _, target in lengths], rel=1e-5)


def test_a_translation_longer_than_the_budget_is_scored_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "TOKENS_PER_BATCH", 3)
    seen: list[int] = []

    def logits(source: Tensor, target_in: Tensor) -> Tensor:
        seen.append(len(source))
        return torch.zeros(*target_in.shape, 8)

    log_probabilities(logits, [[4, EOS]] * 2, [[4, 4]] * 2)
    assert seen == [1, 1]


def test_translations_are_scored_on_the_device_asked_for() -> None:
    def logits(source: Tensor, target_in: Tensor) -> Tensor:
        assert (source.device.type, target_in.device.type) == ("meta", "meta")
        return torch.zeros(*target_in.shape, 8, device="meta")

    with pytest.raises(NotImplementedError, match="meta"):  # only once the sums are read
        log_probabilities(logits, [[4, EOS]], [[4]], device=torch.device("meta"))


def test_of_equally_useful_texts_the_one_of_more_weight_comes_first_then_the_alphabets() -> None:
    """Two that say nothing are of no use to each other."""
    for weights, expected in (([2.0, 1.0], [" ", ""]), ([1.0, 2.0], ["", " "]), ([1.0, 1.0], ["", " "])):
        assert [text for text, _ in most_useful([" ", ""], weights, "bleu")] == expected


def test_the_space_after_a_sentence_is_none_of_its_words() -> None:
    texts = ["der Hund-\n", "der Hund", " der Hund-"]
    for text, row in zip(texts, pairwise(texts, "bleu"), strict=True):
        naive = [BLEU(effective_order=True).sentence_score(text, [other]).score for other in texts]
        assert row.tolist() == pytest.approx(naive)


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
