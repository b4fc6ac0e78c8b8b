"""The probability of given translations under a model, whole and piece by piece, by one pass over each.

Knows the model and ids; not how the translations were found.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from endeavour.data.batching import length_batches, pad
from endeavour.special import BOS, EOS, PAD

# Source ids (batch, source) and target ids (batch, target), padded, to logits (batch, target, vocabulary).
Logits = Callable[[Tensor, Tensor], Tensor]
Ids = Sequence[Sequence[int]]

TOKENS_PER_BATCH = 1024  # of the longer side, with padding


class PieceScore(NamedTuple):
    """What a model thinks of one token of a translation, given the source and the tokens before it.

    Attributes:
        token: its id.
        log_probability: natural logarithm.
        rank: how many tokens are more probable.
        entropy: of the whole distribution, in nats; 0 where the model is certain.
        alternatives: the most probable tokens and their log-probabilities, best first.
    """

    token: int
    log_probability: float
    rank: int
    entropy: float
    alternatives: list[tuple[int, float]]


def log_probabilities(
    logits: Logits,
    sources: Ids,
    targets: Ids,
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
    each = token_log_probabilities(logits, sources, targets, excluded=excluded, device=device)
    return [sum(tokens) for tokens in each]


@torch.inference_mode()
def token_log_probabilities(
    logits: Logits,
    sources: Ids,
    targets: Ids,
    *,
    excluded: Sequence[int] = (),
    device: torch.device | None,
) -> list[list[float]]:
    """The same of each token, EOS included, given those before it; see `log_probabilities` for the arguments."""
    results: list[list[float]] = [[] for _ in sources]
    for rows, scores, target_out in _scored(logits, sources, targets, excluded, device):
        tokens = scores.gather(2, target_out[..., None]).squeeze(2).tolist()
        for row, values in zip(rows, tokens, strict=True):
            results[row] = values[: len(targets[row]) + 1]
    return results


@torch.inference_mode()
def score_pieces(
    logits: Logits,
    sources: Ids,
    targets: Ids,
    *,
    alternatives: int = 0,
    device: torch.device | None = None,
) -> list[list[PieceScore]]:
    """What the model thinks of each token of each target, and of EOS after it.

    The log-probabilities are those that `beam_search` adds up; see `log_probabilities` for the arguments. Among the
    `alternatives` are neither PAD nor BOS, which a search never writes.
    """
    results: list[list[PieceScore]] = [[] for _ in sources]
    for rows, scores, target_out in _scored(logits, sources, targets, (), device):
        tokens = scores.gather(2, target_out[..., None])
        ranks = (scores > tokens).sum(dim=2)
        entropies = torch.special.entr(scores.exp()).sum(dim=2)
        scores[..., [PAD, BOS]] = -torch.inf
        best = scores.topk(min(alternatives, scores.shape[-1] - 2), dim=-1)
        for place, row in enumerate(rows):
            count = len(targets[row]) + 1
            columns = (target_out, tokens.squeeze(2), ranks, entropies, best.indices, best.values)
            results[row] = [
                PieceScore(token, value, rank, entropy, list(zip(ids, values, strict=True)))
                for token, value, rank, entropy, ids, values in zip(
                    *(column[place, :count].tolist() for column in columns), strict=True
                )
            ]
    return results


def _scored(
    logits: Logits, sources: Ids, targets: Ids, excluded: Sequence[int], device: torch.device | None
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Batches of like lengths: rows, log-probabilities (batch, target, vocabulary), and the ids (batch, target)."""
    longer = [max(len(source), len(target) + 1) for source, target in zip(sources, targets, strict=True)]
    for batch in length_batches(np.array(longer, np.int32), TOKENS_PER_BATCH):
        rows: list[int] = batch.tolist()
        source = pad([sources[row] for row in rows]).to(device)
        target_in = pad([[BOS, *targets[row]] for row in rows]).to(device)
        target_out = pad([[*targets[row], EOS] for row in rows]).to(device)
        scores = logits(source, target_in).float()
        scores[..., list(excluded)] = -torch.inf
        yield rows, scores.log_softmax(dim=-1), target_out
