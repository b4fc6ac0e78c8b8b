"""The functions of `training.c` for torch: of tensors on a CPU, contiguous, in fp32 or bf16.

Shapes: batch = sentences; queries, keys = lengths; rows = tokens; vocabulary = target pieces.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from endeavour.native.compiler import library, library_or_reason

TYPES = (torch.float32, torch.bfloat16)
LANES = 16  # of `numbers.h`
# Scores of a head in a sentence, up to which `attention` is faster than torch's operations.
MOST_SCORES = 192 * 192


def why_not() -> str | None:
    """Why there are no such functions on this machine, empty where no user could change it; None if there are."""
    found = library_or_reason()
    return found if isinstance(found, str) else None


def build() -> str:
    """A name of the functions, another for each source, compiler and processor; empty if there are none."""
    return Path(library()._name).stem if why_not() is None else ""


def takes(tensor: Tensor) -> bool:
    """Whether the functions can compute with it, now. (What records operations does not see these.)"""
    plain = type(tensor) in (Tensor, nn.Parameter) and not tensor.is_neg()
    fits = plain and tensor.device.type == "cpu" and tensor.dtype in TYPES
    recorded = torch.compiler.is_compiling() or torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    return fits and not recorded and why_not() is None


def dropout(numbers: Tensor, *, threshold: int, scale: float) -> Tensor:
    """numbers · scale, of any shape, but 0 where their random byte is below `threshold`.

    The bytes are made from a seed that is drawn from torch's global generator.
    """
    seed = int(torch.empty((), dtype=torch.int64, device=numbers.device).random_())
    return _Dropout.apply(numbers, seed, threshold, scale)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: Tensor, *settings: Any) -> Tensor:
        ctx.settings = settings
        return _dropped(numbers, *settings)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]: by the decorator, which has no types
        ctx: Any, *gradients: Any
    ) -> tuple[Tensor | None, ...]:
        return _dropped(gradients[0], *ctx.settings), None, None, None


def _dropped(numbers: Tensor, seed: int, threshold: int, scale: float) -> Tensor:
    numbers = numbers.contiguous()
    result = torch.empty_like(numbers)
    library().drop(
        address(numbers),
        address(result),
        is_bf16(numbers),
        ctypes.c_long(numbers.numel()),
        ctypes.c_uint64(seed),
        threshold,
        ctypes.c_float(scale),
        torch.get_num_threads(),
    )
    return result


def r_drop(logits: Tensor, targets: Tensor, *, smoothing: float, weight: float) -> tuple[Tensor, Tensor]:
    """Replaces logits of two passes by their gradient of the loss that `training.r_drop` describes.

    Args:
        logits: (2, rows, vocabulary).
        targets: (rows) ids.
        smoothing, weight: ε, and that of the divergence.

    Returns:
        That loss and -log softmax at each target, in nats, both the mean of the passes, (rows) in fp32.
    Raises:
        IndexError: a target is no id.
    """
    _, rows, vocabulary = logits.shape
    assert (targets.dtype, len(targets)) == (torch.int64, rows)
    if rows and not 0 <= int(targets.min()) <= int(targets.max()) < vocabulary:
        raise IndexError(f"a target is not in a vocabulary of {vocabulary}")
    loss, nll = torch.empty(2, rows, device=logits.device, dtype=torch.float32)
    enough = library().r_drop(
        address(logits),
        is_bf16(logits),
        address(targets),
        ctypes.c_long(rows),
        ctypes.c_long(vocabulary),
        ctypes.c_float(smoothing),
        ctypes.c_float(weight),
        address(loss),
        address(nll),
        torch.get_num_threads(),
    )
    check(enough)
    return loss, nll


def attends(maps: Sequence[Tensor], num_heads: int, mask: Tensor | None) -> bool:
    """Whether `attention` takes these, and is faster than torch's operations."""
    query, key, _ = _parts(maps)
    (batch, queries, width), keys = query.shape, key.shape[1]
    fits = width % (LANES * num_heads) == 0 and queries * keys <= MOST_SCORES
    alike = key.shape == (batch, keys, width) and key.dtype == query.dtype
    simple = mask is None or mask.shape == (batch, 1, 1, keys)
    return fits and alike and simple and query.requires_grad and takes(maps[0])


def attention(
    maps: Sequence[Tensor],
    num_heads: int,
    mask: Tensor | None,
    rotation: tuple[Tensor, Tensor] | None,
    *,
    causal: bool,
) -> Tensor:
    """softmax(query · key / √head_width + mask) · value, with gradients of the maps; scores are in fp32.

    Args:
        maps: queries, keys and values beside each other, (batch, length, 3 × width), or queries (batch, queries, width)
            and the other two, (batch, keys, 2 × width); of the same type, their heads one after the other.
        mask: (batch, 1, 1, keys), or None if everything is visible.
        rotation: by which queries and keys are turned first, cosines and sines as `model.positions.rotate` reads them,
            (queries, head_width); there are as many keys then.
        causal: hide the future.

    Returns:
        (batch, queries, width).
    """
    if mask is not None:
        mask = mask.to(maps[0].dtype).contiguous()
    assert rotation is None or len(rotation[0]) == maps[0].shape[1] == maps[-1].shape[1]
    cosine, sine = (None, None) if rotation is None else (table.float().contiguous() for table in rotation)
    return _Attention.apply(num_heads, causal, mask, cosine, sine, *(part.contiguous() for part in maps))


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, num_heads: int, causal: bool, *tensors: Any) -> Tensor:
        ctx.settings = num_heads, causal
        ctx.save_for_backward(*tensors)
        query = _parts(tensors[3:])[0]
        result = torch.empty_like(query, memory_format=torch.contiguous_format)
        _Attended.of(*ctx.settings, *tensors).compute(result=result)
        return result

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]: by the decorator, which has no types
        ctx: Any, *gradients: Any
    ) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors  # held here: hooks may have made them anew
        found = [torch.empty_like(tensor) for tensor in saved[3:]]
        query, key, value = _parts(found)
        _Attended.of(*ctx.settings, *saved).compute(
            towards=gradients[0].contiguous(), of_query=query, of_key=key, of_value=value
        )
        return None, None, None, None, None, *found


def _parts(maps: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Queries, keys and values."""
    return maps[0].chunk(3, dim=-1) if len(maps) == 1 else (maps[0], *maps[1].chunk(2, dim=-1))


class _Attended(ctypes.Structure):
    """`struct attention` of `training.c`."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("query", "key", "value", "mask", "cosine", "sine")),
        *((name, ctypes.c_void_p) for name in ("result", "towards", "of_query", "of_key", "of_value")),
        *(
            (name, ctypes.c_long)
            for name in ("query_stride", "key_stride", "batch", "heads", "queries", "keys", "width")
        ),
        *((name, ctypes.c_int) for name in ("bf16", "causal", "backward")),
    )

    @classmethod
    def of(
        cls,
        num_heads: int,
        causal: bool,
        mask: Tensor | None,
        cosine: Tensor | None,
        sine: Tensor | None,
        *maps: Tensor,
    ) -> "_Attended":
        query, key, value = _parts(maps)
        batch, queries, width = query.shape
        read = {"query": query, "key": key, "value": value, "mask": mask, "cosine": cosine, "sine": sine}
        return cls(
            **{name: start_of(tensor) for name, tensor in read.items() if tensor is not None},
            query_stride=maps[0].shape[-1],
            key_stride=maps[-1].shape[-1],
            batch=batch,
            heads=num_heads,
            queries=queries,
            keys=key.shape[1],
            width=width // num_heads,
            bf16=is_bf16(query),
            causal=int(causal),
        )

    def compute(self, **written: Tensor) -> None:
        """The result, or all gradients."""
        self.backward = int("result" not in written)
        for name, tensor in written.items():
            setattr(self, name, start_of(tensor))
        check(library().attend(ctypes.byref(self), torch.get_num_threads()))


def check(enough: int) -> None:
    if not enough:
        raise MemoryError("not enough memory")


def is_bf16(tensor: Tensor) -> int:
    return int(tensor.dtype == torch.bfloat16)


def address(tensor: Tensor) -> ctypes.c_void_p:
    """Good for as long as the tensor is referred to."""
    assert tensor.is_contiguous()
    return start_of(tensor)


def start_of(tensor: Tensor) -> ctypes.c_void_p:
    """As `address`, but of what may be part of another tensor."""
    return ctypes.c_void_p(tensor.data_ptr())
