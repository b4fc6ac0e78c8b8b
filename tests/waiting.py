"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable

TIMEOUT = 60  # seconds after which a test has failed; none waits for it


def until(condition: Callable[[], bool]) -> None:
    """Waits for it. A test fails in which it does not come."""
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)
