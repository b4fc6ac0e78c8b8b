"""Habits of heads, measured on attention whose habits are known."""

from collections.abc import Sequence

import pytest
import torch

from configs import run_config
from endeavour.evaluation import head_habits as measured
from endeavour.evaluation.head_habits import KINDS, head_habits
from endeavour.model.transformer import AttentionMaps, Transformer
from endeavour.special import EOS

POINT = 9
PAIRS = [
    ([5, 6, 7, POINT, EOS], [15, 17, 16]),
    ([6, 7, EOS], [17, 16]),
    ([5, 7, EOS], [15, 17]),
    ([5, EOS], [15]),
]
SMALL = [
    "model=tiny",
    "model.width=8",
    "model.num_heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=2",
]


def _pointing(queries: int, keys: int, place: Sequence[int]) -> torch.Tensor:
    """A head that gives all its weight to one key: (1, 1, queries, keys)."""
    weights = torch.zeros(1, 1, queries, keys)
    for query in range(queries):
        weights[0, 0, query, min(max(place[query], 0), keys - 1)] = 1.0
    return weights


def test_habits_of_heads_that_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder looks one back, the decoder at itself, the cross-attention at the token with its number less 10."""

    def known(_: object, source: Sequence[int], target: Sequence[int]) -> AttentionMaps:
        own, theirs = len(source), len(target) + 1
        aligned = [source.index(token - 10) for token in target] + [own - 1]
        return AttentionMaps(
            _pointing(own, own, range(-1, own - 1)),
            _pointing(theirs, theirs, range(theirs)),
            _pointing(theirs, own, aligned),
        )

    monkeypatch.setattr(measured, "attention", known)
    habits = head_habits(None, PAIRS * 5, {POINT})  # pyright: ignore[reportArgumentType]
    shares = {kind: {habit: float(share) for habit, share in habits.shares[kind].items()} for kind in KINDS}
    assert shares["encoder"]["one back"] == shares["decoder"]["itself"] == pytest.approx(1)
    assert shares["cross"]["what is translated now"] == pytest.approx(1)
    assert shares["encoder"]["one ahead"] == shares["decoder"]["two back"] == 0
    # EOS of four pairs, whose lengths with EOS are 5, 3, 3 and 2, is looked at by itself only, in the cross-attention.
    assert shares["cross"]["the end"] == pytest.approx(4 / (4 + 3 + 3 + 2))
    # Of 5 queries one looks at the full stop, which only the first pair has.
    assert shares["encoder"]["punctuation"] == pytest.approx(1 / 5)


def test_a_head_that_looks_everywhere_alike_has_the_even_share() -> None:
    model = Transformer(run_config(SMALL).model, source_vocabulary=20, target_vocabulary=20).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "attention" in name:
                parameter.zero_()  # all scores are 0
    habits = head_habits(model, PAIRS, {POINT})
    for kind in KINDS:
        layers = 1 if kind == "encoder" else 2
        for habit, share in habits.shares[kind].items():
            torch.testing.assert_close(share, torch.full((layers, 2), habits.even[kind][habit]))
