"""Arrays on disk and batches made of them, against the plainest way to do the same."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from endeavour.data.arrays import RaggedWriter
from endeavour.data.batching import Batch, epoch_batches, length_batches
from endeavour.data.dataset import ParallelDataset, RaggedArray
from endeavour.special import EOS, PAD
from endeavour.training.updates import updates

LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=80)


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

    batches = epoch_batches(*sides(pairs), tokens_per_batch=budget, seed=seed, epoch=0)
    found = sorted((sorted(key(row) for row in rows) for rows in batches), key=lambda keys: keys[0])
    # Batches that begin with equal pairs may have any order among themselves.
    found.sort(key=lambda keys: (keys[0], keys[-1]))
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
    expected.sort(key=lambda keys: (keys[0], keys[-1]))
    assert sorted(map(len, found)) == sorted(map(len, expected))
    assert [keys for batch in found for keys in batch] == [keys for batch in expected for keys in batch]


def test_a_pair_as_long_as_the_budget_is_a_batch_of_its_own() -> None:
    batches = epoch_batches(*sides([(10, 3), (2, 10), (4, 4)]), tokens_per_batch=10, seed=1, epoch=0)
    assert sorted(rows.tolist() for rows in batches) == [[0], [1], [2]]


def test_equal_pairs_are_shared_out_anew_and_batches_shuffled_each_epoch() -> None:
    source, target = sides([(4, 4)] * 40 + [(9, 9)] * 40)
    epochs = [epoch_batches(source, target, tokens_per_batch=36, seed=1, epoch=epoch) for epoch in range(4)]
    for kind in ("partners", "order of lengths"):
        views = [
            [sorted(rows.tolist()) if kind == "partners" else source[rows[0]] for rows in batches]
            for batches in epochs
        ]
        views = [sorted(view) for view in views] if kind == "partners" else views
        assert all(one != other for number, one in enumerate(views) for other in views[:number]), kind
    assert not all(
        source[one[0]] <= source[other[0]] for one, other in zip(epochs[0], epochs[0][1:], strict=False)
    )


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


def test_a_batch_moves_and_counts() -> None:
    batch = Batch(torch.tensor([[5, EOS, PAD]]), torch.tensor([[2, 6, 7]]), torch.tensor([[6, 7, EOS]]))
    assert (batch.target_tokens, batch.padding) == (3, (1, 6))
    moved = batch.to(torch.device("meta"))
    assert [part.device.type for part in (moved.source, moved.target_in, moved.target_out)] == ["meta"] * 3
    assert [part.shape for part in (moved.source, moved.target_in, moved.target_out)] == [(1, 3)] * 3
    copied = batch.to(torch.device("cpu"))
    for name in ("source", "target_in", "target_out"):
        assert torch.equal(getattr(copied, name), getattr(batch, name))


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
def test_rows_come_back_from_a_file_appended_or_joined(vocabulary: int, dtype: type, tmp_path: Path) -> None:
    parts = [[[5], [], [vocabulary - 1, 7]], [[8, 9]], [], [[6]]]
    for number, rows in enumerate(parts):
        with RaggedWriter(tmp_path / f"part{number}", vocabulary_size=vocabulary) as writer:
            writer.append(rows, end=EOS)
    with RaggedWriter(tmp_path / "whole.source", vocabulary_size=vocabulary) as writer:
        writer.append([[4, 4]], end=EOS)
        for number, _ in enumerate(parts):
            writer.extend(tmp_path / f"part{number}")
        writer.append([[]], end=EOS)
        writer.append([[7], [8]], end=EOS)
    expected = [[4, 4], *(row for rows in parts for row in rows), [], [7], [8]]
    assert (writer.rows, writer.total) == (len(expected), sum(len(row) + 1 for row in expected))
    found = RaggedArray.open(tmp_path, "whole.source")
    assert [found[row].tolist() for row in range(len(found))] == [[*row, EOS] for row in expected]
    assert found.lengths.tolist() == [len(row) + 1 for row in expected]
    assert found.lengths.dtype == np.int32
    assert found[0].dtype == dtype
    assert isinstance(found._ids, np.memmap)
    assert isinstance(found._offsets, np.memmap)


def written(folder: Path, pairs: Sequence[tuple[int, int]]) -> ParallelDataset:
    for side, name in enumerate(("source", "target")):
        with RaggedWriter(folder / f"train.{name}", vocabulary_size=300) as writer:
            writer.append([[10 + row] * (pair[side] - 1) for row, pair in enumerate(pairs)], end=EOS)
    return ParallelDataset.open(folder, "train")


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("accumulate", [1, 2, 4])
def test_processes_share_each_batch_and_count_its_tokens_together(
    count: int, accumulate: int, tmp_path: Path
) -> None:
    """The rows of a batch fall to the processes in turn; one that gets none has nothing to predict."""
    pairs = [(2 + row % 7, 2 + row * 5 % 9) for row in range(23)]
    data = written(tmp_path, pairs)
    assert len(data) == 23

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
    data = written(tmp_path, [(3, 3)] * 10)  # five batches of two
    places: list[tuple[int, int, int]] = []
    for update in updates(data, tokens_per_batch=6, accumulate=2, seed=1, epoch=4, position=2):
        places.append((len(update.batches), update.epoch, update.position))
        if update.epoch == 6:
            break
    assert places == [(2, 4, 4), (1, 5, 0), (2, 5, 2), (2, 5, 4), (1, 6, 0)]


def test_alone_a_process_has_every_row_in_memory_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, pinned = written(tmp_path, [(3, 4)] * 9), []
    monkeypatch.setattr(Batch, "pin_memory", lambda batch: pinned.append(batch) or batch)
    for asked in (False, True):
        options = {"tokens_per_batch": 12, "accumulate": 2, "seed": 1, "epoch": 0, "position": 0}
        update = next(updates(data, **options, **({"pinned": True} if asked else {})))
        assert sum(batch.target_tokens for batch in update.batches) == update.target_tokens == 24
        assert [batch is known for batch, known in zip(update.batches, pinned, strict=False)] == [
            True
        ] * 2 * asked
