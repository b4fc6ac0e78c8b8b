"""Beam search against a slow and simple one, against exhaustive search, against itself in other batches."""

from itertools import product

import pytest
import torch
from reference import (
    assert_same,
    log_probability_of,
    random_model,
    random_sources,
    score_of,
    search,
    simple_search,
)

from configs import run_config
from endeavour.decoding import beam_search as search_module
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.special import EOS, PAD

pytestmark = pytest.mark.usefixtures("on_device")


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_equals_exhaustive_search(alpha: float, seed: int) -> None:
    vocabulary, limit = 6, 4  # UNK and two words can be generated: 3^4 of the longest sentences
    model = random_model(vocabulary, seed=seed)
    source = random_sources(vocabulary, [3])
    sentences = [[*ids] for length in range(limit + 1) for ids in product([1, 4, 5], repeat=length)]
    everything: list[Hypothesis] = []
    for ids in sentences:
        log_probability = log_probability_of(model, source, ids)
        everything.append(Hypothesis(ids, score_of(log_probability, ids, alpha), log_probability))
    everything.sort(key=lambda hypothesis: -hypothesis.score)
    (found,) = search(model, source, limit=limit, beam_size=121, num_hypotheses=121, alpha=alpha)
    assert_same(found, everything)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_equals_the_simple_search_sentence_by_sentence(
    alpha: float, beam: int, positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many steps are computed before the host looks at what is done, 4 as on a GPU or each."""
    model = random_model(12, seed=beam, positions=positions)
    source = random_sources(12, [5, 1, 8, 0, 3, 8, 2])
    lengths = (source > EOS).sum(dim=1).tolist()
    expected = [
        simple_search(model, row[None, : length + 1], beam, int(1.5 * length + 2), alpha)[:beam]
        for row, length in zip(source, lengths, strict=True)
    ]
    for unseen in (1, 4):
        monkeypatch.setattr(search_module, "STEPS_UNSEEN", dict.fromkeys(search_module.STEPS_UNSEEN, unseen))
        found = search(model, source, beam_size=beam, num_hypotheses=beam, alpha=alpha)
        for hypotheses, alone in zip(found, expected, strict=True):
            assert_same(hypotheses, alone)


@pytest.mark.parametrize("beam", [1, 4])
def test_batch_size_and_order_change_nothing(beam: int) -> None:
    model = random_model(40, seed=3)
    lengths = [4, 9, 0, 2, 7, 7, 1, 12, 3, 5]
    source = random_sources(40, lengths)
    together = search(model, source, beam_size=beam, num_hypotheses=beam)
    order = torch.randperm(len(lengths), generator=torch.Generator().manual_seed(0), device="cpu")
    shuffled = search(model, source[order], beam_size=beam, num_hypotheses=beam)
    for place, row in enumerate(order.tolist()):
        assert_same(shuffled[place], together[row])
        (alone,) = search(model, source[[row], : lengths[row] + 1], beam_size=beam, num_hypotheses=beam)
        assert_same(alone, together[row])


def test_stopping_early_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(30, seed=2)
    source = random_sources(30, [5, 8, 2, 11])
    early = search(model, source, num_hypotheses=2, alpha=1.0)
    state = search_module._State  # type: ignore[attr-defined]
    monkeypatch.setattr(state, "done", lambda self: self.generated > self.limits)
    late = search(model, source, num_hypotheses=2, alpha=1.0)
    for ours, theirs in zip(early, late, strict=True):
        assert_same(ours, theirs)


def test_a_limit_of_nothing_gives_the_empty_sentence() -> None:
    model = random_model(12)
    (found,) = search(model, random_sources(12, [0]), num_hypotheses=4, limit=0)
    assert [hypothesis.ids for hypothesis in found] == [[]]
    assert search(model, torch.empty(0, 3, dtype=torch.int64)) == []


def test_dropout_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"model\.eval"):
        search(random_model(12).train(), random_sources(12, [3]))


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("changes", [{}, {"positions": "rotary"}, {"positions": "learned", "norm": "post"}])
def test_scores_are_those_of_fp32_but_for_rounding(
    precision: str, dtype: torch.dtype, beam_size: int, changes: dict[str, object]
) -> None:
    model = random_model(12, **changes)
    source = random_sources(12, [5, 0, 9, 3])
    decoding = run_config([f"decoding.precision={precision}", f"decoding.beam_size={beam_size}"]).decoding
    sources = [[int(number) for number in row if number != PAD] for row in source]
    engine = PyTorchEngine(model, decoding)
    assert {parameter.dtype for parameter in engine.model.parameters()} == {dtype}
    found = engine.search(sources)
    exact = [
        log_probability_of(model, torch.tensor([ids]), hypotheses[0].ids)
        for ids, hypotheses in zip(sources, found, strict=True)
    ]
    rounded = [hypotheses[0].log_probability for hypotheses in found]
    assert rounded != pytest.approx(exact, abs=1e-6)
    assert rounded == pytest.approx(exact, rel=0.05, abs=0.3)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize(("vocabulary", "count"), [(64, 1), (200, 1), (200, 3), (200, 4), (331, 5), (64, 64)])
@pytest.mark.parametrize("different", [3, 1000])  # scores: nearly all are equal, or hardly any
@pytest.mark.parametrize("hidden", [0.0, 0.99])
def test_the_largest_scores_are_those_of_topk(
    vocabulary: int, count: int, different: int, hidden: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "MANY_SCORES", 0)
    torch.manual_seed(vocabulary + count)
    scores = torch.randint(different, (8, 5, vocabulary)).float()
    scores.masked_fill_(torch.rand(8, 5, vocabulary) < hidden, -torch.inf)
    found, places = search_module.largest(scores, count)
    assert torch.equal(found, scores.topk(count).values)
    assert torch.equal(found, scores.gather(-1, places))
    assert all(len(set(row)) == count for row in places.flatten(0, 1).tolist())  # none twice
