"""Multi-head attention: the product itself, its masks, self- and cross-attention.

Knows shapes and masks; not tokens (except for PAD, from which a mask is made), layers or search strategies.

Shapes: batch = sentences; queries, keys = lengths; heads × head_width = width. A mask is added to the scores
before the softmax: 0 where a query may attend, a large negative number where it may not.
"""

from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from endeavour.errors import kind_and_first_line
from endeavour.model.layers import Dropout, Linear
from endeavour.model.positions import Rotation, rotate
from endeavour.native import functions as native
from endeavour.special import PAD

# On the CPU plain products are faster than the fused kernel up to this many scores per head, and in decoding from
# this many sentences on.
PLAIN_SCORES = 256 * 256
PLAIN_SENTENCES = 4
# Far below any score, so that the weight is exactly 0, but finite in every type that autocast may make of a mask: a row
# without keys does not become NaN.
HIDDEN = -(2.0**15)

# The module, once `prepare_kernels` has found that it works.
short_attention: ModuleType | None = None


def prepare_kernels(device: torch.device) -> str | None:
    """Lets training on `device` use kernels of our own: in C, or on GPUs that Triton is made for.

    Returns:
        Why it cannot, if that is not as expected.
    """
    global short_attention
    if device.type == "cpu" and (reason := native.why_not()):
        return f"training takes longer than it could: {reason}"
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 0):
        return None
    try:
        found = import_module("endeavour.model.short_attention")
        found.try_out(device)
    except Exception as error:  # of Triton, of a compiler, of a driver
        return f"attention takes longer than it could: {kind_and_first_line(error)}"
    short_attention = found
    return None


def padding_mask(ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Hides PAD: ids (batch, keys) to a mask (batch, 1, 1, keys)."""
    mask = torch.zeros(ids.shape, dtype=dtype, device=ids.device)
    return mask.masked_fill_(ids == PAD, HIDDEN)[:, None, None, :]


def causal_mask(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Hides the future: (length, length), query i sees keys 0 to i."""
    return torch.full((length, length), HIDDEN, dtype=dtype, device=device).triu_(1)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None,
    causal: bool,
    dropout: Dropout,
    record: list[Tensor] | None,
    rotation: Rotation | None = None,
) -> Tensor:
    """softmax(query · key / √head_width + mask) · value (Vaswani et al. 2017, equation 1).

    Chooses between torch's fused kernel, plain products and, in training on a GPU, `short_attention`. On a CPU torch's
    kernel is slow on short sentences, above all in its backward pass, and has no dropout; for a single sentence it is
    the faster one.

    Args:
        query: (batch, heads, queries, head_width).
        key, value: (batch, heads, keys, head_width).
        mask: broadcast over (batch, heads, queries, keys), or None if everything is visible.
        causal: hide the future; needs as many queries as keys, and no mask.
        dropout: applied to the weights.
        record: a list to which the weights (batch, heads, queries, keys) are appended.
        rotation: by which queries and keys, of which there are as many, are turned first.

    Returns:
        (batch, heads, queries, head_width).
    """
    probability = dropout.probability if dropout.training else 0.0
    if rotation is not None:
        query, key = rotate(query, rotation), rotate(key, rotation)
    size = query.shape[-2] * key.shape[-2]
    plain = (
        query.device.type == "cpu"
        and size <= PLAIN_SCORES
        and (query.requires_grad or len(query) >= PLAIN_SENTENCES)
    )
    if not plain and record is None:
        if (
            short_attention is not None
            and query.requires_grad
            and not probability
            and short_attention.fits(query, key)
        ):
            return short_attention.short_attention(query, key, value, mask, causal=causal)
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=probability, is_causal=causal
        )
    if causal:
        mask = causal_mask(query.shape[-2], query.dtype, query.device)
    products = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
    # In fp32, whatever the type of the products: more exact, and on a CPU mostly faster than in bf16.
    scores = products.float()
    if mask is not None:
        scores += mask.float()
    weights = scores.softmax(dim=-1).to(value.dtype)
    if record is not None:
        record.append(weights.detach())
    return dropout(weights) @ value


def multi_head_attention(
    *maps: Tensor,
    num_heads: int,
    mask: Tensor | None,
    causal: bool,
    dropout: Dropout,
    record: list[Tensor] | None,
    rotation: Rotation | None = None,
) -> Tensor:
    """`attend` to what linear maps gave, which in training on a CPU `native` reads as it lies there.

    Args:
        maps: query, key and value in one, (batch, length, 3 × width), or the query, (batch, queries, width), and the
            other two, (batch, keys, 2 × width).

    Returns:
        (batch, queries, width).
    """
    learning = dropout.training and not dropout.probability and record is None
    if learning and native.attends(maps, num_heads, mask):
        return native.attention(maps, num_heads, mask, rotation, causal=causal)
    parts = (3,) if len(maps) == 1 else (1, 2)
    heads = [
        head
        for fused, count in zip(maps, parts, strict=True)
        for head in split_heads(fused, count, num_heads)
    ]
    return merge_heads(
        attend(*heads, mask=mask, causal=causal, dropout=dropout, record=record, rotation=rotation)
    )


class KeyValue(NamedTuple):
    """Keys and values split into heads, each (batch, heads, keys, head_width)."""

    key: Tensor
    value: Tensor


class SelfAttention(nn.Module):
    """Attention of a sequence to itself (section 3.2.2); query, key and value come from one fused map."""

    def __init__(self, *, width: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.input = Linear(width, width, maps=3)
        self.output = Linear(width, width)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Xavier-uniform over the fused map, as in torch and fairseq: each part has 1/√2 of its own Xavier range."""
        for linear in (self.input, self.output):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(
        self,
        states: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        rotation: Rotation | None = None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """States (batch, length, width) in and out; the weights are appended to `record`."""
        attended = multi_head_attention(
            self.input(states),
            num_heads=self.num_heads,
            mask=mask,
            causal=causal,
            dropout=self.dropout,
            record=record,
            rotation=rotation,
        )
        return self.output(attended)


class CrossAttention(nn.Module):
    """Attention of the target to the encoder's states (section 3.2.3)."""

    def __init__(self, *, width: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = Linear(width, width)
        self.memory = Linear(width, width, maps=2)
        self.output = Linear(width, width)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """As for self-attention: the three input maps have 1/√2 of their own Xavier range, as if they were fused."""
        for weight in (self.query.weight, *self.memory.weight.chunk(2)):
            nn.init.xavier_uniform_(weight, gain=2**-0.5)
        nn.init.xavier_uniform_(self.output.weight)
        for linear in (self.query, self.memory, self.output):
            nn.init.zeros_(linear.bias)

    def project_kv(self, memory: Tensor) -> KeyValue:
        """Keys and values of the encoder's states (batch, keys, width), computed once per sentence."""
        return KeyValue(*split_heads(self.memory(memory), 2, self.num_heads))

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        *,
        mask: Tensor | None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """States (batch, length, width) in and out; `memory` is the encoder's states (batch, keys, width)."""
        attended = multi_head_attention(
            self.query(states),
            self.memory(memory),
            num_heads=self.num_heads,
            mask=mask,
            causal=False,
            dropout=self.dropout,
            record=record,
        )
        return self.output(attended)


def split_heads(fused: Tensor, parts: int, num_heads: int) -> Tensor:
    """(batch, length, parts × width) to (parts, batch, heads, length, head_width), in one copy for all."""
    batch, length, _ = fused.shape
    return fused.view(batch, length, parts, num_heads, -1).permute(2, 0, 3, 1, 4).contiguous()


def merge_heads(heads: Tensor) -> Tensor:
    """(batch, heads, length, head_width) to (batch, length, width)."""
    return heads.transpose(1, 2).flatten(2)
