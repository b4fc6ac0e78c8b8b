"""Searches whose steps are graphs find what those without find, on batches of any sizes and lengths."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from reference import limits_of
from torch import Tensor

from configs import run_config
from emulated_graphs import EmulatedCapture
from endeavour.cuda_graphs import Capture
from endeavour.decoding import graphed
from endeavour.decoding.beam_search import beam_search
from endeavour.decoding.engine import Hypothesis, limit_of
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.graphed import GraphedModel, search_model
from endeavour.decoding.model import Model
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.model.transformer import Transformer
from endeavour.special import EOS, PAD
from random_models import drawn
from untrained import TINIEST

VOCABULARY = 24
DECODING = replace(run_config().decoding, max_length_ratio=1.5, max_length_offset=2)
# Sentences and tokens with EOS; lengths of 1 to 8 share a shape, as do 9 to 16. The last takes almost all positions.
SHAPES = [(3, 5), (3, 7), (9, 12), (3, 3), (10, 16), (10, 9), (3, 6), (2, 17)]
VARIANTS = {
    "sinusoidal": [],
    "rotary": ["model.positions=rotary"],
    "learned": ["model.positions=learned", "model.max_length=18"],
    "post-norm": ["model.norm=post"],
}


def a_model(*overrides: str, seed: int = 0) -> Transformer:
    config = run_config([*TINIEST, *overrides]).model
    return drawn(config, (VOCABULARY, VOCABULARY), alpha=0.3, seed=seed)


def limit(length: int) -> int:
    """Of a search for sources of this length with EOS."""
    return limit_of(DECODING, length - 1, positions=None) + 1


def batches(device: torch.device) -> list[Tensor]:
    """Sources of several lengths in each; the first is the longest."""
    generator = torch.Generator().manual_seed(0)
    made: list[Tensor] = []
    for sentences, length in SHAPES:
        ids = torch.randint(4, VOCABULARY, (sentences, length), generator=generator)
        for row, shorter in enumerate(torch.randint(2, length, (sentences,), generator=generator).tolist()):
            end = length - 1 if row == 0 else shorter - 1
            ids[row, end] = EOS
            ids[row, end + 1 :] = PAD
        made.append(ids.to(device))
    return made


def searched(model: Model, sources: Sequence[Tensor], beam_size: int) -> list[list[list[Hypothesis]]]:
    return [
        beam_search(
            model,
            source,
            limits_of(model, source),
            beam_size=beam_size,
            alpha=0.6,
            num_hypotheses=beam_size,
        )
        for source in sources
    ]


def capture_on(device: torch.device) -> Capture[Tensor] | None:
    """Of CUDA itself where there is one."""
    return EmulatedCapture() if device.type == "cpu" else None


def assert_same(found: list[list[list[Hypothesis]]], expected: list[list[list[Hypothesis]]]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert [[h.ids for h in row] for row in one] == [[h.ids for h in row] for row in other]
        scores = [torch.tensor([h.score for row in side for h in row]) for side in (one, other)]
        torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_searches_of_graphed_steps_are_those_of_computed_ones(
    variant: str, beam_size: int, device: torch.device
) -> None:
    model = a_model(*VARIANTS[variant]).to(device)
    capture = capture_on(device)
    replayed = GraphedModel(model, limit, capture)
    sources = batches(device)
    assert_same(searched(replayed, sources, beam_size), searched(model, sources, beam_size))
    assert len(replayed._graphed) == 2, "of the two shapes that came again"
    if isinstance(capture, EmulatedCapture):
        assert capture.captures == 2
        assert capture.replays > 2


def test_an_ensemble_captures_a_step_of_each_model(device: torch.device) -> None:
    """In one pool: what a model's graph allocates, the next one's may use."""
    models = [a_model("model.norm=post"), a_model("model.positions=rotary", "model.width=24", seed=1)]
    ensemble = Ensemble(models).eval().to(device)
    capture = capture_on(device)
    replayed = GraphedModel(ensemble, limit, capture)
    sources = batches(device)
    assert_same(searched(replayed, sources, 3), searched(ensemble, sources, 3))
    assert len(replayed._graphed) == 2
    if isinstance(capture, EmulatedCapture):
        assert capture.captures == 4


def test_an_engine_has_graphs_on_a_gpu_only(device: torch.device) -> None:
    """A run that asks for them is decoded everywhere."""
    model = a_model().to(device)
    plain = run_config(["decoding.beam_size=3", "decoding.num_hypotheses=3"]).decoding
    graphed_one = replace(plain, cuda_graphs=True)
    assert isinstance(search_model(model, graphed_one, limit), GraphedModel) == (device.type == "cuda")
    assert search_model(model, plain, limit) is model
    sources = [[*ids, EOS] for ids in ([4, 5], [6, 7, 8], [9], [10, 11, 12, 13])]
    engine = PyTorchEngine(model, graphed_one)
    expected = [PyTorchEngine(model, plain).search(sources)]
    for _ in range(3):
        assert_same([engine.search(sources)], expected)


def test_the_shape_that_was_not_needed_for_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphed, "MOST_SHAPES", 1)
    model, capture = a_model(), EmulatedCapture()
    replayed = GraphedModel(model, limit, capture)
    sources = batches(torch.device("cpu"))
    assert_same(searched(replayed, sources, 2), searched(model, sources, 2))
    assert (len(replayed._graphed), capture.captures) == (1, 3)


def test_without_room_nothing_is_graphed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphed, "has_room", lambda device: False)
    model, capture = a_model(), EmulatedCapture()
    replayed = GraphedModel(model, limit, capture)
    sources = batches(torch.device("cpu"))
    assert_same(searched(replayed, sources, 2), searched(model, sources, 2))
    assert (len(replayed._graphed), capture.captures) == (0, 0)
