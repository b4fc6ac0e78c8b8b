"""Batches as CUDA graphs, for models whose kernels are computed faster than they are launched one by one.

Knows batches and a function of them; not what it computes.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from endeavour.cuda_graphs import Capture, CudaCapture, has_room
from endeavour.data.batching import Batch
from endeavour.errors import UserError

Sums = tuple[Tensor, Tensor]
# Adds the gradients of a batch on the device, given its target tokens and the loss scale, to those of the parameters;
# returns two scalars.
AddGradients = Callable[[Batch, Tensor | int, Tensor | float], Sums]

# Parameters × tokens of a batch up to which its kernels are computed faster than they are launched one by one. On an
# H100 graphs made training some 8 times as fast at 5e9; at 1e12 the GPU was never idle without them.
SMALL = 3e11
MOST_GRAPHS = 1024  # shapes that are captured
NEVER = "set training.cuda_graphs=never"


def check_graphs(name: str, device: torch.device, *, alone: bool) -> bool:
    """Whether there can be graphs: on CUDA, where one process has the whole model.

    Raises:
        UserError: `name` is `always` where there are none.
    """
    possible = device.type == "cuda" and alone
    if name == "always" and not possible:
        raise UserError("cuda_graphs=always needs a CUDA device and one process: set it to auto or never")
    return possible


def choose_graphs(name: str, device: torch.device, model: nn.Module, *, tokens: int, alone: bool) -> bool:
    """`auto`: for small models or batches, where there can be graphs.

    Args:
        name: auto, always or never.
        tokens: of a batch that goes through the model.
        alone: one process has the whole model.
    Raises:
        UserError: `always` where there are none.
    """
    possible = check_graphs(name, device, alone=alone)
    small = tokens * sum(parameter.numel() for parameter in model.parameters()) <= SMALL
    return possible and (name == "always" or (name == "auto" and small))


class Graphs:
    """Captures a graph for each shape of batches when it comes for the second time, and replays it from then on.

    The gradients stay where they are: between updates they are set to zero, not to None. All graphs share one pool of
    memory, so that what one returns holds until the next one runs.

    Args:
        note: is told once, where no further graphs are made.
    """

    def __init__(
        self,
        model: nn.Module,
        device: torch.device,
        capture: Capture[Sums] | None = None,
        *,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._note = note
        self._model = model
        self._device = device
        self._capture = capture or CudaCapture(device, remedy=NEVER)
        self._seen: Counter[tuple[torch.Size, torch.Size]] = Counter()
        self._graphs: dict[tuple[torch.Size, torch.Size], _Graph] = {}
        self._full = False

    def __len__(self) -> int:
        return len(self._graphs)

    def run(self, add: AddGradients, batch: Batch, target_tokens: int, loss_scale: Tensor | float) -> Sums:
        """`add` of a batch that is on the host."""
        shape = batch.source.shape, batch.target_in.shape
        self._seen[shape] += 1
        graph = self._graphs.get(shape)
        if graph is None:
            if self._seen[shape] > 1 and not self._full:
                self._full = len(self) == MOST_GRAPHS or not has_room(self._device)
                if self._full:
                    self._note(
                        f"there are {len(self)} CUDA graphs, and no room for more: other batches take longer"
                    )
            if self._seen[shape] == 1 or self._full:
                return add(batch.to(self._device), target_tokens, loss_scale)
            graph = self._graphs[shape] = self._captured(add, batch)
        for fixed, new in zip(graph.batch, batch, strict=True):
            fixed.copy_(new, non_blocking=True)
        graph.target_tokens.fill_(target_tokens)
        graph.loss_scale.fill_(loss_scale)
        graph.replay()
        return graph.sums

    def _captured(self, add: AddGradients, batch: Batch) -> "_Graph":
        fixed = batch.to(self._device)
        tokens, scale = torch.ones(2, device=self._device)
        replay, sums = self._capture(lambda: add(fixed, tokens, scale))
        return _Graph(replay, fixed, tokens, scale, sums, list(self._model.buffers()))


class _Graph(NamedTuple):
    """A graph with the tensors that it reads and those that it writes.

    Attributes:
        buffers: the model's, which may put larger ones in their place; the graph reads these.
    """

    replay: Callable[[], None]
    batch: Batch
    target_tokens: Tensor
    loss_scale: Tensor
    sums: Sums
    buffers: list[Tensor]
