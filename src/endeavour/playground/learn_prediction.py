"""From the decoder's states to the probabilities of the next piece, in JSON. Knows logits and ids; no search."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from endeavour.model.transformer import Transformer

Numbers = dict[str, Any]  # in JSON's types

TOP = 10
TOP_BY_LAYER = 3
BINS = 24  # of the histogram of all logits


def predictions(
    logits: Tensor, expected: Sequence[int], pieces: Callable[[Sequence[int]], list[str]]
) -> list[Numbers]:
    """For each position the most probable next pieces, and the one that the translation has there.

    Args:
        logits: (target, vocabulary).
        expected: the ids of the translation, EOS last.
        pieces: ids to their written forms.
    """
    logits = logits.float()
    logs = logits.log_softmax(dim=-1)
    results: list[Numbers] = []
    for row, log_row, token in zip(logits, logs, expected, strict=True):
        best = row.topk(min(TOP, len(row))).indices.tolist()
        named = zip([*best, token], pieces([*best, token]), strict=True)
        entries = [
            {
                "id": number,
                "piece": piece,
                "logit": _significant(row[number]),
                "probability": _significant(log_row[number].exp()),
            }
            for number, piece in named
        ]
        low, high = row.min(), row.max()
        results.append(
            {
                "top": entries[:-1],
                "expected": {**entries[-1], "rank": int((row > row[token]).sum()) + 1},
                "log_sum": _significant(row.logsumexp(dim=-1)),
                "lowest": _significant(low),
                "highest": _significant(high),
                "histogram": torch.histc(row, BINS, low.item(), high.item()).int().tolist(),
            }
        )
    return results


def top_by_layer(
    model: Transformer, stream: Sequence[Tensor], pieces: Callable[[Sequence[int]], list[str]]
) -> list[list[list[Numbers]]]:
    """What would be predicted if the decoder ended after 0, 1, … layers: by layer, by position, the best pieces.

    The "logit lens" (nostalgebraist 2020): the final norm and projection are applied to states that they were not
    trained on, so that early layers give an impression rather than a prediction.
    """
    results: list[list[list[Numbers]]] = []
    for states in stream:
        probabilities = model.project(model.decoder_norm(states))[0].float().softmax(dim=-1)
        best, ids = probabilities.topk(min(TOP_BY_LAYER, probabilities.shape[-1]), dim=-1)
        results.append(
            [
                [
                    {"piece": piece, "probability": _significant(probability)}
                    for piece, probability in zip(pieces(cast(list[int], row.tolist())), values, strict=True)
                ]
                for row, values in zip(ids, best, strict=True)
            ]
        )
    return results


def _significant(number: Tensor) -> float:
    """Five significant decimals, also of small probabilities."""
    return float(f"{number.item():.5g}")
