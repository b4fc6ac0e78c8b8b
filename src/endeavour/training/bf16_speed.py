"""How much faster than fp32 this CPU computes in bf16: what costs a model of given sizes most, timed in both.

The products of a layer, and the loss or the vocabulary projection, run in turn in the two precisions for a fraction of
a second: on one thread and by its own processor time, since two threads beside other work are slowed down at random.
Knows sizes; draws no random numbers, so that no training depends on it.
"""

import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from endeavour.model.layers import linear
from endeavour.training.loss import projected_loss

SECONDS = 0.15  # for each of the two pieces, besides one call in both precisions to warm up
LEAST_TURNS = 3
# Larger pieces have much the same ratio, and would leave no time for turns: multiply-adds of a forward pass.
ENOUGH_WORK = 5e7
LEAST_ROWS = 64
MOST_PIECES = 8192  # of the vocabulary
LAYERS = 8  # of encoder and decoder together, half of them the decoder's: their weight against the loss

# Computed in the precision it is given.
Piece = Callable[[torch.dtype], object]


def training_speedup(*, width: int, feed_forward: int, vocabulary: int, tokens: int) -> float:
    """Seconds in fp32 ÷ seconds in bf16, for the products of one update, forward and backward, under autocast."""
    weights = [weight.requires_grad_() for weight in _layer_weights(width, feed_forward)]
    rows = _rows(sum(weight.numel() for weight in weights), tokens)
    states = _numbers(rows, width).requires_grad_()
    output = _numbers(min(vocabulary, MOST_PIECES), width).requires_grad_()
    counted = _rows(output.numel(), tokens)
    last = _numbers(1, counted, width).requires_grad_()
    target = (torch.arange(counted) % (len(output) - 1) + 1)[None]  # none is PAD

    def layer(precision: torch.dtype) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
            result = _layer(states.to(precision), weights)
        torch.autograd.grad(result, [states, *weights], torch.ones_like(result))

    def loss(precision: torch.dtype) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
            value, _ = projected_loss(last, output, target, label_smoothing=0.1)
        torch.autograd.grad(value, [last, output])

    times = tokens / counted * vocabulary / len(output)
    return _speedup([(layer, LAYERS * tokens / rows), (loss, times)])


@torch.inference_mode()
def decoding_speedup(*, width: int, feed_forward: int, vocabulary: int, rows: int) -> float:
    """Seconds in fp32 ÷ seconds in bf16, for the products of one step of a search, with weights held in each.

    As many layers as a decoder has take turns: of few rows, products wait for weights that are not in a cache.
    """
    precisions = (torch.float32, torch.bfloat16)
    weights = [_layer_weights(width, feed_forward) for _ in range(LAYERS // 2)]
    layers = {each: [[weight.to(each) for weight in layer] for layer in weights] for each in precisions}
    output = {each: _numbers(min(vocabulary, MOST_PIECES), width).to(each) for each in precisions}
    taken = _rows(len(output[torch.float32]) * width, rows)
    states = {each: _numbers(taken, width).to(each) for each in precisions}

    def decoder(precision: torch.dtype) -> None:
        for layer in layers[precision]:
            _layer(states[precision], layer)

    def probabilities(precision: torch.dtype) -> None:
        linear(states[precision], output[precision]).float().log_softmax(dim=-1)

    return _speedup([(decoder, 1.0), (probabilities, max(1.0, vocabulary / MOST_PIECES))])


def _speedup(pieces: Sequence[tuple[Piece, float]]) -> float:
    """Of all `pieces` together, each counted as often as its number says."""
    totals = {torch.float32: 0.0, torch.bfloat16: 0.0}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for piece, times in pieces:
            for precision, seconds in _seconds(piece).items():
                totals[precision] += times * seconds
    finally:
        torch.set_num_threads(threads)
    return totals[torch.float32] / totals[torch.bfloat16]


def _seconds(piece: Piece) -> dict[torch.dtype, float]:
    """What it takes in each precision, in turns. The least counts: other work on the machine can only add to it."""
    least = {torch.float32: math.inf, torch.bfloat16: math.inf}
    for precision in least:
        piece(precision)
    began, turns = time.perf_counter(), 0
    while turns < LEAST_TURNS or time.perf_counter() - began < SECONDS:
        turns += 1
        for precision, seconds in least.items():
            started = time.thread_time()
            piece(precision)
            least[precision] = min(seconds, time.thread_time() - started)
    return least


def _layer(states: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """The products of self-attention's weights and of feed-forward, on states (rows, width)."""
    heads, joined, inner, outer = weights
    states = linear(linear(states, heads)[:, : len(joined)], joined)
    return linear(linear(states, inner).relu(), outer)


def _layer_weights(width: int, feed_forward: int) -> list[Tensor]:
    shapes = [(3 * width, width), (width, width), (feed_forward, width), (width, feed_forward)]
    return [_numbers(*shape) for shape in shapes]


def _rows(work: int, most: int) -> int:
    """As many as are worth timing, where one row takes `work` multiply-adds."""
    return min(most, max(LEAST_ROWS, round(ENOUGH_WORK / work)))


def _numbers(*shape: int) -> Tensor:
    return torch.full(shape, 1 / shape[-1])
