"""In place of CUDA graphs: a recording of torch's operations, which are repeated on the tensors that they had."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Outputs = TypeVar("Outputs")
# Each needs a value of the device, for which a recording cannot wait.
ASK_THE_DEVICE = {"_local_scalar_dense", "nonzero", "equal", "masked_select", "unique_dim", "_unique2"}

# Where operations are recorded, and repeated.
BELOW_AUTOGRAD = torch._C._AutoDispatchBelowAutograd


class EmulatedCapture:
    """A `cuda_graphs.Capture` for the CPU.

    All recordings share their memory: a replay spoils what the others have allocated.

    Args:
        asking: whether the host may ask for values, as some code does on CPUs only; the answers are recorded too.
    Attributes:
        captures, replays: how many there were.
    """

    def __init__(self, *, asking: bool = False) -> None:
        self.replays = 0
        self._asking = asking
        self._recordings: list[_Recording] = []

    @property
    def captures(self) -> int:
        return len(self._recordings)

    def __call__(self, compute: Callable[[], Outputs]) -> tuple[Callable[[], None], Outputs]:
        recording, drawn = _Recording(self._asking), torch.get_rng_state()
        with recording:
            outputs = compute()
        with BELOW_AUTOGRAD():
            recording.undo()
        torch.set_rng_state(drawn)
        self._recordings.append(recording)

        def replay() -> None:
            self.replays += 1
            for other in self._recordings:
                if other is not recording:
                    other.spoil()
            with BELOW_AUTOGRAD():
                recording.repeat()

        return replay, outputs


class _Recording(TorchDispatchMode):
    def __init__(self, asking: bool) -> None:
        super().__init__()
        self._asking = asking
        self._steps: list[tuple[Any, tuple[Any, ...], Mapping[str, Any], list[Tensor | None]]] = []
        self._before: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = func.__name__.split(".")[0]
        assert self._asking or name not in ASK_THE_DEVICE, f"a recording cannot wait for {name}"
        given = _storages((args, kwargs))  # which views, and what is changed in its place, have too
        written = [
            (args[place] if place < len(args) else kwargs.get(argument.name))
            for place, argument in enumerate(func._schema.arguments)
            if argument.is_write
        ]
        self._before += [(tensor, tensor.clone()) for tensor in _tensors(written)]
        result = func(*args, **kwargs)
        new = [tensor if _storage(tensor) not in given else None for tensor in _tensors(result)]
        self._steps.append((func, args, kwargs, new))
        return result

    def undo(self) -> None:
        """What was there before has its old values again."""
        for tensor, value in reversed(self._before):
            tensor.copy_(value)
        self._before.clear()

    def repeat(self) -> None:
        """Every operation on the same tensors; what it allocated has the new values."""
        for func, args, kwargs, allocated in self._steps:
            for old, new in zip(allocated, _tensors(func(*args, **kwargs)), strict=True):
                if old is not None:
                    old.copy_(new)

    def spoil(self) -> None:
        """Numbers that would be noticed in place of what was allocated."""
        for *_, allocated in self._steps:
            for tensor in allocated:
                if tensor is not None:
                    tensor.fill_(float("nan") if tensor.is_floating_point() else 77)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _storages(tree: Any) -> set[int]:
    return {_storage(tensor) for tensor in _tensors(tree)}


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
