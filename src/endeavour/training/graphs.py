"""The gradients of a batch as one CUDA graph, for models that a GPU computes faster than their kernels are launched.

Knows batches and a function of them; not what it computes.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from endeavour.data.batching import Batch
from endeavour.errors import UserError

Sums = tuple[Tensor, Tensor]
# A batch on the device, its target tokens and the loss scale to two scalars; gradients are added to the parameters'.
AddGradients = Callable[[Batch, Tensor | int, Tensor | float], Sums]
# A computation, to what repeats it and the tensors that each repetition writes; it is not computed yet.
Capture = Callable[[Callable[[], Sums]], tuple[Callable[[], None], Sums]]

# Parameters × tokens of a batch up to which its kernels are computed faster than they are launched one by one. On an
# H100 graphs made training some 8 times as fast at 5e9; at 1e12 the GPU was never idle without them.
SMALL = 3e11
# Shapes that are captured, and the share of the device's memory that is left free.
MOST = 512
LEFT_FREE = 0.25


def choose_graphs(name: str, device: torch.device, model: nn.Module, *, tokens: int, alone: bool) -> bool:
    """`auto`: on CUDA, where one process trains, for small models or batches.

    Args:
        name: auto, always or never.
        tokens: of a batch that goes through the model.
        alone: one process has the whole model.
    Raises:
        UserError: `always` where there are no CUDA graphs, or several processes.
    """
    possible = device.type == "cuda" and alone
    if name == "always" and not possible:
        raise UserError(
            "training.cuda_graphs=always needs a CUDA device and one process, without training.sharded: "
            "set it to auto or never"
        )
    small = tokens * sum(parameter.numel() for parameter in model.parameters()) <= SMALL
    return possible and (name == "always" or (name == "auto" and small))


class Graphs:
    """Captures a graph for each shape of batches when it comes for the second time, and replays it from then on.

    The gradients must stay where they are: between updates they are set to zero, not to None. All graphs share one
    pool of memory, so that what one returns holds until the next one runs.
    """

    def __init__(self, model: nn.Module, device: torch.device, capture: Capture | None = None) -> None:
        self._model = model
        self._device = device
        self._capture = capture or _CudaCapture(device)
        self._seen: Counter[tuple[torch.Size, torch.Size]] = Counter()
        self._graphs: dict[tuple[torch.Size, torch.Size], _Graph] = {}

    def __len__(self) -> int:
        return len(self._graphs)

    def run(self, add: AddGradients, batch: Batch, target_tokens: int, loss_scale: Tensor | float) -> Sums:
        """`add` of a batch that is on the host."""
        shape = batch.source.shape, batch.target_in.shape
        self._seen[shape] += 1
        graph = self._graphs.get(shape)
        if graph is None:
            if self._seen[shape] == 1 or len(self) == MOST or not _has_room(self._device):
                return add(batch.to(self._device), target_tokens, loss_scale)
            graph = self._graphs[shape] = self._captured(add, batch)
        for inside, new in zip(graph.batch, (batch.source, batch.target_in, batch.target_out), strict=True):
            inside.copy_(new, non_blocking=True)
        graph.target_tokens.fill_(target_tokens)
        graph.loss_scale.fill_(loss_scale)
        graph.replay()
        return graph.sums

    def _captured(self, add: AddGradients, batch: Batch) -> "_Graph":
        for parameter in self._model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        inside = batch.to(self._device)
        tokens, scale = torch.ones(2, device=self._device)
        replay, sums = self._capture(lambda: add(inside, tokens, scale))
        ids = inside.source, inside.target_in, inside.target_out
        return _Graph(replay, ids, tokens, scale, sums, list(self._model.buffers()))


class _Graph(NamedTuple):
    """A graph with the tensors that it reads and those that it writes.

    Attributes:
        kept: buffers of the model, which may put larger ones in their place; the graph reads these.
    """

    replay: Callable[[], None]
    batch: tuple[Tensor, Tensor, Tensor]
    target_tokens: Tensor
    loss_scale: Tensor
    sums: Sums
    kept: list[Tensor]


class _CudaCapture:
    """Captures into a pool and on a stream of its own."""

    def __init__(self, device: torch.device) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)

    def __call__(self, compute: Callable[[], Sums]) -> tuple[Callable[[], None], Sums]:
        graph = torch.cuda.CUDAGraph()
        # Another thread reads batches into memory of CUDA's meanwhile.
        with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
            sums = compute()
        return graph.replay, sums


def _has_room(device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    free, total = torch.cuda.mem_get_info(device)
    return free >= LEFT_FREE * total
