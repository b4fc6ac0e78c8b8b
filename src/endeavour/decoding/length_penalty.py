"""What the log-probability of a hypothesis is divided by, so that short ones do not win. Knows lengths only."""

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Length = TypeVar("Length", float, "Tensor")


def length_penalty(length: Length, alpha: float) -> Length:
    """((5 + length) / 6)^α, length counting EOS: Wu et al. 2016, "Google's Neural Machine Translation System",
    equation 14. `beam_search` needs a penalty that never falls as the length grows."""
    penalty: Any = ((5.0 + length) / 6.0) ** alpha
    return penalty
