"""Three ways to tell a Transformer where a token stands: sinusoidal, learned, rotary.

The first two are added to the embeddings, the third turns queries and keys of self-attention. None of them knows
tokens, batches or caches; a position is counted from 0, the first token of a sentence.

Shapes: length = positions asked for; head_width = 2 × half.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from endeavour.errors import UserError

WAVELENGTH = 10_000.0  # base of the geometric progression of wavelengths in both papers
# Positions tabulated at first. The tables double for a longer sentence, and what torch.compile made is made again.
FIRST_TABLE = 2048


class Rotation(NamedTuple):
    """Cosines and sines of the angles by which heads are turned, each (length, head_width), as `rotate` needs them.

    The two halves are equal, except for the sign of the sines, which is negative in the first.
    """

    cosine: Tensor
    sine: Tensor


def _angles(length: int, width: int) -> Tensor:
    """position × 10000^(-2i / width), (length, width / 2), in float32."""
    frequencies = WAVELENGTH ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.outer(torch.arange(length, dtype=torch.float64), frequencies).float()


class SinusoidalPositions(nn.Module):
    """Sines at even, cosines at odd components (Vaswani et al. 2017, section 3.5); of any length."""

    table: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", self._tabulate(FIRST_TABLE), persistent=False)

    def _tabulate(self, length: int) -> Tensor:
        angles = _angles(length, self.width)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)

    def forward(self, start: int, length: int) -> Tensor:
        """The vectors of positions start to start + length, (length, width)."""
        end = start + length
        if end > len(self.table):
            with torch.inference_mode(False):  # training may need the table after a search that grew it
                self.table = self._tabulate(2 * end).to(self.table)
        return self.table[start:end]


class LearnedPositions(nn.Module):
    """One trained vector a position, of which there are `max_length` (Gehring et al. 2017, section 3.1)."""

    def __init__(self, width: int, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.weight = nn.Parameter(torch.empty(max_length, width))

    def reset_parameters(self) -> None:
        """Normal with deviation width^-1/2, the size of a word's vector."""
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)

    def forward(self, start: int, length: int) -> Tensor:
        """The vectors of positions start to start + length, (length, width).

        Raises UserError beyond `max_length`.
        """
        end = start + length
        if end > self.max_length:
            raise UserError(
                f"a sentence of {end} tokens does not fit model.max_length={self.max_length} "
                "(learned positions): shorten it, or train with a larger one or with sinusoidal positions"
            )
        return self.weight[start:end]


class RotaryPositions(nn.Module):
    """Angles of rotary positions (Su et al. 2021, "RoFormer", section 3.2); of any length."""

    cosine: Tensor
    sine: Tensor

    def __init__(self, head_width: int) -> None:
        super().__init__()
        self.head_width = head_width
        cosine, sine = self._tabulate(FIRST_TABLE)
        self.register_buffer("cosine", cosine, persistent=False)
        self.register_buffer("sine", sine, persistent=False)

    def _tabulate(self, length: int) -> Rotation:
        angles = _angles(length, self.head_width)
        cosine, sine = angles.cos(), angles.sin()
        return Rotation(torch.cat([cosine, cosine], dim=-1), torch.cat([-sine, sine], dim=-1))

    def forward(self, start: int, length: int) -> Rotation:
        """The rotation of positions start to start + length."""
        end = start + length
        if end > len(self.cosine):
            with torch.inference_mode(False):  # training may need the tables after a search that grew them
                cosine, sine = self._tabulate(2 * end)
                self.cosine, self.sine = cosine.to(self.cosine), sine.to(self.sine)
        return Rotation(self.cosine[start:end], self.sine[start:end])


def rotate(heads: Tensor, rotation: Rotation) -> Tensor:
    """Turns component i of each head together with component i + half.

    The paper pairs neighbours; pairing halves is the same up to the order of the components, and cheaper.

    Args:
        heads: (..., length, head_width).
        rotation: for these `length` positions, or for one that they all share.
    """
    cosine, sine = rotation.cosine.to(heads.dtype), rotation.sine.to(heads.dtype)
    return heads * cosine + heads.roll(heads.shape[-1] // 2, dims=-1) * sine
