"""Several models as one, against each of them alone and against full passes of all of them."""

import pytest
import torch
from reference import (
    Logits,
    assert_same,
    log_probability_of,
    random_model,
    random_sources,
    search,
    simple_search,
)
from torch import Tensor

from endeavour.decoding.ensemble import Ensemble
from endeavour.model.transformer import Transformer
from endeavour.special import EOS

LENGTHS = [5, 1, 8, 0, 3, 8, 2]


def unlike_models() -> list[Transformer]:
    """Three over one vocabulary that share neither width nor depth nor positions."""
    return [
        random_model(12, seed=1),
        random_model(12, seed=2, width=8, num_heads=2, positions="rotary"),
        random_model(12, seed=3, decoder_layers=1, norm="post"),
    ]


def mean_of(models: list[Transformer]) -> Logits:
    """Source and target ids to the logarithm of the mean of the models' probabilities, by full passes."""

    def logits(source: Tensor, target_in: Tensor) -> Tensor:
        probabilities = [model(source, target_in).double().softmax(dim=-1) for model in models]
        return (sum(probabilities) / len(models)).log()  # type: ignore[union-attr]

    return logits


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_one_model_is_itself_however_often_it_stands_there(beam: int, times: int) -> None:
    model = random_model(12, seed=5)
    source = random_sources(12, LENGTHS)
    alone = search(model, source, beam_size=beam, num_hypotheses=beam)
    together = search(Ensemble([model] * times), source, beam_size=beam, num_hypotheses=beam)
    for ours, theirs in zip(together, alone, strict=True):
        assert_same(ours, theirs)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_search_over_the_mean_of_probabilities_by_full_passes_finds_the_same(beam: int) -> None:
    models = unlike_models()
    source = random_sources(12, LENGTHS)
    found = search(Ensemble(models), source, beam_size=beam, num_hypotheses=beam)
    for row, hypotheses, length in zip(source, found, LENGTHS, strict=True):
        alone = row[None, : length + 1]
        expected = simple_search(mean_of(models), alone, beam, int(1.5 * length + 2), 0.6)[:beam]
        assert_same(hypotheses, expected)
        for ids, _, log_probability in hypotheses:
            direct = log_probability_of(mean_of(models), alone, ids)
            assert log_probability == pytest.approx(direct, abs=1e-4)


def test_it_is_neither_of_two_models_that_disagree() -> None:
    models = unlike_models()
    source = random_sources(12, [5])
    scores = {search(model, source)[0][0].log_probability for model in [*models, Ensemble(models)]}
    assert len(scores) == 4


def test_probabilities_add_up_to_one_and_what_one_model_knows_is_not_lost() -> None:
    models = unlike_models()[:1] * 2
    sure = random_model(12, seed=4)
    with torch.no_grad():  # all but certain of EOS
        sure.decoder_norm.bias.add_(sure.output_weight[EOS] * 200)
    ensemble = Ensemble([*models, sure])
    source = random_sources(12, [5, 5])
    with torch.inference_mode():
        cache = ensemble.start(ensemble.encode(source), beam_size=1)
        log_probabilities = ensemble.project(ensemble.step(torch.full((2, 1), 2), cache))
    assert log_probabilities.dtype == torch.float32
    torch.testing.assert_close(log_probabilities.exp().sum(dim=-1), torch.ones(2, 1))
    assert (log_probabilities[..., EOS].exp() > 1 / 3).all()
    assert log_probabilities.isfinite().all()


def test_the_fewest_positions_are_the_limit() -> None:
    free, short, long = (
        random_model(12),
        random_model(12, positions="learned", max_length=7),
        random_model(12, positions="learned", max_length=9),
    )
    assert Ensemble([free, long, short]).max_target_length == 7
    assert Ensemble([free, free]).max_target_length is None


def test_its_mode_is_that_of_its_models_and_switches_them() -> None:
    models = unlike_models()
    ensemble = Ensemble(models)
    assert not ensemble.training
    ensemble.train()
    assert all(model.training for model in models)
    with pytest.raises(AssertionError, match=r"model\.eval"):
        search(ensemble, random_sources(12, [3]))


def test_other_vocabularies_are_refused() -> None:
    with pytest.raises(AssertionError, match="one target vocabulary"):
        Ensemble([random_model(12), random_model(13)])
