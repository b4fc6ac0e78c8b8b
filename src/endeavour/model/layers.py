"""The layers besides attention: linear maps, dropout, the feed-forward block, the residual connection.

Knows nothing of tokens, masks, configs, encoder or decoder: every layer takes and returns states (..., width).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from endeavour.native import functions as native
from endeavour.native import layer_step

BYTE_VALUES = 256  # a random byte is dropped when it falls below probability × 256
LONG_RANGE = -(2**63)  # `random_` from here to None draws all 64 bits


def linear(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As torch.nn.functional.linear, (..., inputs) to (..., outputs), and faster for the few rows of a step."""
    if layer_step.takes_rows(states, weight, bias):
        return layer_step.few_rows(states, weight, bias)
    return functional.linear(states, weight, bias)


class Linear(nn.Linear):
    """torch's, by `linear`; perhaps several `maps` of one input, whose outputs stand one after the other."""

    def __init__(self, inputs: int, outputs: int, *, maps: int = 1) -> None:
        super().__init__(inputs, maps * outputs)
        self.maps = maps

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


class Dropout(nn.Module):
    """Inverted dropout (Srivastava et al. 2014), with a fast path for the CPU.

    On the CPU torch draws one 32-bit number per element, which takes several times as long as the rest of
    dropout. Here an element has one random byte, so the probability is rounded to a multiple of 1/256 and the
    survivors are scaled by the rounded one: the expectation stays exact, except for the rounding of that scale
    in bf16 without `native` (at most 0.4%). Other devices use torch's own.
    All draws come from torch's global generators, whose saved state therefore resumes a run exactly.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self.threshold = min(round(probability * BYTE_VALUES), BYTE_VALUES - 1)

    def extra_repr(self) -> str:
        return f"{self.probability}"

    def forward(self, states: Tensor) -> Tensor:
        """Any shape in, the same shape out; the identity in evaluation mode."""
        if not self.training or self.probability == 0.0:
            return states
        if states.device.type != "cpu" or self.threshold == 0:
            return functional.dropout(states, self.probability)
        if native.takes(states):
            return native.dropout(states, threshold=self.threshold, scale=self._scale)
        return states * self._mask(states)

    @property
    def _scale(self) -> float:
        """What those that are kept are multiplied with."""
        return BYTE_VALUES / (BYTE_VALUES - self.threshold)

    def _mask(self, states: Tensor) -> Tensor:
        """0 for a dropped element, 1 / (share of kept ones) for the others."""
        count = states.numel()
        draws = torch.empty((count + 7) // 8, dtype=torch.int64).random_(LONG_RANGE, None)
        mask = torch.empty(states.shape, dtype=states.dtype)
        # Straight into the mask: a third faster than booleans that are converted afterwards.
        torch.ge(draws.view(torch.uint8)[:count].view(states.shape), self.threshold, out=mask)
        return mask.mul_(self._scale)


def _relu(states: Tensor) -> Tensor:
    # In place would save memory, but a view's gradient is copied whole when the view was written to.
    return functional.relu(states, inplace=not states.requires_grad)


def _swiglu(gate_and_value: Tensor) -> Tensor:
    gate, value = gate_and_value.chunk(2, dim=-1)
    return functional.silu(gate) * value


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": _relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "swiglu": _swiglu,
}
GATED = {"swiglu"}  # these halve their input: the map before them has twice the outputs


class FeedForward(nn.Module):
    """Two linear maps with an activation between (Vaswani et al. 2017, section 3.3).

    With `swiglu` (Shazeer 2020, "GLU Variants Improve Transformer") the first map has two halves, gate and
    value, so that at the same `feed_forward` the block holds half as many weights again.
    """

    def __init__(self, *, width: int, feed_forward: int, activation: str, dropout: float) -> None:
        super().__init__()
        self.activation_name = activation
        self.activation = ACTIVATIONS[activation]
        self.inner = Linear(width, feed_forward, maps=2 if activation in GATED else 1)
        self.dropout = Dropout(dropout)
        self.outer = Linear(feed_forward, width)

    def reset_parameters(self) -> None:
        """Xavier-uniform weights (each half of a gated map on its own), biases of zero."""
        for weight in self.inner.weight.chunk(self.inner.maps):
            nn.init.xavier_uniform_(weight)
        nn.init.xavier_uniform_(self.outer.weight)
        nn.init.zeros_(self.inner.bias)
        nn.init.zeros_(self.outer.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(..., width) in and out."""
        return self.outer(self.dropout(self.activation(self.inner(states))))


class Residual(nn.Module):
    """One residual connection with its layer norm, before the sublayer or after the sum.

    `post` is Vaswani et al. 2017, section 3.1; `pre` is Xiong et al. 2020, "On Layer Normalization in the
    Transformer Architecture", which trains without warmup but needs one more norm on top of the stack.
    """

    def __init__(self, *, width: int, norm: str, dropout: float) -> None:
        super().__init__()
        self.norm_first = norm == "pre"
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(..., width) in and out; `sublayer` maps states to states of the same shape."""
        if self.norm_first:
            return states + self.dropout(sublayer(self.norm(states)))
        return self.norm(states + self.dropout(sublayer(states)))
