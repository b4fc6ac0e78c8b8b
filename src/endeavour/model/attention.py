"""Multi-head attention: the product itself, its masks, self- and cross-attention, the decoder's cache.

Knows shapes and masks; not tokens (except for PAD, from which a mask is made), layers or search strategies.

Shapes: batch = sentences; queries, keys = lengths; heads × head_width = width. A mask is added to the scores
before the softmax: 0 where a query may attend, a large negative number where it may not.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from endeavour.model.layers import Dropout
from endeavour.model.positions import Rotation, rotate
from endeavour.special import PAD

# On the CPU plain products are faster than the fused kernel up to this many scores per head, and in decoding from
# this many sentences on.
PLAIN_SCORES = 256 * 256
PLAIN_SENTENCES = 4
# The decoder's cache grows by this many steps at a time. On a CPU torch copies bf16 tensors that are not contiguous
# before a product, and compiles a product for each new shape: keys that fill their memory need no copy and have few
# shapes.
STEPS_AT_A_TIME = 8


def masked_value(dtype: torch.dtype) -> float:
    """Far below any score, so that the weight is exactly 0, but finite: a row without keys does not become NaN."""
    return torch.finfo(dtype).min / 2


def padding_mask(ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Hides PAD: ids (batch, keys) to a mask (batch, 1, 1, keys)."""
    mask = torch.zeros(ids.shape, dtype=dtype, device=ids.device)
    return mask.masked_fill_(ids == PAD, masked_value(dtype))[:, None, None, :]


def causal_mask(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Hides the future: (length, length), query i sees keys 0 to i."""
    return torch.full((length, length), masked_value(dtype), dtype=dtype, device=device).triu_(1)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None,
    causal: bool,
    dropout: Dropout,
    record: list[Tensor] | None,
) -> Tensor:
    """softmax(query · key / √head_width + mask) · value (Vaswani et al. 2017, equation 1).

    Chooses between torch's fused kernel and plain products. On the CPU the fused kernel is slow on short sentences,
    above all in its backward pass, and has no dropout; for a single sentence it is the faster one.

    Args:
        query: (batch, heads, queries, head_width).
        key, value: (batch, heads, keys, head_width).
        mask: broadcast over (batch, heads, queries, keys), or None if everything is visible.
        causal: hide the future; needs as many queries as keys, and no mask.
        dropout: applied to the weights.
        record: a list to which the weights (batch, heads, queries, keys) are appended.

    Returns:
        (batch, heads, queries, head_width).
    """
    size = query.shape[-2] * key.shape[-2]
    plain = (
        query.device.type == "cpu"
        and size <= PLAIN_SCORES
        and (query.requires_grad or len(query) >= PLAIN_SENTENCES)
    )
    if not plain and record is None:
        probability = dropout.probability if dropout.training else 0.0
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


class KeyValue(NamedTuple):
    """Keys and values split into heads, each (batch, heads, keys, head_width)."""

    key: Tensor
    value: Tensor


class SelfCache:
    """Keys and values of one self-attention, (batch, heads, slots, head_width), filled step by step.

    Slots are allocated for `STEPS_AT_A_TIME` steps; the unused ones are zeros, which the mask of
    `DecoderCache.advance` hides.
    """

    def __init__(self) -> None:
        self.stored: KeyValue | None = None
        self.used = 0

    def append(self, new: KeyValue) -> KeyValue:
        """Adds the keys and values of the newest tokens and returns all slots."""
        start, self.used = self.used, self.used + new.key.shape[2]
        if self.stored is None or self.used > self.stored.key.shape[2]:
            self.stored = KeyValue(*(self._grown(index, new[index]) for index in range(2)))
        for stored, added in zip(self.stored, new, strict=True):
            stored[:, :, start : self.used] = added
        return self.stored

    def _grown(self, index: int, new: Tensor) -> Tensor:
        batch, heads, added, head_width = new.shape
        old = 0 if self.stored is None else self.stored[index].shape[2]
        grown = new.new_zeros(batch, heads, old + STEPS_AT_A_TIME * added, head_width)
        if self.stored is not None:
            grown[:, :, :old] = self.stored[index]
        return grown

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only."""
        if self.stored is not None:
            self.stored = KeyValue(*(part.index_select(0, sentences) for part in self.stored))


class DecoderCache:
    """A decoder's state between steps, for a batch of beams.

    All hypotheses of a sentence share one store of keys and values: each step adds one slot per beam position, and
    nothing is moved when the search reorders its beams. Instead `visible` says which slots belong to the past of
    which hypothesis, and becomes the mask of the self-attention.
    """

    def __init__(self, cross: list[KeyValue], memory_mask: Tensor | None, *, beam_size: int) -> None:
        self.cross = cross
        self.memory_mask = memory_mask
        self.layers = [SelfCache() for _ in cross]
        self.length = 0
        """Positions decoded so far."""
        key = cross[0].key
        self.visible = torch.empty(len(key), beam_size, 0, dtype=torch.bool, device=key.device)
        """(batch, beam, slots); length × beam slots are used, the others are visible to no hypothesis."""

    def advance(self, dtype: torch.dtype) -> Tensor:
        """Opens the slots of the next step, each visible to its own hypothesis.

        Returns:
            The mask for that step, (batch, 1, beam, slots).
        """
        _, beam, slots = self.visible.shape
        start, self.length = self.length * beam, self.length + 1
        if start == slots:
            self.visible = functional.pad(self.visible, (0, STEPS_AT_A_TIME * beam))
        own = torch.eye(beam, dtype=torch.bool, device=self.visible.device)
        self.visible[:, :, start : start + beam] = own
        mask = torch.zeros(self.visible.shape, dtype=dtype, device=self.visible.device)
        return mask.masked_fill_(~self.visible, masked_value(dtype))[:, None]

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis i of a sentence continues what was hypothesis parents[i]; parents are (batch, beam)."""
        self.visible = self.visible.gather(1, parents[:, :, None].expand_as(self.visible))

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only, in this order; their indices are (kept,)."""
        self.cross = [KeyValue(*(part.index_select(0, sentences) for part in layer)) for layer in self.cross]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask.index_select(0, sentences)
        self.visible = self.visible.index_select(0, sentences)
        for layer in self.layers:
            layer.select(sentences)


class SelfAttention(nn.Module):
    """Attention of a sequence to itself (section 3.2.2); query, key and value come from one fused map."""

    def __init__(self, *, width: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.input = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
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
        cache: SelfCache | None = None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """States (batch, length, width) in and out; with a cache, these keys are added to those that it holds.

        With a cache, `mask` is what `DecoderCache.advance` returned. The weights are appended to `record`.
        """
        query, key, value = split_heads(self.input(states), 3, self.num_heads)
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        if cache is not None:
            key, value = cache.append(KeyValue(key, value))
        attended = attend(query, key, value, mask=mask, causal=causal, dropout=self.dropout, record=record)
        return self.output(merge_heads(attended))


class CrossAttention(nn.Module):
    """Attention of the target to the encoder's states (section 3.2.3)."""

    def __init__(self, *, width: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(width, width)
        self.memory = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)
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
        key, value = split_heads(self.memory(memory), 2, self.num_heads)
        return KeyValue(key, value)

    def forward(
        self,
        states: Tensor,
        memory: KeyValue,
        *,
        mask: Tensor | None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """States (batch, length, width) in and out; the weights are appended to `record`."""
        (query,) = split_heads(self.query(states), 1, self.num_heads)
        attended = attend(
            query, memory.key, memory.value, mask=mask, causal=False, dropout=self.dropout, record=record
        )
        return self.output(merge_heads(attended))


def split_heads(fused: Tensor, parts: int, num_heads: int) -> tuple[Tensor, ...]:
    """(batch, length, parts × width) to `parts` × (batch, heads, length, head_width), in one copy for all."""
    batch, length, _ = fused.shape
    split = fused.view(batch, length, parts, num_heads, -1).permute(2, 0, 3, 1, 4)
    return split.contiguous().unbind(0)


def merge_heads(heads: Tensor) -> Tensor:
    """(batch, heads, length, head_width) to (batch, length, width)."""
    return heads.transpose(1, 2).flatten(2)
