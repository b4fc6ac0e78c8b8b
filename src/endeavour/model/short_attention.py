"""Attention of short sentences on a GPU, in one kernel for the values and one for the gradients.

torch's kernels work in tiles of 64 × 64 scores and more, nearly empty for sentences of 15 pieces. Here one program has
all the scores of a head of one sentence, in a tile just large enough for them, so that nothing but the tensors
themselves is read or written, and all gradients come of one pass. To `torch.compile` each is one operation, and which
tile it takes is decided when it runs: batches of all lengths up to `LONGEST` share a graph.

Knows queries, keys, values and a mask; not what they are for. Shapes and masks are those of `attention`.
"""

from typing import Any

import torch
from torch import Tensor

from endeavour.model.short_attention_kernels import gradients, values

LONGEST = 64  # queries and keys
WIDEST = 128  # head_width
SMALLEST = 16  # side of a tile that can be multiplied
SCORES_PER_WARP = 1024


def fits(query: Tensor, key: Tensor) -> bool:
    """Whether `short_attention` can compute with these."""
    small = max(query.shape[2], key.shape[2]) <= LONGEST and query.shape[3] <= WIDEST
    return small and query.is_cuda and query.dtype in (torch.bfloat16, torch.float16)


def try_out(device: torch.device) -> None:
    """Computes something small with both kernels; raises what Triton does where it cannot compile or launch them."""
    heads = torch.zeros(1, 1, 1, SMALLEST, dtype=torch.bfloat16, device=device, requires_grad=True)
    short_attention(heads, heads, heads, None, causal=True).sum().backward()


def short_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, causal: bool
) -> Tensor:
    """softmax(query · key / √head_width + mask) · value, with gradients of the first three.

    Args:
        query: (batch, heads, queries, head_width), at most `LONGEST` and `WIDEST`, in bf16 or fp16.
        key, value: (batch, heads, keys, head_width), in the same type.
        mask: broadcast over (batch, 1, 1, keys), or None if everything is visible.
        causal: hide the future.

    Returns:
        (batch, heads, queries, head_width), whose `transpose(1, 2)` is contiguous.
    """
    if mask is not None:
        mask = mask.expand(len(query), 1, 1, key.shape[2])[:, 0, 0]
    return torch.ops.endeavour.short_attention(query, key, value, mask, causal)


# Operations to `torch.compile`. (`custom_op`, which is shorter, would cost the host some 50 µs more a call.)
_VALUES, _GRADIENTS = "endeavour::short_attention", "endeavour::short_attention_gradients"
_DEVICES = ("cuda", "cpu")  # where Triton interprets
_INPUTS = "Tensor query, Tensor key, Tensor value, Tensor? mask, bool causal"
_KIND = torch.Tag.pt2_compliant_tag
torch.library.define(_VALUES, f"({_INPUTS}) -> Tensor", tags=_KIND)
torch.library.define(_GRADIENTS, f"(Tensor gradient, {_INPUTS}) -> (Tensor, Tensor, Tensor)", tags=_KIND)


def _values(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    output = _like(query)
    _launch(values, query, key, value, mask, causal, output)
    return output


def _like_values(query: Tensor, *_: Any) -> Tensor:
    return _like(query)


def _gradients(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    # What the kernels write, and this, has rows of all heads.
    gradient = gradient.transpose(1, 2).contiguous()
    results = _like(query), _like(key), _like(value)
    _launch(gradients, query, key, value, mask, causal, gradient, *results)
    return results


def _like_gradients(_: Tensor, query: Tensor, key: Tensor, value: Tensor, *__: Any) -> tuple[Tensor, ...]:
    return _like(query), _like(key), _like(value)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.causal = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    found = torch.ops.endeavour.short_attention_gradients(gradient, *ctx.saved_tensors, ctx.causal)
    return *found, None, None


torch.library.impl(_VALUES, _DEVICES, _values)
torch.library.impl(_GRADIENTS, _DEVICES, _gradients)
torch.library.register_fake(_VALUES, _like_values)
torch.library.register_fake(_GRADIENTS, _like_gradients)
torch.library.register_autograd(_VALUES, _backward, setup_context=_keep)


def _like(heads: Tensor) -> Tensor:
    """(batch, heads, length, head_width), whose `transpose(1, 2)` is contiguous."""
    batch, count, length, width = heads.shape
    return heads.new_empty(batch, length, count, width).transpose(1, 2)


def _launch(
    kernel: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, *others: Tensor
) -> None:
    batch, heads, queries, width = query.shape
    keys = key.shape[2]
    tile = [max(SMALLEST, 1 << (side - 1).bit_length()) for side in (queries, keys, width)]
    inputs = [heads if heads.stride(-1) == 1 else heads.contiguous() for heads in (query, key, value)]
    strides = [stride for heads in inputs for stride in heads.stride()[:3]]
    with torch.cuda.device_of(query):
        kernel[(batch * heads,)](
            *inputs,
            query if mask is None else mask.contiguous(),
            *others,
            width**-0.5,
            heads,
            queries,
            keys,
            width,
            *strides,
            causal,
            mask is not None,
            *tile,
            num_warps=max(1, tile[0] * tile[1] // SCORES_PER_WARP),
        )
