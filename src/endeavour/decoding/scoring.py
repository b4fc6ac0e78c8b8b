"""The probability of given translations under a model, by one pass over each.

Knows the model and ids; not how the translations were found.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from endeavour.special import BOS, EOS, PAD

# Source ids (batch, source) and target ids (batch, target), padded, to logits (batch, target, vocabulary).
Logits = Callable[[Tensor, Tensor], Tensor]

TOKENS_PER_BATCH = 2048


@torch.inference_mode()
def log_probabilities(
    logits: Logits,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    excluded: Sequence[int] = (),
    device: torch.device | None = None,
) -> list[float]:
    """Natural logarithm of the probability of each target, and of EOS after it, given its source.

    Args:
        logits: a model in evaluation mode.
        sources: ids, ending in EOS.
        targets: ids, without BOS and EOS.
        excluded: ids that count as impossible: the others share their probability.
        device: the model's device.
    """
    results = [0.0] * len(sources)
    order = sorted(range(len(sources)), key=lambda row: (len(sources[row]), len(targets[row])))
    longest = max(
        (len(source) + len(target) for source, target in zip(sources, targets, strict=True)), default=1
    )
    size = max(1, TOKENS_PER_BATCH // longest)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        source = _padded([sources[row] for row in rows], device)
        target_in = _padded([[BOS, *targets[row]] for row in rows], device)
        target_out = _padded([[*targets[row], EOS] for row in rows], device)
        scores = logits(source, target_in).float()
        scores[..., list(excluded)] = -torch.inf
        tokens = scores.log_softmax(dim=-1).gather(2, target_out[..., None]).squeeze(2)
        sums = tokens.masked_fill(target_out == PAD, 0.0).sum(dim=1).tolist()
        for row, value in zip(rows, sums, strict=True):
            results[row] = value
    return results


def _padded(rows: list[Sequence[int]] | list[list[int]], device: torch.device | None) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD).to(device)
