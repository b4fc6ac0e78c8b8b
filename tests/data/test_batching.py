"""Batches: every pair once, within the budget, little padding, an order that (seed, epoch) alone decides."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from endeavour.data.arrays import RaggedWriter
from endeavour.data.batching import collate, epoch_batches, length_batches, pad
from endeavour.data.dataset import ParallelDataset
from endeavour.errors import UserError
from endeavour.special import BOS, EOS, PAD

REAL = Path(__file__).parents[3] / "shared" / "data" / "multi30k"


def lengths(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(values, np.int32)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200),
    st.integers(40, 400),
    st.integers(0, 5),
)
def test_every_pair_once_and_within_the_budget(pairs: list[tuple[int, int]], budget: int, epoch: int) -> None:
    source, target = (lengths([pair[side] for pair in pairs]) for side in (0, 1))
    batches = epoch_batches(source, target, tokens_per_batch=budget, seed=1, epoch=epoch)
    assert sorted(np.concatenate(batches)) == list(range(len(pairs)))
    for rows in batches:
        assert len(rows) * max(source[rows].max(), target[rows].max()) <= budget


def test_a_batch_is_as_large_as_the_budget_however_short_its_pairs() -> None:
    source, target = lengths([2] * 40_000), lengths([1, 2] * 20_000)
    batches = epoch_batches(source, target, tokens_per_batch=16_384, seed=1, epoch=0)
    assert sorted(len(rows) for rows in batches) == [7_232] + [8_192] * 4


def test_few_numbers_of_pairs_a_batch_whatever_the_budget() -> None:
    source, target = (np.full(20_000, length, np.int32) for length in (9, 7))
    for budget in (9, 300, 4_000, 30_000):
        sizes = {
            len(rows) for rows in epoch_batches(source, target, tokens_per_batch=budget, seed=1, epoch=0)
        }
        full, rest = max(sizes), sizes - {max(sizes)}
        assert 15 / 16 * (budget // 9) <= full <= budget // 9, "no more than a sixteenth is given up"
        assert full % (1 << max(0, full.bit_length() - 5)) == 0
        assert len(rest) <= 1, "only what is left at the end may be of another size"


def test_order_is_a_function_of_seed_and_epoch() -> None:
    random = np.random.default_rng(0)
    source, target = (random.integers(1, 30, 500).astype(np.int32) for _ in range(2))

    def order(seed: int, epoch: int) -> list[list[int]]:
        batches = epoch_batches(source, target, tokens_per_batch=256, seed=seed, epoch=epoch)
        return [rows.tolist() for rows in batches]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


def test_a_pair_longer_than_the_budget_is_named_with_its_remedy() -> None:
    with pytest.raises(UserError, match=r"training.tokens_per_batch=10 .* 11 tokens"):
        epoch_batches(lengths([3, 11]), lengths([3, 4]), tokens_per_batch=10, seed=1, epoch=0)


@pytest.mark.skipif(not REAL.is_dir(), reason="Multi30k is not there")
def test_padding_is_under_4_percent_on_multi30k() -> None:
    sides = [(REAL / f"train.{language}").read_text("utf-8").splitlines() for language in ("en", "de")]
    source, target = (lengths([len(line.split()) + 1 for line in side]) for side in sides)
    batches = epoch_batches(source, target, tokens_per_batch=4096, seed=1, epoch=0)
    cells = sum(len(rows) * int(source[rows].max() + target[rows].max()) for rows in batches)
    assert 1 - (source.sum() + target.sum()) / cells < 0.04


def test_collate_shifts_and_pads(tmp_path: Path) -> None:
    for side, rows in (("source", [[9, 8], [7]]), ("target", [[5], [6, 7, 8]])):
        with RaggedWriter(tmp_path / f"train.{side}", vocabulary_size=100) as writer:
            writer.append(rows, end=EOS)
    data = ParallelDataset.open(tmp_path, "train")
    assert data.source.lengths.tolist() == [3, 2]
    batch = collate(data, [1, 0])
    assert batch.source.tolist() == [[7, EOS, PAD], [9, 8, EOS]]
    assert batch.target_out.tolist() == [[6, 7, 8, EOS], [5, EOS, PAD, PAD]]
    assert batch.target_in.tolist() == [[BOS, 6, 7, 8], [BOS, 5, PAD, PAD]]
    assert batch.target_tokens == 6
    assert batch.padding == (3, 14)


def test_pad_gives_int64() -> None:
    padded = pad([[1, 2, 3], [4]])
    assert padded.tolist() == [[1, 2, 3], [4, PAD, PAD]]
    assert padded.dtype == torch.int64


def test_decoding_batches_hold_every_row_once_even_one_beyond_the_budget() -> None:
    sizes = lengths([5, 50, 1, 7, 9])
    batches = length_batches(sizes, 20)
    assert sorted(np.concatenate(batches)) == [0, 1, 2, 3, 4]
    assert all(len(rows) == 1 or len(rows) * sizes[rows].max() <= 20 for rows in batches)
