"""Reranking by a model of the other direction: choose the candidate from which the source can be told, too.

A translation that leaves something out may be probable, but its source is not probable given it. Yee et al. 2019,
"Simple and Effective Noisy Channel Modeling for Neural Machine Translation", add the log-probability of the source per
token to the score of the search, here without their language model. Knows hypotheses and text; not models or files.
"""

from collections.abc import Callable, Sequence

from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.engine import Engine, Hypothesis

# (translation, source) pairs to the log-probability of each token of each source; None for one that is too long.
ScoreSources = Callable[[Sequence[tuple[str, str]]], list[list[float] | None]]


class Reranker:
    """An `Engine` whose hypotheses are those of another, ranked anew.

    A score becomes `score + weight × log P(source | translation) / tokens of the source`.

    Args:
        engine: finds the candidates.
        tokenizers: of its sources and targets.
        score_sources: by the model of the other direction.
        weight: of what it says.
    """

    def __init__(
        self, engine: Engine, tokenizers: Tokenizers, score_sources: ScoreSources, weight: float
    ) -> None:
        self.longest = engine.longest
        self._engine = engine
        self._source, self._target = tokenizers
        self._score_sources = score_sources
        self._weight = weight

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """See `Engine`. Where a side is too long for the other model, a sentence's candidates stay as they are."""
        found = self._engine.search(sources)
        tag = len(self._source.tag)
        texts = self._source.decode([source[tag:-1] for source in sources])
        candidates = self._target.decode([one.ids for row in found for one in row])
        origins = [text for text, row in zip(texts, found, strict=True) for _ in row]
        values = iter(self._score_sources(list(zip(candidates, origins, strict=True))))
        return [
            self._ranked(row, [next(values) for _ in row], len(source))
            for row, source in zip(found, sources, strict=True)
        ]

    def _ranked(
        self, row: list[Hypothesis], values: list[list[float] | None], tokens: int
    ) -> list[Hypothesis]:
        known = [value for value in values if value is not None]
        if len(known) < len(row):
            return row
        scored = [
            one._replace(score=one.score + self._weight * sum(value) / tokens)
            for one, value in zip(row, known, strict=True)
        ]
        return sorted(scored, key=lambda one: one.score, reverse=True)
