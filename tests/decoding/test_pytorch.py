"""The engine over our own model: its batches, and that it searches and draws as its settings say."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from echo import BEAM
from reference import random_model, random_sources, search

from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.errors import UserError
from endeavour.special import EOS


class Recording(PyTorchEngine):
    """Notes the shape of each batch, and gives back the length of each source."""

    def _search_batch(self, sources: Sequence[Sequence[int]], *_: object) -> list[list[Hypothesis]]:
        self.shapes = [*getattr(self, "shapes", []), (len(sources), max(map(len, sources)))]
        assert not self.model.training
        return [[Hypothesis([len(source)], 0.0, 0.0)] for source in sources]


@pytest.mark.parametrize(
    ("beam", "drawn", "budget", "shapes"),
    [
        (1, 1, 12, [(2, 6), (4, 2)]),
        (2, 1, 12, [(1, 6), (1, 6), (3, 2), (1, 2)]),
        (1, 2, 12, [(2, 6), (4, 2)]),
        (1, 3, 37, [(6, 6)]),
        (7, 1, 12, [(1, 6), (1, 6), *[(1, 2)] * 4]),
        (13, 1, 12, [(1, 6), (1, 6), *[(1, 2)] * 4]),
    ],
)
def test_batches_are_as_large_as_tokens_per_batch_allows_for_each_hypothesis(
    beam: int, drawn: int, budget: int, shapes: list[tuple[int, int]]
) -> None:
    found: list[list[tuple[int, int]]] = []
    settings = [{"beam_size": beam, "num_hypotheses": min(beam, drawn)}]
    if beam > 1:  # the same of draws
        settings.append({"beam_size": 1, "num_hypotheses": beam, "sampling": True})
    for changes in settings:
        engine = Recording(random_model(12), replace(BEAM, tokens_per_batch=budget, **changes))
        lengths = [2, 6, 2, 2, 6, 2]
        sources = [[5] * (length - 1) + [EOS] for length in lengths]
        assert [row[0].ids for row in engine.search(sources)] == [[length] for length in lengths]
        found.append(engine.shapes)
    assert found == [shapes] * len(found)


def test_batches_are_larger_on_a_gpu(device: torch.device) -> None:
    engine = Recording(random_model(12).to(device), replace(BEAM, beam_size=1, tokens_per_batch=12))
    engine.search([[5] * 5 + [EOS]] * 20)
    assert [pairs for pairs, _ in engine.shapes] == ([16, 4] if device.type == "cuda" else [2] * 10)


@pytest.mark.parametrize("drawn", [{}, {"beam_size": 1, "sampling": True}])
@pytest.mark.parametrize(
    ("weight", "precision", "remedy"),
    [
        (torch.nan, "fp32", "training diverged"),
        (torch.nan, "fp16", "training diverged"),
        (torch.inf, "fp32", "training diverged"),
        (1e6, "fp16", r"decoding\.precision=fp32"),
    ],
)
def test_a_model_without_probabilities_has_diverged_unless_it_has_some_in_fp32(
    weight: float, precision: str, remedy: str, drawn: dict[str, object]
) -> None:
    model = random_model(12)
    with torch.no_grad():
        model.output_weight.mul_(0).add_(weight)
    engine = PyTorchEngine(model, replace(BEAM, precision=precision, **drawn))
    with pytest.raises(UserError, match=remedy) as caught:
        engine.search([[5, EOS]])
    assert ("precision=fp32" in str(caught.value)) == ("precision" in remedy)


@pytest.mark.parametrize("training", [False, True])
def test_an_engine_leaves_the_model_in_its_mode_and_says_its_limit(training: bool) -> None:
    model = random_model(12, positions="learned", max_length=9).train(training)
    engine = PyTorchEngine(model, BEAM)
    engine.search([[5, EOS]])
    assert model.training == training
    assert engine.longest == 9
    assert PyTorchEngine(random_model(12), BEAM).longest is None


def test_an_engine_searches_with_its_settings() -> None:
    model, source = random_model(12, seed=3), random_sources(12, [6, 6, 6])
    settings = {
        "beam_size": 3,
        "length_penalty": 2.0,
        "max_length_ratio": 0.5,
        "max_length_offset": 3,
        "num_hypotheses": 2,
    }
    engine = PyTorchEngine(model, replace(BEAM, **settings))
    expected = search(model, source, limit=6, beam_size=3, alpha=2.0, num_hypotheses=2)
    assert engine.search(source.tolist()) == expected
    for key, other in (
        ("beam_size", 6),
        ("length_penalty", 0.0),
        ("max_length_ratio", 0.0),
        ("max_length_offset", 0),
        ("num_hypotheses", 1),
    ):
        assert (
            PyTorchEngine(model, replace(BEAM, **{**settings, key: other})).search(source.tolist())
            != expected
        )


DRAWS = {"sampling": True, "beam_size": 1, "num_hypotheses": 6, "length_penalty": 1.0, "max_length_offset": 4}


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.1},
        {"top_k": 1},
        {"epsilon": 0.3},
        {"seed": 2},
        {"length_penalty": 0.0},
        {"max_length_ratio": 0.0},
        {"max_length_offset": 0},
        {"num_hypotheses": 7},
    ],
)
def test_an_engine_draws_with_its_settings(change: dict[str, float]) -> None:
    model, sources = random_model(12, seed=3), [[5, 6, EOS], [7, 8, EOS]]
    drawn = PyTorchEngine(model, replace(BEAM, **DRAWS)).search(sources)
    assert drawn == PyTorchEngine(model, replace(BEAM, **DRAWS)).search(sources)
    assert PyTorchEngine(model, replace(BEAM, **{**DRAWS, **change})).search(sources) != drawn
    assert {len(row) for row in drawn} == {6}


def test_what_is_drawn_is_a_matter_of_the_sources() -> None:
    engine = PyTorchEngine(random_model(12, seed=3), replace(BEAM, **DRAWS))
    first = engine.search([[5, 6, EOS]])
    assert engine.search([[6, 5, EOS]]) != first
    assert engine.search([[5, 6, EOS]]) == first
