"""Probabilities of given translations, against one sentence and one token at a time."""

import pytest
import torch
from torch import Tensor

from endeavour.decoding import scoring
from endeavour.decoding.scoring import log_probabilities
from endeavour.special import BOS, EOS, PAD


def _logits(source: Tensor, target_in: Tensor) -> Tensor:
    """Depends on all of the source and on the past of the target alone; PAD counts for nothing."""
    past = torch.where(target_in == PAD, 0, target_in).cumsum(dim=1)
    seed = (past + source.sum(dim=1, keepdim=True))[..., None] * torch.arange(1, 9)
    return torch.sin(seed.float())


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
