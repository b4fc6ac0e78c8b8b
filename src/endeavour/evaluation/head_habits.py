"""What single attention heads look at, measured over sentence pairs: neighbours, the end, the word they translate …

Knows a model and ids; not how the shares are shown. Heads that do the same in every sentence were described by Voita et
al. 2019, "Analyzing Multi-Head Self-Attention", and Clark et al. 2019, "What Does BERT Look At?".
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from endeavour.decoding.alignment import attention
from endeavour.evaluation.lexical_alignment import Pair, learn_lexicon, partners
from endeavour.model.transformer import AttentionKind, Transformer
from endeavour.special import BOS

KINDS = get_args(AttentionKind)


@dataclass(frozen=True)
class Habits:
    """Mean weights on the keys that a habit names, from 0 to 1, over the queries that have such keys.

    Attributes:
        shares: by kind of attention and by habit, of all heads: (layers, heads).
        even: the same of a head that looks everywhere alike.
    """

    shares: Mapping[str, Mapping[str, Tensor]]
    even: Mapping[str, Mapping[str, float]]


def head_habits(model: Transformer, pairs: Sequence[Pair], punctuation: Collection[int]) -> Habits:
    """The habits of all heads.

    Args:
        model: in evaluation mode.
        pairs: source ids ending in EOS, and target ids without BOS and EOS. The more there are, the better it is known
            which tokens translate each other.
        punctuation: ids of tokens that are punctuation, on either side.
    """
    table = learn_lexicon([(source[:-1], target) for source, target in pairs])
    sums: dict[tuple[str, str], Tensor] = {}
    even: dict[tuple[str, str], float] = {}
    counts: dict[tuple[str, str], int] = {}
    for source, target in pairs:
        weights = attention(model, source, target)
        named = _places(source, target, partners(table, source[:-1], target), punctuation)
        for kind in KINDS:
            given: Tensor = getattr(weights, kind)
            alike = _even(*given.shape[-2:], causal=kind == "decoder")
            for habit, keys in named[kind].items():
                chosen = _mask(keys, given.shape[-1])
                place = kind, habit
                sums[place] = sums.get(place, torch.zeros(given.shape[:2])) + (given * chosen).sum(
                    dim=(-2, -1)
                )
                even[place] = even.get(place, 0.0) + float((alike * chosen).sum())
                counts[place] = counts.get(place, 0) + sum(bool(places) for places in keys)
    habits = {kind: [habit for one, habit in sums if one == kind] for kind in KINDS}
    count = {place: max(1, number) for place, number in counts.items()}
    return Habits(
        {kind: {habit: sums[kind, habit] / count[kind, habit] for habit in habits[kind]} for kind in KINDS},
        {kind: {habit: even[kind, habit] / count[kind, habit] for habit in habits[kind]} for kind in KINDS},
    )


def _places(
    source: Sequence[int], target: Sequence[int], made: Sequence[int | None], punctuation: Collection[int]
) -> dict[str, dict[str, list[list[int]]]]:
    """By kind and habit, for each query the keys that count; none where a sentence has no such key."""
    own, theirs = len(source), len(target) + 1
    # Row i of the cross-attention is where target token i is predicted, or EOS, which translates EOS.
    now: list[int | None] = [*made, own - 1]
    last: list[int | None] = [None, *made]

    def marks(tokens: Sequence[int]) -> list[int]:
        return [place for place, token in enumerate(tokens) if token in punctuation]

    def each(count: int, key: Callable[[int], int | None], limit: int) -> list[list[int]]:
        keys = [key(query) for query in range(count)]
        return [[] if one is None or not 0 <= one < limit else [one] for one in keys]

    return {
        "encoder": {
            "itself": each(own, lambda query: query, own),
            "one back": each(own, lambda query: query - 1, own),
            "one ahead": each(own, lambda query: query + 1, own),
            "the end": each(own, lambda _: own - 1, own),
            "punctuation": [marks(source)] * own,
        },
        "decoder": {
            "itself": each(theirs, lambda query: query, theirs),
            "one back": each(theirs, lambda query: query - 1, theirs),
            "two back": each(theirs, lambda query: query - 2, theirs),
            "the beginning": each(theirs, lambda _: 0, theirs),
            "punctuation": [
                [key for key in marks([BOS, *target]) if key <= query] for query in range(theirs)
            ],
        },
        "cross": {
            "what is translated now": each(theirs, lambda query: now[query], own),
            "what was translated last": each(theirs, lambda query: last[query], own),
            "the end": each(theirs, lambda _: own - 1, own),
            "punctuation": [marks(source)] * theirs,
        },
    }


def _mask(keys: Sequence[Sequence[int]], count: int) -> Tensor:
    """1 at the keys of each query: (queries, count)."""
    mask = torch.zeros(len(keys), count)
    for query, places in enumerate(keys):
        mask[query, list(places)] = 1.0
    return mask


def _even(queries: int, keys: int, *, causal: bool) -> Tensor:
    """Weights of a head that looks everywhere alike: (queries, keys)."""
    weights = torch.ones(queries, keys)
    if causal:
        weights = weights.tril()
    return weights / weights.sum(dim=1, keepdim=True)
