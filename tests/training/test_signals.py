"""A stop by a signal, and where no signal can be noted."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from endeavour.training.signals import StopSignal


def test_a_stop_is_noted_and_handlers_are_given_back() -> None:
    usual = signal.getsignal(signal.SIGTERM)
    with StopSignal() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == usual, "a second signal has its usual effect"
    assert stop.number == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == usual


@pytest.mark.usefixtures("not_under_nohup")
def test_a_terminal_that_closes_is_noted_once_and_may_say_so_again() -> None:
    usual = signal.getsignal(signal.SIGHUP)
    usual_end = signal.getsignal(signal.SIGTERM)
    with StopSignal() as stop:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGTERM) == usual_end, "only this one is ignored from then on"
    assert stop.number == signal.SIGHUP
    assert signal.getsignal(signal.SIGHUP) == usual


def test_under_nohup_a_terminal_may_close() -> None:
    usual = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignal() as stop:
            signal.raise_signal(signal.SIGHUP)
        assert stop.number == 0
    finally:
        signal.signal(signal.SIGHUP, usual)


def test_in_a_thread_nothing_is_noted_and_no_handler_is_touched() -> None:
    usual = signal.getsignal(signal.SIGTERM)

    def inside() -> tuple[object, int]:
        with StopSignal() as stop:
            return signal.getsignal(signal.SIGTERM), stop.number

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(inside).result() == (usual, 0)
