"""Drawn translations: their frequencies, what epsilon leaves out, and that nothing but seed and source decides."""

from collections import Counter
from itertools import product

import pytest
import torch
from reference import log_probability_of, random_model, random_sources, score_of
from torch import Tensor

from endeavour.decoding.beam_search import Hypothesis
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.model import Model
from endeavour.decoding.sampling import sample
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS, PAD

LENGTHS = [4, 9, 0, 2, 7, 7, 1, 12, 3, 5]


def drawn(model: Model, source: Tensor, **changes: float) -> list[list[Hypothesis]]:
    settings: dict[str, float] = {
        **{"num_samples": 6, "epsilon": 0.0, "seed": 1, "length_penalty": 0.6},
        **{"max_length_ratio": 1.5, "max_length_offset": 2},
        **changes,
    }
    return sample(model, source, **settings)  # type: ignore[arg-type]


def ids_of(found: list[list[Hypothesis]]) -> list[list[list[int]]]:
    """As a multiset: the order is that of scores, which rounding may turn about between equals."""
    return [sorted(one.ids for one in samples) for samples in found]


def next_probabilities(model: Transformer, source: Tensor, ids: list[int]) -> list[float]:
    with torch.no_grad():
        return model(source, torch.tensor([[BOS, *ids]]))[0, -1].softmax(dim=-1).tolist()


def distribution(
    model: Transformer, source: Tensor, limit: int, epsilon: float
) -> dict[tuple[int, ...], float]:
    """The probability of every translation of at most `limit` tokens, by the definition of epsilon sampling."""
    words = [token for token in range(model.output_weight.shape[0]) if token not in (PAD, BOS, EOS)]
    result: dict[tuple[int, ...], float] = {}
    for length in range(limit + 1):
        for ids in product(words, repeat=length):
            probability = 1.0
            for place, token in enumerate([*ids, EOS]):
                if place == limit:  # nothing but EOS
                    break
                each = next_probabilities(model, source, list(ids[:place]))
                each[PAD] = each[BOS] = 0.0
                kept = [value if value >= epsilon else 0.0 for value in each]
                if not any(kept):
                    kept[each.index(max(each))] = 1.0
                probability *= kept[token] / sum(kept)
            result[ids] = probability
    assert sum(result.values()) == pytest.approx(1.0)
    return result


@pytest.mark.parametrize("epsilon", [0.0, 0.15, 0.4, 0.99])
@pytest.mark.parametrize("seed", [1, 4])
def test_frequencies_are_the_models_probabilities(epsilon: float, seed: int) -> None:
    model, count, limit = random_model(7, seed=seed), 20_000, 2
    source = random_sources(7, [3])
    (found,) = drawn(
        model, source, num_samples=count, epsilon=epsilon, max_length_ratio=0.0, max_length_offset=limit
    )
    frequencies = Counter(tuple(one.ids) for one in found)
    expected = distribution(model, source, limit, epsilon)
    assert set(frequencies) <= {ids for ids, probability in expected.items() if probability > 0}
    for ids, probability in expected.items():
        deviation = (probability * (1 - probability) / count) ** 0.5
        assert frequencies[ids] / count == pytest.approx(probability, abs=5 * deviation + 1e-4)


def test_log_probabilities_are_the_models_own_and_the_best_score_comes_first() -> None:
    model = random_model(12, seed=1)
    source = random_sources(12, [4])
    (found,) = drawn(model, source, num_samples=30, epsilon=0.1)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert len({tuple(one.ids) for one in found}) > 2
    for ids, score, log_probability in found:
        assert log_probability == pytest.approx(log_probability_of(model, source, ids), abs=1e-4)
        assert score == pytest.approx(score_of(log_probability, ids, 0.6), abs=1e-5)


def test_epsilon_excludes_all_below_it_but_the_most_probable_token() -> None:
    model, epsilon = random_model(12, seed=2), 0.12
    lengths = [5, 3]
    source = random_sources(12, lengths)
    for row, length, samples in zip(
        source, lengths, drawn(model, source, num_samples=40, epsilon=epsilon), strict=True
    ):
        limit = int(1.5 * length + 2)
        for ids, _, _ in samples:
            for place, token in enumerate([*ids, EOS][:limit]):
                each = next_probabilities(model, row[None, : length + 1], ids[:place])
                each[PAD] = each[BOS] = 0.0
                assert each[token] >= epsilon - 1e-6 or each[token] == pytest.approx(max(each))


def test_the_seed_decides_and_nothing_else() -> None:
    model = random_model(40, seed=3)
    source = random_sources(40, LENGTHS)
    once = drawn(model, source)
    torch.manual_seed(99)
    assert drawn(model, source) == once
    assert ids_of(drawn(model, source, seed=2)) != ids_of(once)


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_batch_size_and_order_change_nothing(epsilon: float) -> None:
    model = random_model(40, seed=3)
    source = random_sources(40, LENGTHS)
    together = ids_of(drawn(model, source, epsilon=epsilon))
    order = torch.randperm(len(LENGTHS), generator=torch.Generator().manual_seed(0))
    shuffled = ids_of(drawn(model, source[order], epsilon=epsilon))
    for place, row in enumerate(order.tolist()):
        assert shuffled[place] == together[row]
        alone = drawn(model, source[[row], : LENGTHS[row] + 1], epsilon=epsilon)
        assert ids_of(alone) == [together[row]]


def test_samples_of_one_sentence_are_not_all_the_same_and_two_sentences_differ() -> None:
    model = random_model(40, seed=3)
    source = random_sources(40, [7, 7])
    first, second = ids_of(drawn(model, source, num_samples=20))
    assert len({tuple(ids) for ids in first}) > 10
    assert first != second


def test_an_ensemble_of_one_model_twice_draws_what_the_model_draws() -> None:
    model = random_model(40, seed=3)
    source = random_sources(40, LENGTHS)
    assert ids_of(drawn(Ensemble([model, model]), source)) == ids_of(drawn(model, source))
    other = random_model(40, seed=8)
    assert ids_of(drawn(Ensemble([model, other]), source)) != ids_of(drawn(model, source))


def test_no_sample_exceeds_its_own_limit_nor_holds_padding() -> None:
    model = random_model(12, seed=4)
    with torch.no_grad():  # a model that would rather never end, and likes PAD and BOS
        model.decoder_norm.bias.sub_(model.output_weight[EOS] * 3)
        model.decoder_norm.bias.add_((model.output_weight[PAD] + model.output_weight[BOS]) * 3)
    lengths = [6, 0, 3]
    found = drawn(model, random_sources(12, lengths), max_length_offset=1)
    for length, samples in zip(lengths, found, strict=True):
        assert len(samples) == 6
        assert max(len(one.ids) for one in samples) <= int(1.5 * length + 1)
        assert not any({PAD, BOS, EOS} & set(one.ids) for one in samples)
    assert len(found[0][0].ids) == 10


def test_a_limit_of_nothing_gives_the_empty_sentence() -> None:
    model = random_model(12)
    (found,) = drawn(model, random_sources(12, [0]), max_length_offset=0)
    assert [one.ids for one in found] == [[]] * 6
    assert drawn(model, torch.empty(0, 3, dtype=torch.int64)) == []


def test_dropout_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"model\.eval"):
        drawn(random_model(12).train(), random_sources(12, [3]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_samples": 0}, r"decoding\.num_hypotheses=0"),
        ({"epsilon": 1.0}, r"decoding\.sampling_epsilon=1\.0"),
        ({"epsilon": -0.1}, r"decoding\.sampling_epsilon=-0\.1"),
    ],
)
def test_numbers_with_which_nothing_can_be_drawn_are_refused_by_key(
    changes: dict[str, float], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        drawn(random_model(12), random_sources(12, [3]), **changes)
