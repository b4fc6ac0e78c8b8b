"""Parts drawn by weight: exact shares, all pairs of a part equally often, stages, and runs that go on in them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from starting import assert_same, run, training_config

from endeavour.data.dataset import ParallelDataset, flat, save_rows
from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import UserError
from endeavour.training import loop
from endeavour.training.mixture import Mixture, Stage
from endeavour.training.updates import Update, updates

SIZES = {"general": 60, "mine": 12, "spare": 8}
FIRST = 10  # a pair's first source token is this and the number of its row
STAGES = [
    Stage(until=7, weights={"general": 1}),
    Stage(until=10, weights={"mine": 1, "spare": 1}),
    Stage(until=None, weights={"general": 1, "mine": 3}),
]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> ParallelDataset:
    folder = tmp_path_factory.mktemp("parts")
    random = np.random.default_rng(0)
    for side in ("source", "target"):
        rows = [
            [FIRST + row, *random.integers(100, 300, random.integers(2, 9)).tolist()]
            for row in range(sum(SIZES.values()))
        ]
        save_rows(folder / f"train.{side}", [flat(rows, vocabulary_size=300)])
    return ParallelDataset.open(folder, "train", SIZES)


def part_of(row: int) -> str:
    ends = np.cumsum(list(SIZES.values()))
    return list(SIZES)[int(np.searchsorted(ends, row, side="right"))]


def rows_of(update: Update) -> list[int]:
    return [int(first) - FIRST for batch in update.batches for first in batch.source[:, 0]]


def stream(
    data: ParallelDataset, before: Update | None = None, made: int = 0, **options: int
) -> Iterator[Update]:
    place = {"epoch": 0, "position": 0, "stage_epoch": 0}
    if before is not None:
        place = {key: getattr(before, key) for key in place}
    settings = {"accumulate": 2} | place | options
    return updates(data, tokens_per_batch=60, seed=5, stages=STAGES, update=made, **settings)


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 8)), min_size=1, max_size=5).filter(
        lambda parts: any(weight for _, weight in parts)
    )
)
def test_shares_are_exact_to_the_pair(parts: list[tuple[int, int]]) -> None:
    sizes = {str(number): size for number, (size, _) in enumerate(parts)}
    given_weights = {str(number): float(weight) for number, (_, weight) in enumerate(parts)}
    stage = Stage(until=None, weights=given_weights)
    total = sum(size for size, weight in parts if weight)
    exact = {part: total * weight / sum(given_weights.values()) for part, weight in given_weights.items()}
    assume(all(share >= 1 for share in exact.values() if share))
    counts = stage.pairs(sizes)
    assert sum(counts.values()) == total
    assert all(abs(counts[part] - share) < 1 for part, share in exact.items())
    rows = Mixture([stage], sizes, seed=1).rows(0, 0)
    ends = np.cumsum(list(sizes.values()))
    found = Counter(np.searchsorted(ends, rows, side="right").tolist())
    assert [found[number] for number in range(len(sizes))] == list(counts.values())


def test_a_weight_that_draws_nothing_is_named() -> None:
    with pytest.raises(UserError, match="mine"):
        Stage(until=None, weights={"general": 1000, "mine": 1}).pairs(SIZES)


@pytest.mark.parametrize("stage", range(3))
def test_all_pairs_of_a_part_are_drawn_equally_often(stage: int) -> None:
    mixture = Mixture(STAGES, SIZES, seed=5)
    drawn: Counter[int] = Counter()
    for epoch in range(11):
        drawn.update(mixture.rows(stage, epoch).tolist())
        for part in SIZES:
            times = [drawn[row] for row in range(sum(SIZES.values())) if part_of(row) == part]
            assert max(times) - min(times) <= 1
            assert bool(max(times)) == bool(STAGES[stage].weights.get(part))


def test_stages_epochs_and_seeds_draw_in_orders_of_their_own() -> None:
    def order(stage: int, epoch: int, seed: int = 5) -> list[int]:
        return Mixture([STAGES[0], *STAGES], SIZES, seed).rows(stage, epoch).tolist()

    orders = [order(0, 0), order(1, 0), order(0, 1), order(0, 0, seed=6)]
    assert all(sorted(one) == sorted(orders[0]) for one in orders)
    assert len({tuple(one) for one in orders}) == 4


def test_a_stage_ends_with_its_update_and_the_next_begins_with_an_epoch(parts: ParallelDataset) -> None:
    whole = list(islice(stream(parts), 40))
    for number, update in enumerate(whole, start=1):
        met = {part_of(row) for row in rows_of(update)}
        allowed = next(set(one.weights) for one in STAGES if one.until is None or number <= one.until)
        assert met <= allowed
    for end in (7, 10):
        place = whole[end - 1]
        assert place.position == 0
        assert place.stage_epoch == place.epoch
    # The last stage begins with a whole epoch, its own first one.
    drawn: list[int] = []
    for update in whole[10:]:
        drawn += rows_of(update)
        if update.epoch > whole[9].epoch:
            break
    assert Counter(map(part_of, drawn)) == {"general": 18, "mine": 54}
    assert sorted(drawn) == sorted(Mixture(STAGES, SIZES, seed=5).rows(2, 0).tolist())


def test_the_stream_goes_on_from_any_update(parts: ParallelDataset) -> None:
    whole = list(islice(stream(parts), 30))
    for made in (1, 6, 7, 8, 9, 10, 11, 20):
        rest = islice(stream(parts, whole[made - 1], made), 30 - made)
        assert [rows_of(one) for one in rest] == [rows_of(one) for one in whole[made:]]


def test_processes_share_the_same_draws(parts: ParallelDataset) -> None:
    alone = [sorted(rows_of(update)) for update in islice(stream(parts, accumulate=1), 20)]
    shares = [list(islice(stream(parts, accumulate=1, rank=rank, count=2), 20)) for rank in (0, 1)]
    for whole, one, other in zip(alone, *shares, strict=True):
        shared = sorted(rows_of(one) + rows_of(other))
        assert shared == whole or (len(whole) == 1 and set(shared) == set(whole))


@pytest.mark.parametrize("dies_at", [4, 8, 16])  # in each of the stages
def test_a_run_that_died_in_a_stage_ends_as_if_it_had_not(
    dies_at: int,
    tmp_path: Path,
    parts: ParallelDataset,
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = replace(training_config("training.tokens_per_batch=60"), mixture=STAGES)
    seen: list[set[str]] = []

    def noted(*arguments: Any, **options: Any) -> Iterator[Update]:
        for update in updates(*arguments, **options):
            seen.append({part_of(row) for row in rows_of(update)})
            yield update

    monkeypatch.setattr(loop, "updates", noted)
    run(tmp_path / "whole", parts, tokenizer, config)
    assert set.union(*seen[:7]) == {"general"}
    assert set.union(*seen[7:10]) == {"mine", "spare"}
    assert set.union(*seen[10:]) == {"general", "mine"}

    def power_cut(update: int) -> None:
        if update == dies_at + 2:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        run(tmp_path / "cut", parts, tokenizer, config, after=power_cut)
    run(tmp_path / "cut", parts, tokenizer, config)
    assert_same(tmp_path / "whole", tmp_path / "cut")
