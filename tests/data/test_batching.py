"""Arrays on disk and batches made of them, against the plainest way to do the same."""

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from endeavour.data import batching
from endeavour.data.batching import Batch, collate, epoch_batches, length_batches
from endeavour.data.dataset import ParallelDataset, RaggedArray, flat, join_rows, save_rows
from endeavour.errors import UserError
from endeavour.special import BOS, EOS, PAD
from endeavour.training.updates import updates
from multi30k import MULTI30K, needs_multi30k

LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=80)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="which files are open is not known")
def test_more_parts_are_joined_than_files_may_be_open(tmp_path: Path) -> None:
    import resource  # of POSIX

    parts = [tmp_path / str(number) for number in range(40)]
    for number, part in enumerate(parts):
        save_rows(part, [flat([[number]], vocabulary_size=100)])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 16, limits[1]))
    try:
        join_rows(parts, tmp_path / "joined")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [row.tolist() for row in RaggedArray(tmp_path / "joined")] == [[n, EOS] for n in range(40)]


def sides(pairs: Sequence[tuple[int, int]]) -> list[np.ndarray[tuple[int], np.dtype[np.int32]]]:
    return [np.array([pair[side] for pair in pairs], np.int32) for side in (0, 1)]


@given(LENGTHS, st.integers(30, 900), st.integers(0, 3))
def test_batches_are_cut_from_the_sorted_pairs_as_a_loop_would(
    pairs: list[tuple[int, int]], budget: int, seed: int
) -> None:
    """Longest side, then the difference of the sides, up and down in turn; as many as fit, of few sizes."""

    def key(row: int) -> tuple[int, int]:
        source, target = pairs[row]
        longest = max(source, target)
        return longest, (source - target) * (1 if longest % 2 else -1)

    batches = list(epoch_batches(*sides(pairs), tokens_per_batch=budget, seed=seed, epoch=0))
    assert sorted(np.concatenate(batches)) == list(range(len(pairs)))
    found = [sorted(key(row) for row in rows) for rows in batches]
    remaining = sorted(key(row) for row in range(len(pairs)))
    expected: list[list[tuple[int, int]]] = []
    while remaining:
        size = 1
        while size < len(remaining) and (size + 1) * remaining[size][0] <= budget:
            size += 1
        if size < len(remaining):
            binary = f"{size:b}"
            size = int(binary[:5] + "0" * len(binary[5:]), 2)
        expected.append(remaining[:size])
        del remaining[:size]
    assert sorted(found) == sorted(expected)


def test_a_batch_is_as_large_as_the_budget_however_short_its_pairs() -> None:
    pairs = sides([(2, 1), (2, 2)] * 20_000)
    batches = epoch_batches(*pairs, tokens_per_batch=16_384, seed=1, epoch=0)
    assert sorted(len(rows) for rows in batches) == [7_232] + [8_192] * 4


def test_a_pair_as_long_as_the_budget_is_a_batch_of_its_own_and_a_longer_one_is_refused() -> None:
    pairs = sides([(10, 3), (2, 10), (4, 4)])
    batches = epoch_batches(*pairs, tokens_per_batch=10, seed=1, epoch=0)
    assert sorted(rows.tolist() for rows in batches) == [[0], [1], [2]]
    with pytest.raises(UserError, match=r"training.tokens_per_batch=9 .* 10 tokens"):
        next(epoch_batches(*pairs, tokens_per_batch=9, seed=1, epoch=0))


def test_seed_and_epoch_alone_decide_who_shares_a_batch_and_which_comes_first() -> None:
    source, target = sides([(4, 4)] * 40 + [(9, 9)] * 40)

    def order(seed: int, epoch: int) -> list[list[int]]:
        batches = epoch_batches(source, target, tokens_per_batch=36, seed=seed, epoch=epoch)
        return [rows.tolist() for rows in batches]

    orders = [order(1, 0), order(1, 1), order(1, 2), order(2, 0)]
    assert order(1, 0) == orders[0]
    partners = [sorted(map(sorted, batches)) for batches in orders]
    lengths = [[source[rows[0]] for rows in batches] for batches in orders]
    for views in (partners, lengths):
        assert all(one != other for number, one in enumerate(views) for other in views[:number])
    assert lengths[0] != sorted(lengths[0])


def test_many_rows_are_sorted_in_blocks_the_first_of_which_is_enough_to_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is a sample of the whole corpus; an epoch still has every row once, and another order each time."""
    monkeypatch.setattr(batching, "BLOCK", 1000)
    lengths = np.random.default_rng(0).integers(2, 60, (2, 3500)).astype(np.int32)

    def order(epoch: int) -> list[list[int]]:
        batches = epoch_batches(*lengths, tokens_per_batch=600, seed=1, epoch=epoch)
        return [rows.tolist() for rows in batches]

    first, second = order(0), order(1)
    assert sorted(row for rows in first for row in rows) == list(range(3500))
    assert first == order(0)
    assert sorted(map(sorted, first)) != sorted(map(sorted, second))
    blocks = [next(iter({row % 4 for row in rows})) for rows in first if len({row % 4 for row in rows}) == 1]
    assert len(blocks) == len(first)  # no batch has rows of two
    assert len(set(pairwise(blocks))) == 4 + 3  # each is finished before the next
    cells = sum(len(rows) * int(lengths[:, rows].max(axis=1).sum()) for rows in first)
    assert 1 - lengths.sum() / cells < 0.2


def test_numbers_of_more_than_16_bits_are_sorted_alike() -> None:
    """Pairs of several hundred tokens."""
    lengths = np.random.default_rng(0).integers(2, 900, (2, 3000)).astype(np.int32)
    batches = list(epoch_batches(*lengths, tokens_per_batch=9000, seed=1, epoch=0))
    spans = sorted((int(lengths[:, rows].max(axis=0).min()), int(lengths[:, rows].max())) for rows in batches)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@needs_multi30k
def test_padding_is_under_4_percent_on_multi30k() -> None:
    texts = [(MULTI30K / f"train.{language}").read_text("utf-8").splitlines() for language in ("en", "de")]
    source, target = (np.array([len(line.split()) + 1 for line in side], np.int32) for side in texts)
    batches = epoch_batches(source, target, tokens_per_batch=4096, seed=1, epoch=0)
    cells = sum(len(rows) * int(source[rows].max() + target[rows].max()) for rows in batches)
    assert 1 - (source.sum() + target.sum()) / cells < 0.04


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 100))
def test_decoding_batches_are_those_of_a_loop(values: list[int], budget: int) -> None:
    order = sorted(range(len(values)), key=lambda row: (-values[row], row))
    expected: list[list[int]] = []
    for row in order:
        longest = values[expected[-1][0]] if expected else 0
        if expected and (len(expected[-1]) + 1) * max(longest, 1) <= budget:
            expected[-1].append(row)
        else:
            expected.append([row])
    found = length_batches(np.array(values, np.int32), budget)
    assert [rows.tolist() for rows in found] == expected


def save(folder: Path, source: list[list[int]], target: list[list[int]]) -> ParallelDataset:
    for name, rows in (("source", source), ("target", target)):
        save_rows(folder / f"train.{name}", [flat(rows, vocabulary_size=300)])
    return ParallelDataset.open(folder, "train")


def test_collate_shifts_pads_and_counts(tmp_path: Path) -> None:
    data = save(tmp_path, [[9, 8], [7], [4]], [[5], [6, 7, 8], [4]])
    assert (len(data), data.source.lengths.tolist()) == (3, [3, 2, 2])
    batch = collate(data, [1, 0])
    assert batch.source.tolist() == [[7, EOS, PAD], [9, 8, EOS]]
    assert batch.target_out.tolist() == [[6, 7, 8, EOS], [5, EOS, PAD, PAD]]
    assert batch.target_in.tolist() == [[BOS, 6, 7, 8], [BOS, 5, PAD, PAD]]
    assert {part.dtype for part in batch} == {torch.int64}
    assert (batch.target_tokens, batch.padding) == (6, (3, 14))


def test_a_batch_goes_to_its_device_without_holding_up_the_host() -> None:
    class Part:
        """Stands for a tensor: what was asked of it."""

        def __init__(self, name: str, *asked: object) -> None:
            self.name, self.asked = name, asked

        def to(self, device: torch.device, *, non_blocking: bool) -> "Part":
            return Part(self.name, device, non_blocking)

        def pin_memory(self) -> "Part":
            return Part(self.name, "pinned")

    batch = Batch(Part("source"), Part("in"), Part("out"))  # type: ignore[arg-type]
    device = torch.device("cuda:1")
    for moved, asked in ((batch.to(device), (device, True)), (batch.pin_memory(), ("pinned",))):
        parts = (moved.source, moved.target_in, moved.target_out)
        assert [(part.name, part.asked) for part in parts] == [  # type: ignore[attr-defined]
            (name, asked) for name in ("source", "in", "out")
        ]


@pytest.mark.parametrize(
    ("vocabulary", "dtype"), [(300, np.uint16), (2**16, np.uint16), (2**16 + 1, np.uint32)]
)
def test_rows_come_back_as_they_were_saved_and_joined(vocabulary: int, dtype: type, tmp_path: Path) -> None:
    parts = [[[5], [], [vocabulary - 1, 7]], [[8, 9]], [], [[6]]]
    paths = [tmp_path / f"part.{number}" for number in range(len(parts))]
    for path, rows in zip(paths, parts, strict=True):
        save_rows(path, [flat(rows, vocabulary_size=vocabulary)])
    join_rows(paths, tmp_path / "whole.source")
    every = [row for rows in parts for row in rows]
    save_rows(tmp_path / "at once", [flat(every, vocabulary_size=vocabulary)])
    for name in ("ids", "offsets"):
        joined = (tmp_path / f"whole.source.{name}.npy").read_bytes()
        assert joined == (tmp_path / f"at once.{name}.npy").read_bytes()
    found = RaggedArray(tmp_path / "whole.source")
    assert [found[row].tolist() for row in range(len(found))] == [[*row, EOS] for row in every]
    assert found.lengths.tolist() == [len(row) + 1 for row in every]
    assert (found.lengths.dtype, found.ids.dtype, found._offsets.dtype) == (np.int32, dtype, np.int64)
    assert isinstance(found.ids, np.memmap)
    assert isinstance(found._offsets, np.memmap)


def of_lengths(folder: Path, pairs: Sequence[tuple[int, int]]) -> ParallelDataset:
    """Row i consists of the id 10 + i."""
    source, target = ([[10 + row] * (pair[side] - 1) for row, pair in enumerate(pairs)] for side in (0, 1))
    return save(folder, source, target)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("accumulate", [1, 2, 4])
def test_processes_share_each_batch_and_count_its_tokens_together(
    count: int, accumulate: int, tmp_path: Path
) -> None:
    """The rows of a batch fall to the processes in turn; one that gets none has nothing to predict."""
    data = of_lengths(tmp_path, [(2 + row % 7, 2 + row * 5 % 9) for row in range(23)])

    def stream(rank: int, of: int):
        options = {"tokens_per_batch": 40, "seed": 3, "epoch": 0, "position": 0, "accumulate": accumulate}
        return updates(data, **options, rank=rank, count=of)

    streams = [stream(rank, count) for rank in range(count)]
    for alone, *shares in zip(stream(0, 1), *streams, strict=False):
        places = {(share.epoch, share.position, share.target_tokens) for share in shares}
        assert places == {(alone.epoch, alone.position, alone.target_tokens)}
        assert alone.target_tokens == sum(batch.target_tokens for batch in alone.batches)
        for number, batch in enumerate(alone.batches):
            rows = [[] for _ in batch.source]
            for rank, share in enumerate(shares):
                own = share.batches[number]
                if not own.target_tokens:
                    assert rank >= len(rows)
                    assert len(own.source) == 1
                    continue
                for place, ids in zip(range(rank, len(rows), count), own.source.tolist(), strict=True):
                    rows[place] = [number for number in ids if number != PAD]
            assert rows == [[number for number in ids if number != PAD] for ids in batch.source.tolist()]
        if alone.epoch == 2:
            break


def test_an_epochs_last_update_leads_to_the_next_ones_start(tmp_path: Path) -> None:
    data = of_lengths(tmp_path, [(3, 3)] * 10)  # five batches of two
    places: list[tuple[int, int, int]] = []
    for update in updates(data, tokens_per_batch=6, accumulate=2, seed=1, epoch=4, position=2):
        places.append((len(update.batches), update.epoch, update.position))
        if update.epoch == 6:
            break
    assert places == [(2, 4, 4), (1, 5, 0), (2, 5, 2), (2, 5, 4), (1, 6, 0)]


def test_alone_a_process_has_every_row_in_memory_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, pinned = of_lengths(tmp_path, [(3, 4)] * 9), []
    monkeypatch.setattr(Batch, "pin_memory", lambda batch: pinned.append(batch) or batch)
    for asked in (False, True):
        options = {"tokens_per_batch": 12, "accumulate": 2, "seed": 1, "epoch": 0, "position": 0}
        update = next(updates(data, **options, **({"pinned": True} if asked else {})))
        assert sum(batch.target_tokens for batch in update.batches) == update.target_tokens == 24
        assert (len(update.batches), len(pinned)) == (2, 2 * asked)
        assert all(batch is known for batch, known in zip(update.batches, pinned, strict=False))


@given(
    rows=st.lists(st.lists(st.integers(4, 300), max_size=9), min_size=1, max_size=8),
    chosen=st.lists(st.integers(0, 7), min_size=1, max_size=12),
)
def test_rows_read_at_once_are_those_read_one_by_one(rows: list[list[int]], chosen: list[int]) -> None:
    chosen = [number % len(rows) for number in chosen]
    with tempfile.TemporaryDirectory() as folder:
        save_rows(Path(folder) / "x", [flat(rows, vocabulary_size=301)])
        array = RaggedArray(Path(folder) / "x")
        expected = [number for row in chosen for number in (*rows[row], EOS)]
        assert array.joined(np.array(chosen)).tolist() == expected
