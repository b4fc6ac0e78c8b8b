"""The functions of `decoding.c` for torch: a decoder's layer for the newest tokens of few rows, and a map of few rows.

Shapes: batch = sentences; beam = hypotheses of one sentence; slots, keys = of the cache, of the source.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from endeavour.native.compiler import library
from endeavour.native.functions import LANES, address, check, is_bf16, takes

INPUTS = 32  # of `numbers.h`
# Weights that are worth a thread.
SHARE = 2**18
ACTIVATIONS = ("relu", "gelu", "silu", "swiglu")


class Norm(NamedTuple):
    """Of a layer norm: both of (width)."""

    weight: Tensor
    bias: Tensor
    epsilon: float


def usable(*tensors: Tensor | None) -> bool:
    """Whether the functions can compute with these weights (outputs, inputs), biases and norms, now.

    They know no gradients and nothing of autocast.
    """
    given = [tensor for tensor in tensors if tensor is not None]
    exact = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")
    return not exact and all(
        takes(tensor)
        and tensor.dtype == given[0].dtype
        and tensor.is_contiguous()
        and (tensor.ndim == 1 or tensor.shape[1] % INPUTS == 0)
        for tensor in given
    )


def takes_rows(rows: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether `few_rows` computes with these."""
    if torch.is_grad_enabled() or not takes(rows):  # before any shape is looked at, which might be recorded
        return False
    fit = (
        weight.ndim == 2
        and rows.shape[-1:] == weight.shape[1:]
        and (bias is None or bias.shape == weight.shape[:1])
    )
    return fit and _are_few(rows, weight) and usable(weight, bias)


def few_rows(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """rows · weight (transposed) + bias, (..., inputs) to (..., outputs), of at most `most_rows`; no gradient."""
    rows = rows.contiguous()
    result = rows.new_empty(*rows.shape[:-1], len(weight))
    library().map_few(
        ctypes.byref(_Map.of(weight, bias)),
        is_bf16(weight),
        address(rows),
        address(result),
        ctypes.c_long(rows.numel() // rows.shape[-1]),
        _threads(weight.numel()),
    )
    return result


class LayerKernel:
    """The step of one decoder layer in evaluation mode.

    Args:
        maps: weight and bias of the fused map to query, key and value of self-attention, of its output, of the query of
            cross-attention, of its output, and of both maps of the feed-forward block.
        norms: of the three sublayers.
        heads: of either attention.
        activation: one of `ACTIVATIONS`.
        norm_first: whether a norm is before its sublayer, or after the sum.
    """

    def __init__(
        self,
        maps: Sequence[tuple[Tensor, Tensor]],
        norms: Sequence[Norm],
        *,
        heads: int,
        activation: str,
        norm_first: bool,
    ) -> None:
        # Their addresses are used for as long as this exists, whatever becomes of the parameters.
        self._maps = [(weight.detach(), bias.detach()) for weight, bias in maps]
        self._norms = [Norm(one.weight.detach(), one.bias.detach(), one.epsilon) for one in norms]
        self._heads = heads
        assert maps[0][0].shape[1] % (heads * LANES) == 0
        self._threads = _threads(sum(weight.numel() for weight, _ in maps))
        self._layer = _Layer(
            (_Map * len(maps))(*(_Map.of(*each) for each in self._maps)),
            (_Norm * len(norms))(
                *(_Norm(address(one.weight), address(one.bias), one.epsilon) for one in self._norms)
            ),
            heads,
            is_bf16(maps[0][0]),
            int(norm_first),
            ACTIVATIONS.index(activation),
        )

    def takes(self, states: Tensor) -> bool:
        """Whether these are few rows of the layer's type, now."""
        first = self._maps[0][0]
        return _are_few(states, first) and takes(states) and usable(first)

    def __call__(
        self,
        states: Tensor,
        *,
        own: Tensor,
        used: int,
        key: Tensor,
        value: Tensor,
        mask: Tensor,
        memory_mask: Tensor | None,
        rotation: tuple[Tensor, Tensor] | None,
    ) -> Tensor:
        """States (batch, beam, width) to those after the layer.

        Args:
            own: keys and values of self-attention, (2, batch, heads, slots, head_width), to which those of the newest
                tokens are written, behind the `used` slots of all others.
            key, value: of the source, (batch, heads, keys, head_width).
            mask: (batch, 1, beam, slots), 0 where a hypothesis sees a slot, a large negative number elsewhere.
            memory_mask: (batch, 1, 1, keys), the same for keys, or None if all are visible. Where none is, what is
                attended to is 0.
            rotation: of the newest position, cosines and sines (1, head_width).
        """
        batch, beam, width = states.shape
        slots, keys, head_width = own.shape[3], key.shape[2], width // self._heads
        assert width == self._maps[0][0].shape[1]
        assert used + beam <= slots
        assert own.shape == (2, batch, self._heads, slots, head_width)
        assert key.shape == value.shape == (batch, self._heads, keys, head_width)
        assert mask.shape == (batch, 1, beam, slots)
        assert memory_mask is None or memory_mask.shape == (batch, 1, 1, keys)
        assert rotation is None or rotation[0].shape == rotation[1].shape == (1, head_width)
        masks = [mask] if memory_mask is None else [mask, memory_mask]
        assert {one.dtype for one in (own, key, value, *masks)} == {states.dtype}
        states = states.contiguous()
        result = torch.empty_like(states)
        turned = None if rotation is None else [table.float().contiguous() for table in rotation]
        cosine, sine = (None, None) if turned is None else map(address, turned)
        step = _Step(
            address(states),
            address(result),
            address(own),
            address(key),
            address(value),
            address(mask),
            None if memory_mask is None else address(memory_mask),
            cosine,
            sine,
            batch,
            beam,
            slots,
            used,
            keys,
        )
        check(library().decode(ctypes.byref(self._layer), ctypes.byref(step), self._threads))
        return result


class _Map(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("weight", "bias")),
        *((name, ctypes.c_long) for name in ("inputs", "outputs")),
    )

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None) -> "_Map":
        outputs, inputs = weight.shape
        return cls(address(weight), None if bias is None else address(bias), inputs, outputs)


class _Norm(ctypes.Structure):
    _fields_ = (("weight", ctypes.c_void_p), ("bias", ctypes.c_void_p), ("epsilon", ctypes.c_float))


class _Layer(ctypes.Structure):
    _fields_ = (
        ("maps", _Map * 6),
        ("norms", _Norm * 3),
        ("heads", ctypes.c_long),
        *((name, ctypes.c_int) for name in ("bf16", "norm_first", "activation")),
    )


class _Step(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_void_p)
            for name in ("states", "result", "own", "key", "value", "mask", "memory_mask", "cosine", "sine")
        ),
        *((name, ctypes.c_long) for name in ("batch", "beam", "slots", "used", "keys")),
    )


@cache
def most_rows(dtype: torch.dtype) -> int:
    """Up to so many rows the functions were faster than torch's operations, whatever the width (docs/speed.md).

    By MKL torch multiplies numbers in fp32, and that uses AVX-512 on Intel's processors alone.
    """
    if dtype != torch.float32:
        return 32
    try:
        intels = "GenuineIntel" in Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        intels = True
    return 64 if intels else 320


def _are_few(rows: Tensor, weight: Tensor) -> bool:
    return rows.dtype == weight.dtype and 0 < rows.numel() <= most_rows(rows.dtype) * weight.shape[-1]


def _threads(weights: int) -> int:
    return max(1, min(torch.get_num_threads(), weights // SHARE))
