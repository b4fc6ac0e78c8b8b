"""What a vector says of all the pieces in a vocabulary, in JSON: whose rows are alike, which piece comes next.

Knows rows, logits and ids; no search.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from endeavour.decoding.beam_search import NoProbabilities
from endeavour.model.transformer import Transformer
from endeavour.playground.learn_layers import Numbers

Pieces = Callable[[Sequence[int]], list[str]]  # ids to their written forms: `Tokenizer.pieces`

TOP = 10
TOP_BY_LAYER = 3
NEIGHBOURS = 5
BINS = 24  # of the histogram of all logits
TEMPERATURES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)


def named_pieces(ids: Sequence[int], pieces: Pieces) -> list[Numbers]:
    """Ids with their written forms."""
    return [{"id": number, "piece": piece} for number, piece in zip(ids, pieces(ids), strict=True)]


def neighbours(weight: Tensor, ids: Sequence[int], pieces: Pieces) -> list[list[Numbers]]:
    """For each id the pieces whose rows of the embedding (vocabulary, width) point most nearly the same way."""
    unit = functional.normalize(weight.float(), dim=-1)
    similarity = unit[list(ids)] @ unit.T
    similarity[range(len(ids)), list(ids)] = -torch.inf
    best, found = similarity.topk(min(NEIGHBOURS, len(weight) - 1), dim=-1)
    return [
        [
            {"piece": piece, "similarity": _significant(value)}
            for piece, value in zip(pieces(cast(list[int], row.tolist())), values, strict=True)
        ]
        for row, values in zip(found, best, strict=True)
    ]


def predictions(logits: Tensor, expected: Sequence[int], pieces: Pieces) -> list[Numbers]:
    """For each position the most probable next pieces, and the one that the translation has there.

    Args:
        logits: (target, vocabulary).
        expected: the ids of the translation, EOS last.
        pieces: ids to their written forms.

    Raises:
        NoProbabilities: a logit is not a number, or infinite.
    """
    logits = logits.float()
    if not logits.isfinite().all():
        raise NoProbabilities
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
                # log Σ exp(logit / temperature): with it a logit alone gives a probability.
                "log_sums": [[one, _significant((row / one).logsumexp(dim=-1))] for one in TEMPERATURES],
                "lowest": _significant(low),
                "highest": _significant(high),
                "histogram": torch.histc(row, BINS, low.item(), high.item()).int().tolist(),
            }
        )
    return results


def top_by_layer(model: Transformer, stream: Sequence[Tensor], pieces: Pieces) -> list[list[list[Numbers]]]:
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
