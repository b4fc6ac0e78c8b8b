"""Clocks, device memory, the machine's matrix product, and what becomes of a reference that fails.

Knows torch's devices; no models and no data.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from endeavour.benchmark.config import OURS
from endeavour.errors import kind_and_first_line

T = TypeVar("T")

# One timing of the matrix product takes at least this long, so that the clock's grain does not matter.
PRODUCT_SECONDS = 0.02


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Seconds that `work` takes, until `device` has done all of it."""
    synchronize(device)
    started = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - started


def synchronize(device: torch.device) -> None:
    """Waits until `device` has nothing left to do; the CPU never has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def peak_device_memory(device: torch.device, *, graphed: bool) -> int | None:
    """The most bytes of tensors this process ever held on a GPU; None on devices that do not count them.

    With CUDA graphs, whose tensors are not counted, what it had reserved for them and all others.
    """
    if device.type != "cuda":
        return None
    return torch.cuda.max_memory_reserved(device) if graphed else torch.cuda.max_memory_allocated(device)


def product_rate(
    rows: int, inner: int, columns: int, *, device: torch.device, precision: torch.dtype
) -> float:
    """Floating-point operations a second of (rows, inner) @ (inner, columns): the best of five timings.

    A product takes 2 · rows · inner · columns operations.
    """
    left = torch.randn(rows, inner, device=device).to(precision)
    right = torch.randn(inner, columns, device=device).to(precision)
    out = torch.empty(rows, columns, dtype=precision, device=device)
    with torch.inference_mode():
        once = timed(lambda: torch.mm(left, right, out=out), device)  # also wakes the device
        once = timed(lambda: torch.mm(left, right, out=out), device)
        count = max(1, round(PRODUCT_SECONDS / max(once, 1e-9)))

        def work() -> None:
            for _ in range(count):
                torch.mm(left, right, out=out)

        seconds = min(timed(work, device) for _ in range(5))
    return 2 * rows * inner * columns * count / seconds


def first_tries(names: Sequence[str], attempt: Callable[[str], T], notes: list[str]) -> dict[str, T]:
    """What `attempt` gives for each contender. A reference that fails has no entry, and a line in `notes`.

    Raises:
        Exception: whatever one of ours failed with.
    """
    results: dict[str, T] = {}
    for name in names:
        try:
            results[name] = attempt(name)
        except Exception as error:
            if name.startswith(OURS):
                raise
            notes.append(f"{name}: {kind_and_first_line(error)}")
    return results


def rates(amount: float, seconds: Sequence[float]) -> dict[str, float]:
    """`amount` a second over several turns, as `spread` has it."""
    return spread([amount / each for each in seconds])


def spread(values: Sequence[float]) -> dict[str, float]:
    """The median of several turns, the lowest and the highest."""
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}
