"""What an update costs the host beside its arithmetic: waiting for the GPU, and compiling. Knows torch; no models."""

import sys
import warnings
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

# Begins what torch says in its debug mode where the host waits for a GPU (c10/cuda/CUDAFunctions.cpp).
WAITED = "called a synchronizing CUDA operation"


@contextmanager
def noted_waits(device: torch.device) -> Generator[Counter[str]]:
    """Counts how often the host waits for a CUDA device within the block, by the line of Python that made it wait.

    Torch notices values that are read, indices whose number is asked for, and copies that block; neither
    `torch.cuda.synchronize` nor waiting for an event. On other devices nothing is counted.
    """
    waits: Counter[str] = Counter()
    if device.type != "cuda":
        yield waits
        return

    def note(message: Warning | str, _category: type[Warning], file: str, line: int, *_: object) -> None:
        if str(message).startswith(WAITED):
            waits[f"{'/'.join(Path(file).parts[-2:])}:{line}"] += 1

    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield waits
        finally:
            torch.cuda.set_sync_debug_mode(before)


def compiled_so_far() -> dict[str, Any]:
    """What `torch.compile` did in this process: its graphs, breaks between them, and why any was compiled again."""
    if "torch._dynamo" not in sys.modules:  # importing it takes seconds
        return {"graphs": 0, "graph_breaks": 0, "recompilations": []}
    from torch._dynamo.utils import counters, get_compilation_metrics

    reasons = [metrics.recompile_reason for metrics in get_compilation_metrics()]
    return {
        "graphs": counters["stats"]["unique_graphs"],
        "graph_breaks": sum(counters["graph_break"].values()),
        "recompilations": [reason for reason in reasons if reason],
    }
