"""Probabilities of given translations, against one sentence and one token at a time."""

import math

import pytest
import torch
from reference import random_model, random_sources, search
from torch import Tensor

from endeavour.decoding import scoring
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.scoring import log_probabilities, score_pieces
from endeavour.special import BOS, EOS, PAD


def _logits(source: Tensor, target_in: Tensor) -> Tensor:
    """Depends on all of the source and on the past of the target alone; PAD counts for nothing."""
    past = torch.where(target_in == PAD, 0, target_in).cumsum(dim=1)
    seed = (past + source.sum(dim=1, keepdim=True))[..., None] * torch.arange(1, 9)
    return torch.sin(seed.float())


def _elsewhere(source: Tensor, target_in: Tensor) -> Tensor:
    assert (source.device.type, target_in.device.type) == ("meta", "meta")
    return torch.zeros(*target_in.shape, 8, device="meta")


def test_against_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [[5, 6, EOS], [7, EOS], [4, 4, 4, EOS], [6, EOS]]
    targets = [[4, 5], [], [7, 7, 7], [6]]
    for excluded in ((), (PAD, BOS)):
        expected: list[float] = []
        for source, target in zip(sources, targets, strict=True):
            logits = _logits(torch.tensor([source]), torch.tensor([[BOS, *target]]))[0]
            logits[:, list(excluded)] = -torch.inf
            rows = logits.log_softmax(dim=-1)
            expected.append(sum(float(row[token]) for row, token in zip(rows, [*target, EOS], strict=True)))
        for budget in (1, 1000):
            monkeypatch.setattr(scoring, "TOKENS_PER_BATCH", budget)
            found = log_probabilities(_logits, sources, targets, excluded=excluded)
            torch.testing.assert_close(torch.tensor(found), torch.tensor(expected))
    assert log_probabilities(_logits, [], []) == []


def test_pieces_against_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [[5, 6, EOS], [7, EOS], [4, 4, 4, EOS], [6, EOS]]
    targets = [[4, 5], [], [7, 7, 7], [6]]
    for budget in (1, 1000):
        monkeypatch.setattr(scoring, "TOKENS_PER_BATCH", budget)
        found = score_pieces(_logits, sources, targets, alternatives=3)
        for source, target, pieces in zip(sources, targets, found, strict=True):
            rows = _logits(torch.tensor([source]), torch.tensor([[BOS, *target]]))[0].log_softmax(dim=-1)
            assert [piece.token for piece in pieces] == [*target, EOS]
            for row, piece in zip(rows, pieces, strict=True):
                value = float(row[piece.token])
                assert piece.log_probability == pytest.approx(value, abs=1e-5)
                assert piece.rank == sum(other > value for other in row.tolist())
                assert piece.entropy == pytest.approx(float(-(row.exp() * row).sum()), abs=1e-5)
                allowed = sorted(
                    ((v, i) for i, v in enumerate(row.tolist()) if i not in (PAD, BOS)), reverse=True
                )
                assert [number for number, _ in piece.alternatives] == [number for _, number in allowed[:3]]
                values = [value for _, value in piece.alternatives]
                assert values == pytest.approx([value for value, _ in allowed[:3]], abs=1e-5)
    everything = score_pieces(_logits, [[5, EOS]], [[]], alternatives=100)[0][0].alternatives
    assert len(everything) == 6
    assert score_pieces(_logits, [[5, EOS]], [[4]])[0][1].alternatives == []
    assert score_pieces(_logits, [], []) == []
    with pytest.raises(NotImplementedError, match="meta"):  # only once the results are read
        score_pieces(_elsewhere, [[5, EOS]], [[4]], device=torch.device("meta"))


@pytest.mark.parametrize("count", [1, 2])
def test_scores_are_those_that_the_search_gave_the_same_ids(count: int) -> None:
    members = [random_model(20, seed=seed) for seed in range(count)]
    model = members[0] if count == 1 else Ensemble(members)
    source = random_sources(20, [6, 3, 5])
    for row, hypotheses in zip(source.tolist(), search(model, source, num_hypotheses=4), strict=True):
        ids = [number for number in row if number != PAD]
        targets = [one.ids for one in hypotheses]
        whole = [one.log_probability for one in hypotheses]
        assert log_probabilities(model, [ids] * 4, targets) == pytest.approx(whole, abs=1e-4)
        pieces = score_pieces(model, [ids] * 4, targets)
        assert [sum(piece.log_probability for piece in row) for row in pieces] == pytest.approx(
            whole, abs=1e-4
        )


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
    with pytest.raises(NotImplementedError, match="meta"):  # only once the sums are read
        log_probabilities(_elsewhere, [[4, EOS]], [[4]], device=torch.device("meta"))
