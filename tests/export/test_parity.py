"""The comparison of two engines: what counts as the same, as a tie, and as another model."""

from collections.abc import Callable, Sequence
from itertools import accumulate, cycle
from typing import Any

import pytest
import torch

from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.scoring import log_probabilities
from endeavour.export.parity import Parity, measure_parity
from endeavour.model.transformer import Transformer


class Fixed:
    """An engine that gives what it was told to."""

    compute_type = "float32"

    def __init__(
        self,
        model: Transformer,
        sources: Sequence[Sequence[int]],
        found: Sequence[Hypothesis],
        *,
        longest: int,
    ) -> None:
        self.longest = longest
        self.model = model
        self.found = dict(zip(map(tuple, sources), found, strict=True))

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        return [[self.found[tuple(source)]] for source in sources]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        return log_probabilities(self.model, sources, targets)


Against = Callable[..., Parity]


@pytest.fixture
def ours(model: Transformer, sources: list[list[int]], decoding: DecodingConfig) -> list[Hypothesis]:
    return [row[0] for row in PyTorchEngine(model, decoding).search(sources)]


@pytest.fixture
def against(
    model: Transformer, sources: list[list[int]], targets: list[list[int]], decoding: DecodingConfig
) -> Against:
    """Compares our search with what another is said to have found, by a model that is ours unless given."""

    def make(found: list[Hypothesis], *, limit: int = 1000, other: Transformer = model) -> Parity:
        return measure_parity(
            PyTorchEngine(model, decoding),
            Fixed(other, sources, found, longest=limit + 1),
            sources=sources,
            targets=targets,
            references=["a b c d"] * len(sources),
            decode=lambda rows: [" ".join(map(str, row)) for row in rows],
            excluded=(),
        )

    return make


def uncut(found: Sequence[Hypothesis]) -> list[int]:
    """Where translations are shorter than the limit of any source."""
    return [place for place, hypothesis in enumerate(found) if len(hypothesis.ids) < 6]


def test_our_own_translations_are_identical(against: Against, ours: list[Hypothesis]) -> None:
    parity = against(ours)
    assert parity.identical == parity.sentences == len(ours)
    assert parity.same_model
    assert parity.bleu_difference == 0


def test_speed_is_that_of_pytorch_over_the_time_of_the_other(
    against: Against, ours: list[Hypothesis], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(accumulate(cycle([0.0, 6.0, 1.0, 2.0])))  # at the beginning and the end of either's turn
    monkeypatch.setattr("endeavour.export.parity.time.perf_counter", lambda: next(clock))
    assert against(ours).speed == 3


def test_a_worse_translation_with_its_true_probability_is_a_matter_of_search(
    against: Against, model: Transformer, ours: list[Hypothesis], sources: list[list[int]]
) -> None:
    worse = [*ours[0].ids, 5, 9]
    (true,) = log_probabilities(model, sources[:1], [worse])
    parity = against([Hypothesis(worse, 0.0, true), *ours[1:]])
    assert (parity.identical, parity.ours_better, parity.ties) == (len(ours) - 1, 1, 0)
    assert parity.same_model


def test_a_wrong_probability_is_another_model_unless_the_limit_cut_it(
    against: Against, ours: list[Hypothesis]
) -> None:
    place = uncut(ours)[-1]
    amount = 0.1 * (len(ours[place].ids) + 1)
    wrong = [*ours]
    wrong[place] = ours[place]._replace(log_probability=ours[place].log_probability - amount)
    parity = against(wrong)
    assert not parity.same_model
    assert parity.largest_difference == pytest.approx(0.1, abs=1e-4)
    assert against(wrong, limit=0).same_model


def test_what_is_no_number_is_no_agreement_wherever_it_stands(
    against: Against, ours: list[Hypothesis]
) -> None:
    assert len(uncut(ours)) > len(ours) / 2
    for place in uncut(ours):
        wrong = [*ours]
        wrong[place] = ours[place]._replace(log_probability=float("nan"))
        assert not against(wrong).same_model


def test_a_model_that_scores_the_references_otherwise_is_another_whatever_it_translates(
    against: Against, random_model: Any, ours: list[Hypothesis]
) -> None:
    other = random_model()
    with torch.no_grad():
        other.decoder_norm.bias += 0.02 * torch.randn(16, generator=torch.Generator().manual_seed(0))
    assert not against(ours, limit=0, other=other).same_model
