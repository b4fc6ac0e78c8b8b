"""The worker: what is joined, what comes first, what is cancelled, and that nothing is lost or mixed up."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endeavour.playground.worker import JOINED_CHARACTERS, Busy, Cancelled, Job, Lines, Worker
from waiting import TIMEOUT


class Held:
    """A worker that is busy until `release`, and a record of its calls."""

    def __init__(self, *, waiting: int = 100, joined_lines: int = 4) -> None:
        self.calls: list[tuple[object, list[str]]] = []
        self.worker = Worker(self._translate, waiting=waiting, joined_lines=joined_lines)
        self._gate = threading.Event()
        begun = threading.Event()

        def wait(_: Callable[[], None]) -> None:
            begun.set()
            self._gate.wait(TIMEOUT)

        self.worker.submit(Job(wait))
        assert begun.wait(TIMEOUT)

    def _translate(self, key: object, lines: Sequence[str]) -> list[str]:
        self.calls.append((key, list(lines)))
        if "bad" in lines:
            raise ValueError("bad")
        return [f"{key}:{line}" for line in lines]

    def submit(self, key: object, *lines: str) -> Lines[str]:
        request: Lines[str] = Lines(key, lines)
        self.worker.submit(request)
        return request

    def release(self) -> None:
        self._gate.set()
        self.worker.close()


@contextmanager
def held(waiting: int = 100, joined_lines: int = 4) -> Iterator[Held]:
    one = Held(waiting=waiting, joined_lines=joined_lines)
    try:
        yield one
    finally:
        one.release()


def test_lines_with_one_key_share_a_call_up_to_the_budget() -> None:
    with held() as one:
        requests = [
            one.submit("a", "1"),
            one.submit("b", "2"),
            one.submit("a", "3", "4"),
            one.submit("a", "5", "6"),
        ]
        one.release()
    assert one.calls == [("a", ["1", "3", "4", "5"]), ("b", ["2"]), ("a", ["6"])]
    assert [request.result.result(0) for request in requests] == [
        ["a:1"],
        ["b:2"],
        ["a:3", "a:4"],
        ["a:5", "a:6"],
    ]


def test_with_a_budget_of_one_line_nothing_is_joined() -> None:
    with held(joined_lines=1) as one:
        for line in "123":
            one.submit("a", line)
        one.release()
    assert one.calls == [("a", ["1"]), ("a", ["2"]), ("a", ["3"])]


def test_a_few_long_lines_are_as_much_as_many() -> None:
    long = "x" * JOINED_CHARACTERS
    with held() as one:
        one.submit("a", long, long)
        one.submit("a", "y")
        one.release()
    assert [len(lines) for _, lines in one.calls] == [1, 2]


def test_what_the_page_asks_for_does_not_wait_for_the_end_of_a_long_text() -> None:
    order: list[str] = []
    with held() as one:
        text = one.submit("a", *(str(number) for number in range(20)))
        text.result.add_done_callback(lambda _: order.append("text"))
        one.worker.submit(Job(lambda _: order.append("page")))
        one.release()
    assert order == ["page", "text"]
    assert len(text.result.result(0)) == 20


def test_a_short_text_does_not_wait_for_the_end_of_a_long_one() -> None:
    order: list[str] = []
    with held() as one:
        for name, lines in (("long", 20), ("short", 1)):
            request = one.submit("a", *(str(number) for number in range(lines)))
            request.result.add_done_callback(lambda _, name=name: order.append(name))
        one.release()
    assert order == ["short", "long"]
    assert one.calls[1] == ("a", ["0", "4", "5", "6"])


def test_no_more_wait_than_are_allowed_and_those_that_were_cancelled_do_not_count() -> None:
    with held(waiting=2) as one:
        first = one.submit("a", "1")
        one.submit("a", "2")
        for request in (Lines("a", ["3"]), Job(lambda _: None)):
            with pytest.raises(Busy):
                one.worker.submit(request)
        first.cancel()
        one.submit("a", "4")
        one.release()
    assert one.calls == [("a", ["2", "4"])]
    with pytest.raises(CancelledError):
        first.result.result(0)


def test_a_job_that_is_cancelled_is_not_begun_or_ends_at_its_next_step() -> None:
    begun = threading.Event()

    def work(check: Callable[[], None]) -> None:
        begun.set()
        while True:
            check()

    with held() as one:
        waits = Job(work)
        one.worker.submit(waits)
        waits.cancel()
        runs = Job(work)
        one.worker.submit(runs)
        one._gate.set()
        assert begun.wait(TIMEOUT)
        runs.cancel()
    assert waits.result.cancelled()
    assert isinstance(runs.result.exception(0), Cancelled)


def test_of_lines_that_are_cancelled_those_not_yet_begun_are_left_out() -> None:
    with held() as one:
        text = one.submit("a", *(str(number) for number in range(20)))
        one.submit("b", "next").result.add_done_callback(lambda _: text.cancel())
        one.release()
    assert one.calls == [("a", ["0", "1", "2", "3"]), ("b", ["next"])]


def test_an_error_is_that_of_the_request_that_caused_it() -> None:
    with held() as one:
        requests = [one.submit("a", "1"), one.submit("a", "bad"), one.submit("a", "3")]
        one.release()
    assert requests[0].result.result(0) == ["a:1"]
    assert isinstance(requests[1].result.exception(0), ValueError)
    assert requests[2].result.result(0) == ["a:3"]


def test_an_error_in_a_job_is_its_result_and_the_worker_goes_on() -> None:
    def fail(_: Callable[[], None]) -> None:
        raise KeyError("why")

    with held() as one:
        jobs = [Job(fail), Job(lambda _: 5)]
        for job in jobs:
            one.worker.submit(job)
        one.release()
    assert isinstance(jobs[0].result.exception(0), KeyError)
    assert jobs[1].result.result(0) == 5


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.lists(st.just("bad") | st.text(max_size=3), min_size=1, max_size=9),
        ),
        max_size=9,
    )
)
def test_everybody_gets_what_they_asked_for(requests: list[tuple[str, list[str]]]) -> None:
    with held() as one:
        waiting = [one.submit(key, *lines) for key, lines in requests]
        one.release()
    bad = [lines for _, lines in requests if "bad" in lines]
    for (key, lines), request in zip(requests, waiting, strict=True):
        if lines not in bad:
            assert request.result.result(0) == [f"{key}:{line}" for line in lines]
    assert all(len(lines) <= 4 for _, lines in one.calls)
