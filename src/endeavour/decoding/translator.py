"""Lines of text in, translations out, through tokenizers and an engine: our own search, or another program.

Knows text and ids; not files, references or scores. Lines are read, translated and returned a window at a time, and
a very long line in parts, so memory grows neither with the number of lines nor with their length.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain
from typing import NamedTuple

from endeavour.data.normalization import SPACE_MARK, normalize
from endeavour.data.protection import protect, restore
from endeavour.data.tokenizer import Tokenizers, encode_pairs, placeholders_of
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.engine import Engine, Hypothesis
from endeavour.decoding.minimum_bayes_risk import most_useful
from endeavour.decoding.sentences import split_sentences
from endeavour.special import EOS

# Lines that are sorted by length together. More means less padding; fewer means an earlier first answer.
WINDOW = 2048
# The same with many candidates per line, so that the first answer does not take minutes.
CANDIDATES_WINDOW = 128
# As a reference, a candidate has the weight exp(SHARPNESS × its length-normalised score); of 0, 1, 2 and 4 this was
# best. Plain probabilities favour short candidates: on Multi30k they lost 0.3 validation BLEU against beam search,
# where this gained 0.3.
SHARPNESS = 2.0
# A window of long lines ends early, after this many characters.
WINDOW_CHARACTERS = 2**20
# The most tokens, EOS included, that are translated as one source.
LONGEST_SOURCE = 512
SENTENCE_ENDS = (".", "!", "?")


class Part(NamedTuple):
    """A line, or what was translated separately of a long one: ids, with EOS, and those of its translation, without.

    Attributes:
        spans: what their symbols stand for, see `data.protection`.
    """

    source: Sequence[int]
    target: Sequence[int]
    spans: Sequence[str] = ()


def part_of_pair(tokenizers: Tokenizers, source: str, translation: str) -> Part:
    """A sentence and a given translation of it, as the model reads and writes them."""
    (source_ids,), (target_ids,) = encode_pairs(tokenizers, [(source, translation)])
    return Part([*source_ids, EOS], target_ids, protect(normalize(source), placeholders_of(tokenizers)).spans)


class Translation(NamedTuple):
    """One hypothesis as text.

    Attributes:
        score: length-normalised, reranked, or the expected utility; of a line in parts their mean.
        log_probability: natural logarithm; of a line in parts their sum.
        parts: the ids; none of an empty line.
    """

    text: str
    score: float
    log_probability: float
    parts: tuple[Part, ...]


class _Source(NamedTuple):
    """What the engine translates at once: ids, with EOS, what their symbols stand for, and the space after its text."""

    ids: list[int]
    spans: Sequence[str]
    space: str


class Translator:
    """An engine between two tokenizers.

    Args:
        engine: what decodes.
        tokenizers: of source and target.
        window: number of lines that are read and given to the engine together.
        longest: tokens, EOS included, above which a line is cut after a sentence or between words. Its parts are
            translated separately, and their translations joined by spaces. The engine's limit applies if it is lower.
        language: of the source, "en" or "de". With `decoding.split_sentences` each line is split into sentences, which
            are translated one by one, and their translations are joined by the whitespace between them.
        decoding: how the engine decodes. With a `utility` its hypotheses are candidates, ranked by their
            expected utility (`minimum_bayes_risk`); without it the engine's ranking stays, which `reranking` may have
            changed.

    Attributes:
        longest: as above, with the engine's limit taken into account.
        in_parts: number of lines so far of which a sentence was translated in parts.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizers: Tokenizers,
        window: int = WINDOW,
        longest: int = LONGEST_SOURCE,
        *,
        decoding: DecodingConfig,
        language: str | None = None,
    ) -> None:
        self.in_parts = 0
        self._engine = engine
        self._utility = decoding.utility
        # Samples are weighted by how often they were drawn, beam hypotheses by their scores.
        self._sharpness = 0.0 if decoding.sampling else SHARPNESS
        self._drawn = decoding.drawn
        self._window_lines = min(window, CANDIDATES_WINDOW) if decoding.chooses else window
        self.longest = min(longest, engine.longest or longest)
        self._source, self._target = tokenizers
        self._placeholders = placeholders_of(tokenizers)
        self._language = language if decoding.split_sentences else None

    def translate(self, lines: Iterable[str]) -> Iterator[str]:
        """The best translation of each line, in order; empty lines stay empty."""
        for hypotheses in self.translate_n_best(lines):
            yield hypotheses[0].text

    def translate_n_best(self, lines: Iterable[str]) -> Iterator[list[Translation]]:
        """The `num_hypotheses` best translations of each line, best first; with a utility without duplicates."""
        return map(best_first, self.hypotheses(lines))

    def hypotheses(self, lines: Iterable[str]) -> Iterator[list[Translation]]:
        """The same, except that samples are in the order drawn, as `join_parts` needs them."""
        window: list[str] = []
        characters = 0
        for line in lines:
            window.append(line)
            characters += len(line)
            if len(window) >= self._window_lines or characters >= WINDOW_CHARACTERS:
                yield from self._translate_window(window)
                window, characters = [], 0
        yield from self._translate_window(window)

    def whole(self, source: str, hypothesis: str) -> bool:
        """Whether both sides fit the model without being cut into parts."""
        sides = encode_pairs((self._source, self._target), [(source, hypothesis)])
        return all(len(ids) < self.longest for (ids,) in sides)

    def _translate_window(self, lines: Sequence[str]) -> Iterator[list[Translation]]:
        sources = self._sources(lines)
        found = iter(self._engine.search([one.ids for row in sources for one in row]))
        for row in sources:
            parts = [self._texts(one, next(found)) for one in row]
            yield join_parts(parts, [one.space for one in row], drawn=self._drawn)

    def _sources(self, lines: Sequence[str]) -> list[list[_Source]]:
        """What is translated of each line: its sentences, or where they are too long their parts."""
        sentences = [self._sentences(line) for line in lines]
        texts = [protect(normalize(text), self._placeholders) for row in sentences for text, _ in row]
        encoded = zip(self._source.encode([text for text, _ in texts]), texts, strict=True)
        sources: list[list[_Source]] = []
        for row in sentences:
            cut: list[list[_Source]] = []
            for _, space in row:
                ids, (_, spans) = next(encoded)
                cut.append(self._cut(ids, spans, space))
            self.in_parts += any(len(parts) > 1 for parts in cut)
            sources.append(list(chain.from_iterable(cut)))
        return sources

    def _cut(self, ids: list[int], spans: Sequence[str], space: str) -> list[_Source]:
        """The sources of a sentence with `space` after it, each with the vocabulary's tag; see `_parts`."""
        tag = self._source.tag
        parts = self._parts(ids[len(tag) :])
        spaces = [space if number == len(parts) else " " for number in range(1, len(parts) + 1)]
        return [_Source([*tag, *part, EOS], spans, after) for part, after in zip(parts, spaces, strict=True)]

    def _sentences(self, line: str) -> list[tuple[str, str]]:
        """Each sentence and the whitespace after it."""
        return [(line, "")] if self._language is None else split_sentences(line, self._language)

    def _parts(self, ids: list[int]) -> list[list[int]]:
        """`ids` in parts, cut after a sentence, or else between words, where possible.

        With a tag they have at most `longest` - 1. No ids are no part.
        """
        limit = self.longest - 1 - len(self._source.tag)
        parts: list[list[int]] = []
        start = 0
        while len(ids) - start > limit:
            pieces = self._source.pieces(ids[start : start + limit + 1])
            words = [place for place in range(1, limit + 1) if pieces[place].startswith(SPACE_MARK)]
            ends = [place for place in words if pieces[place - 1].endswith(SENTENCE_ENDS)]
            cut = (ends or words or [limit])[-1]
            parts.append(ids[start : start + cut])
            start += cut
        return [*parts, ids[start:]] if ids else []

    def _texts(self, source: _Source, hypotheses: list[Hypothesis]) -> list[Translation]:
        decoded = self._target.decode([hypothesis.ids for hypothesis in hypotheses])
        texts = [restore(text, source.spans, self._placeholders) for text in decoded]
        found = [
            Translation(text, one.score, one.log_probability, (Part(source.ids, one.ids, source.spans),))
            for text, one in zip(texts, hypotheses, strict=True)
        ]
        if self._utility is None:
            return found
        best = max(hypothesis.score for hypothesis in hypotheses)
        weights = [math.exp(self._sharpness * (hypothesis.score - best)) for hypothesis in hypotheses]
        by_text = {one.text: one for one in reversed(best_first(found))}  # of equal texts the most probable

        ranked = most_useful(texts, weights, self._utility)
        return [by_text[text]._replace(score=utility) for text, utility in ranked]


def join_parts(
    parts: Sequence[list[Translation]], spaces: Sequence[str], *, drawn: bool
) -> list[Translation]:
    """The translations of a line, from those of its parts and the spaces after them, best first.

    Args:
        drawn: whether they are samples, in the order drawn, and the result with them. Neither the best of all
            combinations nor the best of each part together would be samples: each is used once, as it was drawn.
    """
    if not parts:
        return [Translation("", 0.0, 0.0, ())]
    if len(parts) == 1:
        return parts[0]
    return [
        Translation(
            text=_join_texts([one.text for one in row], spaces),
            score=sum(one.score for one in row) / len(row),
            log_probability=sum(one.log_probability for one in row),
            parts=tuple(part for one in row for part in one.parts),
        )
        for row in (zip(*parts, strict=True) if drawn else _best_rows(parts))
    ]


def best_first(found: list[Translation]) -> list[Translation]:
    return sorted(found, key=lambda one: one.score, reverse=True)


class _Row(NamedTuple):
    """A translation of each part up to one, as a chain: copies would be quadratic in the number of parts."""

    score: float  # the sum
    before: "_Row | None"
    last: Translation


def _best_rows(parts: Sequence[list[Translation]]) -> list[list[Translation]]:
    """A translation of each part, in the ways whose scores add up to most: as many as the part that has most has."""
    most = max(len(part) for part in parts)
    first, *others = parts
    rows = [_Row(one.score, None, one) for one in first]
    for part in others:
        longer = [_Row(row.score + one.score, row, one) for row in rows for one in part]
        rows = nlargest(most, longer, key=lambda row: row.score)  # of equal ones the first
    return [_unchained(row) for row in rows]


def _unchained(row: _Row | None) -> list[Translation]:
    chosen: list[Translation] = []
    while row is not None:
        chosen.append(row.last)
        row = row.before
    return chosen[::-1]


def _join_texts(texts: Sequence[str], spaces: Sequence[str]) -> str:
    """Those that are not empty, with one space between any two."""
    joined = space = ""
    for text, after in zip(texts, spaces, strict=True):
        if text:
            joined += (space if joined else "") + text
            space = after
    return joined
