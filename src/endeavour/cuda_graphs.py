"""CUDA graphs: recordings of kernel launches, each repeated by one call of the host.

A recording has fixed addresses: whatever it reads and writes must stay where it is, and nothing in it may depend on
what the host would have to wait for. Knows devices and functions; not what they compute.
"""

from collections.abc import Callable
from typing import TypeVar

import torch

from endeavour.errors import UserError

FREE = 0.25  # the share of the device's memory that is free before each capture

Outputs = TypeVar("Outputs")
# Records a computation without running it; returns what replays it, and the tensors that each replay writes.
Capture = Callable[[Callable[[], Outputs]], tuple[Callable[[], None], Outputs]]


class CudaCapture:
    """Captures into a pool and on a stream of its own.

    Args:
        remedy: what a user may do where no graph can be made.
    """

    def __init__(self, device: torch.device, *, remedy: str) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)
        self._remedy = remedy

    def __call__(self, compute: Callable[[], Outputs]) -> tuple[Callable[[], None], Outputs]:
        """Raises UserError where no graph can be made."""
        graph = torch.cuda.CUDAGraph()
        try:
            # The thread that reads batches pins memory meanwhile, which the default mode forbids to all threads.
            with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                outputs = compute()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            cause = str(error.__context__ or error).strip().splitlines()[:1]
            raise UserError(f"no CUDA graph could be made: {' '.join(cause)}\n{self._remedy}") from error
        return graph.replay, outputs


def has_room(device: torch.device) -> bool:
    """For a graph, and for work without one, which cannot use the memory of the graphs."""
    if device.type != "cuda":  # where graphs are emulated
        return True
    torch.cuda.empty_cache()  # which counts as taken; each capture does it anyway
    free, total = torch.cuda.mem_get_info(device)
    return free >= max(FREE * total, torch.cuda.max_memory_allocated(device))
