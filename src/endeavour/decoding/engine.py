"""The interface that our own search and the engines of exported models share.

Knows ids and hypotheses; not models, text or files.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.length_penalty import length_penalty


class Hypothesis(NamedTuple):
    """One finished translation: ids without BOS and EOS; score = log_probability / length penalty, unless reranked.

    `log_probability` is the natural logarithm of the model's probability of the ids and EOS.
    """

    ids: list[int]
    score: float
    log_probability: float


class Engine(Protocol):
    """Ids in, ids out. The engine decides how sentences are batched, and on how many threads."""

    @property
    def longest(self) -> int | None:
        """The most tokens, EOS included, that a source may have; None for no limit."""
        ...

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """The n best translations of each source, best first, or samples as drawn, in the order of the sources.

        Args:
            sources: ids of each sentence, ending in EOS.
        """
        ...


def limit_of(decoding: DecodingConfig, source_tokens: int, *, positions: int | None) -> int:
    """Most tokens of a translation, neither side counting EOS; `positions` count BOS, None is no limit."""
    limit = int(decoding.max_length_ratio * source_tokens + decoding.max_length_offset)
    return limit if positions is None else min(limit, positions - 1)


def batches_of_one_length(sources: Sequence[Sequence[int]], tokens_per_batch: int) -> list[list[int]]:
    """Row numbers, the longest sources first: batches without padding, which share one length limit."""
    by_length: dict[int, list[int]] = {}
    for row, source in enumerate(sources):
        by_length.setdefault(len(source), []).append(row)
    batches: list[list[int]] = []
    for length, rows in sorted(by_length.items(), reverse=True):
        size = max(1, tokens_per_batch // length)
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return batches


def rank(found: Iterable[tuple[list[int], float, bool]], *, alpha: float, best: int) -> list[Hypothesis]:
    """The best hypotheses of one sentence that another engine found, ranked as `beam_search` ranks them.

    Args:
        found: ids without EOS, log-probability, and whether the hypothesis ended in EOS by itself. For those cut at
            the length limit the probability of EOS is not known: they are ignored if any other hypothesis ended.
        alpha: α of the length penalty.
        best: how many to return, at most.
    """
    found = list(found)
    whole = [row for row in found if row[2]]
    ranked: dict[tuple[int, ...], Hypothesis] = {}
    for ids, log_probability, _ in whole or found:
        score = log_probability / length_penalty(len(ids) + 1, alpha)
        ranked.setdefault(tuple(ids), Hypothesis(ids, score, log_probability))
    return sorted(ranked.values(), key=lambda hypothesis: hypothesis.score, reverse=True)[:best]
