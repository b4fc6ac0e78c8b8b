"""How much faster than fp32 this CPU computes in bf16: what a model of given sizes costs most, timed in both.

A layer (norms, attention, feed-forward) and the loss or the vocabulary projection run in turn in the two precisions
for a fraction of a second. Knows sizes; draws from no global random state, so that no training depends on it.

Shapes: rows = positions of a batch; width = of the model.
"""

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from endeavour.training.loss import CPU_ROWS, projected_loss

SECONDS = 0.2  # for each of the two pieces, after one call of both to warm up
LEAST_TURNS = 2
# Sizes from which on a piece has the ratio of a larger one: multiply-adds of a forward pass.
ENOUGH_WORK = 5e7
LEAST_ROWS = 64
LAYERS = 8  # of encoder and decoder together, half of them the decoder's

Piece = Callable[[torch.dtype], object]


def training_speedup(*, width: int, feed_forward: int, vocabulary: int, tokens: int) -> float:
    """Seconds of fp32 ÷ seconds of bf16 for forward and backward of a model's layers and loss, under autocast."""
    weights = [weight.requires_grad_() for weight in _layer_weights(width, feed_forward)]
    rows = _enough_rows(sum(weight.numel() for weight in weights), tokens)
    states = _numbers(rows, width).requires_grad_()
    output = _numbers(vocabulary, width).requires_grad_()
    counted = min(_enough_rows(output.numel(), tokens), CPU_ROWS)
    last = _numbers(1, counted, width).requires_grad_()
    target = (torch.arange(counted) % (vocabulary - 1) + 1)[None]  # none is PAD

    def layer(precision: torch.dtype) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
            result = _layer(states.to(precision), weights)
        torch.autograd.grad(result, [states, *weights], torch.ones_like(result))

    def loss(precision: torch.dtype) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
            value, _ = projected_loss(last, output, target, label_smoothing=0.1)
        torch.autograd.grad(value, [last, output])

    return _speedup([(layer, LAYERS * tokens / rows), (loss, tokens / counted)])


@torch.inference_mode()
def decoding_speedup(*, width: int, feed_forward: int, vocabulary: int, rows: int) -> float:
    """Seconds of fp32 ÷ seconds of bf16 for one step of a search, with weights held in each."""
    precisions = (torch.float32, torch.bfloat16)
    weights = {
        each: [weight.to(each) for weight in _layer_weights(width, feed_forward)] for each in precisions
    }
    output = {each: _numbers(vocabulary, width).to(each) for each in precisions}
    states = {each: _numbers(rows, width).to(each) for each in precisions}
    return _speedup(
        [
            (lambda precision: _layer(states[precision], weights[precision]), LAYERS // 2),
            (
                lambda precision: (
                    functional.linear(states[precision], output[precision]).float().log_softmax(dim=-1)
                ),
                1,
            ),
        ]
    )


def _speedup(pieces: Sequence[tuple[Piece, float]]) -> float:
    """Of the sum of `pieces`, each with the times it is counted."""
    slow = fast = 0.0
    for piece, count in pieces:
        fp32, bf16 = _seconds(piece)
        slow, fast = slow + count * fp32, fast + count * bf16
    return slow / fast


def _seconds(piece: Piece) -> tuple[float, float]:
    """The least that it takes in fp32 and in bf16, in turns: other work on the machine only ever adds to it."""
    piece(torch.float32)
    piece(torch.bfloat16)
    fp32: list[float] = []
    bf16: list[float] = []
    began = time.perf_counter()
    while len(fp32) < LEAST_TURNS or time.perf_counter() - began < SECONDS:
        for precision, seconds in ((torch.float32, fp32), (torch.bfloat16, bf16)):
            started = time.perf_counter()
            piece(precision)
            seconds.append(time.perf_counter() - started)
    return min(fp32), min(bf16)


def _layer(states: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """States (rows, width) through the products of self-attention and of the feed-forward block."""
    heads_in, heads_out, inner, outer = weights
    states = functional.linear(functional.linear(states, heads_in)[:, : heads_out.shape[1]], heads_out)
    return functional.linear(functional.linear(states, inner).relu(), outer)


def _layer_weights(width: int, feed_forward: int) -> list[Tensor]:
    shapes = [(3 * width, width), (width, width), (feed_forward, width), (width, feed_forward)]
    return [_numbers(*shape) * shape[1] ** -0.5 for shape in shapes]


def _enough_rows(work: int, tokens: int) -> int:
    """As many as are worth timing, where one row takes `work` multiply-adds."""
    return min(tokens, max(LEAST_ROWS, round(ENOUGH_WORK / work)))


def _numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))
