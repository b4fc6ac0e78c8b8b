"""When a search ends, and what it gives back then, on models small enough to work out by hand."""

import math
from dataclasses import replace

import pytest
import torch
from reference import search

from configs import run_config
from endeavour.decoding import beam_search as module
from endeavour.decoding.beam_search import beam_search
from endeavour.decoding.engine import limit_of
from endeavour.special import BOS, EOS, PAD
from scripted import OTHER, REST, WORD, Scripted, sources

CERTAIN = 1.0 - 1e-9


def penalty(tokens: int) -> float:
    """With α = 1, `tokens` counting EOS."""
    return (5 + tokens) / 6


def rivals(limit: int, short: float) -> Scripted:
    """The empty sentence has the log-probability `short`; WORD has -1 and all that follows it, to the limit, 0."""
    first = {EOS: math.exp(short), WORD: math.exp(-1.0)}
    return Scripted([[first, *[{WORD: CERTAIN}] * (limit - 1), {EOS: CERTAIN}]])


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
@pytest.mark.parametrize("margin", [0.004, -0.004])
def test_a_search_ends_when_the_longest_sentence_could_not_win_and_not_before(
    limit: int, margin: float
) -> None:
    reachable = -1.0 / penalty(limit + 1)  # by what lives on: `limit` tokens and EOS
    model = rivals(limit, reachable + margin)
    ((best,),) = search(model, sources(1), beam_size=2, alpha=1.0, limit=limit)
    if margin > 0:
        assert best.ids == []
        assert len(model.seen) == 1
    else:
        assert best.ids == [WORD] * limit
        assert best.score == pytest.approx(reachable, abs=1e-5)
        assert best.log_probability == pytest.approx(-1.0, abs=1e-5)


def test_of_two_that_are_asked_for_the_second_decides_when_the_search_ends() -> None:
    script = [{EOS: 0.9, WORD: 0.08}, {EOS: 0.5, WORD: 0.4}, {EOS: CERTAIN}]
    found = {}
    for count in (1, 2):
        model = Scripted([script])
        (found[count],) = search(model, sources(1), beam_size=2, num_hypotheses=count, alpha=0.0)
        assert len(model.seen) == count
    assert [one.ids for one in found[2]] == [[], [WORD]]
    assert found[1] == found[2][:1]
    assert found[2][1].log_probability == pytest.approx(math.log(0.08 * 0.5), abs=1e-5)


def test_an_equal_score_ends_a_search_too() -> None:
    """What could at best be as good does not come first any more."""
    model = Scripted([[{EOS: 0.5, WORD: 0.5}, {EOS: CERTAIN}]])
    ((best,),) = search(model, sources(1), beam_size=2, alpha=0.0)
    assert best.ids == []
    assert len(model.seen) == 1


def long(tokens: int) -> list[dict[int, float]]:
    """A sentence that is sure of its length."""
    return [*[{WORD: CERTAIN}] * tokens, {EOS: CERTAIN}]


@pytest.mark.parametrize("beam", [1, 3])
def test_sentences_that_are_done_leave_the_batch_together(beam: int) -> None:
    """One of eight waits, two of eight are a quarter and go; each has its own translation."""
    lengths = [1, 4, 2, 4, 5, 4, 4, 4]
    model = Scripted([long(length) for length in lengths])
    found = search(model, sources(8), beam_size=beam, alpha=0.0, limit=5)
    assert [one.ids for (one,) in found] == [[WORD] * length for length in lengths]
    assert [batch for batch, _ in model.seen] == [8, 8, 8, 6, 6, 1]
    assert {width for _, width in model.seen} == {beam}


def test_only_eos_follows_the_last_token_that_a_limit_allows_at_the_models_price() -> None:
    script = [{WORD: 0.7, OTHER: 0.2}, {WORD: 0.9, EOS: 0.06}]
    limited = {"alpha": 0.0, "limit": 1, "num_hypotheses": 3}
    (found,) = search(Scripted([script]), sources(1), beam_size=3, **limited)
    assert [one.ids for one in found] == [[WORD], [OTHER], [REST]]
    assert [math.exp(one.log_probability) for one in found] == pytest.approx(
        [0.7 * 0.06, 0.2 * 0.06, 0.1 * 0.06], rel=1e-4
    )


def test_each_sentence_of_a_batch_ends_at_its_own_limit() -> None:
    source = torch.tensor([[WORD, EOS, PAD, PAD], [WORD, WORD, WORD, EOS], [EOS, PAD, PAD, PAD]])
    model = Scripted([[{WORD: 0.9, EOS: 0.01}]] * 3)
    found = beam_search(model, source, [1, 3, 0], beam_size=2, alpha=0.0, num_hypotheses=1)
    assert [len(one.ids) for (one,) in found] == [1, 3, 0]
    for (one,) in found:
        expected = 0.01 * 0.9 ** len(one.ids)
        assert math.exp(one.log_probability) == pytest.approx(expected, rel=1e-4)


def test_padding_and_bos_are_never_generated_however_probable() -> None:
    model = Scripted([[{PAD: 0.5, BOS: 0.4, WORD: 0.02, EOS: 0.05}]])
    (found,) = search(model, sources(1), beam_size=4, num_hypotheses=4, limit=2)
    assert all(set(one.ids) <= {WORD, REST} for one in found)
    assert math.exp(max(found, key=lambda one: one.log_probability).log_probability) == pytest.approx(0.05)


def test_a_length_limit_is_that_of_its_formula() -> None:
    for tokens, ratio, offset, positions, expected in (
        (10, 1.25, 3, None, 15),
        (10, 0.99, 0, None, 9),
        (10, 1.0, 0, 11, 10),
        (10, 1.0, 0, 10, 9),
        (0, 2.0, 0, 1, 0),
    ):
        decoding = replace(run_config().decoding, max_length_ratio=ratio, max_length_offset=offset)
        assert limit_of(decoding, tokens, positions=positions) == expected


def test_beams_that_are_wider_than_the_vocabulary_find_all_there_is() -> None:
    model = Scripted([[{EOS: 0.5, WORD: 0.3}]])
    (found,) = search(model, sources(1), beam_size=40, num_hypotheses=40, limit=1)
    assert {tuple(one.ids) for one in found if one.log_probability > -20} == {(), (WORD,), (REST,)}


def test_a_sentence_ends_by_its_own_hypotheses_alone() -> None:
    script, certain = rivals(3, -0.4).scripts[0], long(3)
    model = Scripted([script, certain])
    found = search(model, sources(2), beam_size=2, alpha=1.0, limit=3)
    assert [one.ids for (one,) in found] == [[], [WORD] * 3]
    assert [batch for batch, _ in model.seen] == [2, 1, 1, 1]


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (2, 1, 2)])
def test_the_largest_score_is_found_wherever_it_stands(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MANY_SCORES", 0)
    vocabulary = 3 * module.BLOCK + 5
    for place in range(vocabulary):
        scores = torch.zeros(*shape, vocabulary)
        scores[..., place], scores[..., (place + 70) % vocabulary] = 2.0, 1.0
        found, places = module.largest(scores, 2)
        assert found.tolist() == torch.tensor([2.0, 1.0]).expand(*shape, 2).tolist()
        assert places.tolist() == torch.tensor([place, (place + 70) % vocabulary]).expand(*shape, 2).tolist()


@pytest.mark.parametrize(
    ("device", "many", "count", "blocked"),
    [
        ("cpu", 0, 1, True),
        ("cpu", 0, 4, True),
        ("cpu", 0, 5, False),
        ("cpu", -1, 1, False),
        ("meta", 0, 1, False),
        ("meta", -1, 1, False),
    ],
)
def test_blocks_are_for_many_scores_on_a_cpu(
    device: str, many: int, count: int, blocked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as MANY_SCORES, or one fewer; no more of them than there are blocks."""
    scores = torch.zeros(3, 2, 4 * module.BLOCK, device=device)
    monkeypatch.setattr(module, "MANY_SCORES", scores.numel() - many)
    asked: list[object] = []
    plain = torch.Tensor.unflatten
    monkeypatch.setattr(torch.Tensor, "unflatten", lambda *given: asked.append(given) or plain(*given))
    assert [part.shape for part in module.largest(scores, count)] == [(3, 2, count)] * 2
    assert bool(asked) == blocked
