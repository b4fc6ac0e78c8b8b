"""The stream of updates: every batch once, resumable anywhere, the same whether computed ahead or not."""

import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice

import pytest

from endeavour.data.dataset import ParallelDataset
from endeavour.training.updates import PREFETCHED, Update, prefetch, updates
from waiting import until


def stream(data: ParallelDataset, accumulate: int, epoch: int = 0, position: int = 0) -> Iterator[Update]:
    return updates(data, tokens_per_batch=100, accumulate=accumulate, seed=3, epoch=epoch, position=position)


def same(one: Update, other: Update) -> bool:
    pairs = zip(one.batches, other.batches, strict=True)
    return (one.epoch, one.position) == (other.epoch, other.position) and all(
        a.source.equal(b.source) and a.target_out.equal(b.target_out) for a, b in pairs
    )


@pytest.mark.parametrize("accumulate", [1, 3])
def test_an_epoch_holds_every_token_once(data: ParallelDataset, accumulate: int) -> None:
    for epoch in (0, 1):
        tokens = 0
        for update in stream(data, accumulate, epoch):
            tokens += update.target_tokens
            if update.epoch > epoch:
                assert update.position == 0
                break
        assert tokens == data.target.lengths.sum()


def test_the_batches_of_seed_and_epoch_are_those_they_always_were(data: ParallelDataset) -> None:
    digest = sha256()
    for update in islice(stream(data, 2), 20):
        for batch in update.batches:
            content = (*(side.tolist() for side in (batch.source, batch.target_in, batch.target_out)),)
            digest.update(str((*content, update.epoch, update.position)).encode())
    assert digest.hexdigest().startswith("417156bdf8cf2394bbe5ee7457301a29")


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_stream_goes_on_from_any_update(data: ParallelDataset, accumulate: int) -> None:
    whole = list(islice(stream(data, accumulate), 30))
    assert whole[-1].epoch > 0
    for done in (1, 7, 20):
        place = whole[done - 1]
        rest = islice(stream(data, accumulate, place.epoch, place.position), 30 - done)
        assert all(same(one, other) for one, other in zip(whole[done:], rest, strict=True))


def test_what_is_computed_ahead_is_the_same_in_the_same_order() -> None:
    with prefetch(iter(range(50))) as items:
        assert list(items) == list(range(50))


def test_no_more_is_computed_ahead_than_asked_for() -> None:
    made: list[int] = []
    with prefetch(made.append(i) or i for i in range(100)) as items:
        next(items)
        until(lambda: len(made) >= 1 + PREFETCHED)  # in another thread
        time.sleep(0.1)
        assert len(made) == 1 + PREFETCHED
    assert len(made) <= 1 + PREFETCHED


def test_an_exception_comes_out_where_its_item_would_have() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("no second item")

    with prefetch(failing()) as items:
        assert next(items) == 1
        with pytest.raises(ValueError, match="no second item"):
            next(items)


def test_the_thread_ends_with_the_block() -> None:
    def alive() -> bool:
        return any(thread.name.startswith("updates") for thread in threading.enumerate())

    with prefetch(iter(range(10**9))) as items:
        next(items)
        assert alive()
    assert not alive()
