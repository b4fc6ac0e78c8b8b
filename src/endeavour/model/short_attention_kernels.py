# pyright: basic
"""The kernels of `short_attention`, in Triton: one program for each head of one sentence.

Their arguments without a type are pointers, counts and strides in elements; those in capitals are known when a kernel
is compiled: the sides of its tiles, powers of two, and which masks there are.
"""

import triton
import triton.language as tl

# Numbers that a kernel is not compiled anew for.
COUNTS = ["heads", "queries", "keys", "width"]


@triton.jit
def _load(pointer, sentence, head, count, width, by_sentence, by_head, by_row, ROWS, WIDTH):
    """The rows of one head, (ROWS, WIDTH), 0 beyond (count, width)."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, WIDTH)[None, :]
    place = pointer + sentence * by_sentence + head * by_head + row * by_row + column
    return tl.load(place, mask=(row < count) & (column < width), other=0.0)


@triton.jit
def _store(pointer, tile, sentence, head, heads, count, width, ROWS, WIDTH):
    """Writes the rows of one head, (ROWS, WIDTH), to a tensor whose rows have all heads."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, WIDTH)[None, :]
    place = pointer + (sentence * count + row) * heads * width + head * width + column
    tl.store(place, tile.to(pointer.dtype.element_ty), mask=(row < count) & (column < width))


@triton.jit
def _weights(query, key, mask, sentence, scale, keys, CAUSAL, MASKED, QUERIES, KEYS):
    """The attention weights of one head, (QUERIES, KEYS), in fp32."""
    row, column = tl.arange(0, QUERIES)[:, None], tl.arange(0, KEYS)[None, :]
    scores = tl.dot(query, tl.trans(key)) * scale
    if MASKED:
        scores += tl.load(mask + sentence * keys + column, mask=column < keys, other=0.0).to(tl.float32)
    visible = column < keys
    if CAUSAL:
        visible = visible & (column <= row)
    scores = tl.where(visible, scores, float("-inf"))
    powers = tl.exp(scores - tl.max(scores, axis=1, keep_dims=True))
    return powers / tl.sum(powers, axis=1, keep_dims=True)


@triton.jit(do_not_specialize=COUNTS)
def values(
    query, key, value, mask, output, scale, heads, queries, keys, width,
    q_sentence, q_head, q_row, k_sentence, k_head, k_row, v_sentence, v_head, v_row,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    sentence, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    q = _load(query, sentence, head, queries, width, q_sentence, q_head, q_row, QUERIES, WIDTH)
    k = _load(key, sentence, head, keys, width, k_sentence, k_head, k_row, KEYS, WIDTH)
    v = _load(value, sentence, head, keys, width, v_sentence, v_head, v_row, KEYS, WIDTH)
    weights = _weights(q, k, mask, sentence, scale, keys, CAUSAL, MASKED, QUERIES, KEYS)
    _store(output, tl.dot(weights.to(v.dtype), v), sentence, head, heads, queries, width, QUERIES, WIDTH)


@triton.jit(do_not_specialize=COUNTS)
def gradients(
    query, key, value, mask, gradient, q_gradient, k_gradient, v_gradient, scale, heads, queries, keys, width,
    q_sentence, q_head, q_row, k_sentence, k_head, k_row, v_sentence, v_head, v_row,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    sentence, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    q = _load(query, sentence, head, queries, width, q_sentence, q_head, q_row, QUERIES, WIDTH)
    k = _load(key, sentence, head, keys, width, k_sentence, k_head, k_row, KEYS, WIDTH)
    v = _load(value, sentence, head, keys, width, v_sentence, v_head, v_row, KEYS, WIDTH)
    row = heads * width
    g = _load(gradient, sentence, head, queries, width, queries * row, width, row, QUERIES, WIDTH)
    weights = _weights(q, k, mask, sentence, scale, keys, CAUSAL, MASKED, QUERIES, KEYS)
    v_tile = tl.dot(tl.trans(weights.to(g.dtype)), g)
    _store(v_gradient, v_tile, sentence, head, heads, keys, width, KEYS, WIDTH)
    # The scores' gradient: weight × (its gradient - the mean of those of its row, by the weights)
    w_gradient = tl.dot(g, tl.trans(v))
    s_gradient = weights * (w_gradient - tl.sum(weights * w_gradient, axis=1, keep_dims=True))
    s_gradient = (s_gradient * scale).to(q.dtype)
    _store(q_gradient, tl.dot(s_gradient, k), sentence, head, heads, queries, width, QUERIES, WIDTH)
    _store(k_gradient, tl.dot(tl.trans(s_gradient), q), sentence, head, heads, keys, width, KEYS, WIDTH)
