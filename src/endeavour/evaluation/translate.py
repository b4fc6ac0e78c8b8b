"""Sentences in, sentences out, through a tokenizer and an engine: our models with a search, or another program.

Knows text and ids; not files, references or scores. Lines are read, translated and given back a window at a
time, and a line longer than any sentence in parts, so memory grows neither with their number nor their length.
"""

import copy
import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from endeavour.data.batching import length_batches, pad
from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.beam_search import Hypothesis, beam_search
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.engine import Engine
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.sampling import sample
from endeavour.errors import named_memory_error
from endeavour.evaluation.minimum_bayes_risk import most_useful
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS

# Lines that are sorted by length together. More means less padding; fewer means an earlier first answer.
WINDOW = 2048
# The same where each line has many candidates, so that the first answer does not take minutes.
CANDIDATES_WINDOW = 128
# A candidate counts as a reference by exp(this × its length-normalised score). Plain probabilities favour short ones:
# on Multi30k they lost 0.3 BLEU of validation against beam search, where this gained 0.3 (0, 1, 2 and 4 were tried).
SHARPNESS = 2.0
# Characters after which a window of long lines ends earlier.
WINDOW_CHARACTERS = 2**20
# Tokens, EOS included, of a source that is translated as one.
LONGEST = 512
SENTENCE_ENDS = (".", "!", "?")
WORD_START = "\u2581"  # as SentencePiece writes it
SMALLER_BATCHES = "lower decoding.tokens_per_batch (validation_decoding.tokens_per_batch while training)"


class Translation(NamedTuple):
    """One hypothesis as text, with its length-normalised score or its expected utility."""

    text: str
    score: float


class PyTorchEngine:
    """A `decoding.engine.Engine` over our own model, or several of them, by beam search or by sampling.

    Args:
        model: in evaluation mode or not; it is switched during a call and back after it. A precision of bf16 takes
            a copy of it.
        decoding: see conf/decoding/*.yaml.
    """

    def __init__(self, model: Transformer | Ensemble, decoding: DecodingConfig) -> None:
        self.model = model if decoding.precision == "fp32" else copy.deepcopy(model).bfloat16()
        self.decoding = decoding
        self._generator = torch.Generator(next(model.parameters()).device)

    @property
    def longest(self) -> int | None:
        """See `decoding.engine.Engine`."""
        return self.model.max_target_length

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """See `decoding.engine.Engine`; sentences of similar length share a batch.

        Raises:
            UserError: a batch does not fit into memory.
        """
        results: list[list[Hypothesis]] = [[] for _ in sources]
        lengths = np.array([len(source) for source in sources], np.int32)
        each = self.decoding.num_hypotheses if self.decoding.sampling else self.decoding.beam_size
        budget = max(1, self.decoding.tokens_per_batch // each)
        if self.decoding.sampling:  # so that it does not matter what was translated before
            content = hashlib.sha256(
                repr((self.decoding.seed, [list(source) for source in sources])).encode()
            )
            self._generator.manual_seed(int.from_bytes(content.digest()[:8], "little") >> 1)
        device = next(self.model.parameters()).device
        was_training = self.model.training
        self.model.eval()
        for rows in length_batches(lengths, budget):
            shape = f"decoding {len(rows)} sentences of {lengths[rows[0]]} tokens"
            with named_memory_error(shape, SMALLER_BATCHES):
                found = self._found(pad([sources[row] for row in rows]).to(device))
            for row, hypotheses in zip(rows, found, strict=True):
                results[row] = hypotheses
        self.model.train(was_training)
        return results

    def _found(self, source: Tensor) -> list[list[Hypothesis]]:
        """Of one batch, ids (batch, source)."""
        settings = self.decoding
        if settings.sampling:
            return sample(
                self.model,
                source,
                num_hypotheses=settings.num_hypotheses,
                temperature=settings.temperature,
                top_k=settings.top_k,
                epsilon=settings.epsilon,
                generator=self._generator,
                length_penalty=settings.length_penalty,
                max_length_ratio=settings.max_length_ratio,
                max_length_offset=settings.max_length_offset,
            )
        return beam_search(
            self.model,
            source,
            beam_size=settings.beam_size,
            length_penalty=settings.length_penalty,
            max_length_ratio=settings.max_length_ratio,
            max_length_offset=settings.max_length_offset,
            num_hypotheses=settings.num_hypotheses,
        )


class Translator:
    """An engine with tokenizers on either side of it.

    Args:
        engine: what decodes.
        tokenizers: of source and target.
        window: lines that are read, and handed to the engine together, before any is given back.
        longest: tokens, EOS included, above which a line is cut after a sentence or between words and its parts
            are translated each by itself; their translations are joined by spaces. The engine's limit, if lower.
        decoding: how the engine decodes. With a `utility` its hypotheses are candidates, ranked by their
            expected utility (`minimum_bayes_risk`); without, and by default, they stay as the engine ranked them.

    Attributes:
        longest: as above, the engine's limit considered.
        in_parts: how many lines were so far.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizers: Tokenizers,
        window: int = WINDOW,
        longest: int = LONGEST,
        decoding: DecodingConfig | None = None,
    ) -> None:
        self.in_parts = 0
        self._engine = engine
        self._utility = None if decoding is None else decoding.utility
        # What was drawn by its probability counts once each time; what was searched for counts by its score.
        self._sharpness = SHARPNESS if decoding is None or not decoding.sampling else 0.0
        self._window_lines = min(window, CANDIDATES_WINDOW) if self._utility else window
        self.longest = min(longest, engine.longest or longest)
        self._source, self._target = tokenizers

    def translate(self, lines: Iterable[str]) -> Iterator[str]:
        """The best translation of each line, in order, one line for each line; empty lines stay empty."""
        for hypotheses in self.translate_n_best(lines):
            yield hypotheses[0].text

    def translate_n_best(self, lines: Iterable[str]) -> Iterator[list[Translation]]:
        """The `num_hypotheses` best translations of each line, best first; with a utility none stands twice."""
        window: list[str] = []
        characters = 0
        for line in lines:
            window.append(line)
            characters += len(line)
            if len(window) >= self._window_lines or characters >= WINDOW_CHARACTERS:
                yield from self._window(window)
                window, characters = [], 0
        yield from self._window(window)

    def whole(self, source: str, hypothesis: str) -> bool:
        """Whether both fit the model as they are, and not in parts alone."""
        sides = (self._source, source), (self._target, hypothesis)
        return all(len(tokenizer.encode([normalize(text)])[0]) < self.longest for tokenizer, text in sides)

    def _window(self, lines: Sequence[str]) -> Iterator[list[Translation]]:
        texts = [normalize(line) for line in lines]
        sources: list[list[int]] = []
        parts_of: list[int] = []
        for text, ids in zip(texts, self._source.encode(texts), strict=True):
            parts = self._parts(ids) if text else []
            sources += [[*part, EOS] for part in parts]
            parts_of.append(len(parts))
            self.in_parts += len(parts) > 1
        found = iter(self._engine.search(sources))
        for count in parts_of:
            yield _joined([self._texts(next(found)) for _ in range(count)])

    def _parts(self, ids: list[int]) -> list[list[int]]:
        """`ids` in order, at most `longest` - 1 at a time, cut where it does the least harm."""
        limit = self.longest - 1
        parts: list[list[int]] = []
        start = 0
        while len(ids) - start > limit:
            pieces = self._source.pieces(ids[start : start + limit + 1])
            words = [place for place in range(1, limit + 1) if pieces[place].startswith(WORD_START)]
            ends = [place for place in words if pieces[place - 1].endswith(SENTENCE_ENDS)]
            cut = (ends or words or [limit])[-1]
            parts.append(ids[start : start + cut])
            start += cut
        return [*parts, ids[start:]]

    def _texts(self, hypotheses: list[Hypothesis]) -> list[Translation]:
        texts = self._target.decode([hypothesis.ids for hypothesis in hypotheses])
        if self._utility is not None:
            best = max(hypothesis.score for hypothesis in hypotheses)
            weights = [math.exp(self._sharpness * (hypothesis.score - best)) for hypothesis in hypotheses]
            return [Translation(*row) for row in most_useful(texts, weights, self._utility)]
        return [
            Translation(text, hypothesis.score) for text, hypothesis in zip(texts, hypotheses, strict=True)
        ]


def _joined(parts: list[list[Translation]]) -> list[Translation]:
    """Of a line's parts the best translations in a row, then the second best …; the score is their mean."""
    if not parts:
        return [Translation("", 0.0)]
    if len(parts) == 1:
        return parts[0]
    return [
        Translation(
            " ".join(part.text for part in row if part.text), sum(part.score for part in row) / len(row)
        )
        for row in zip(*parts, strict=False)
    ]


def attention_picture(
    model: Transformer, tokenizers: Tokenizers, source: str, hypothesis: str
) -> tuple[list[str], list[str], list[list[float]]]:
    """Cross-attention of the last layer, averaged over its heads, for a sentence and its translation.

    Returns:
        Source pieces, target pieces, and for each target piece its weights over the source pieces.
    """
    source_ids = [*tokenizers[0].encode([normalize(source)])[0], EOS]
    target_ids = [*tokenizers[1].encode([normalize(hypothesis)])[0], EOS]
    device = model.output_weight.device
    batch = torch.tensor([source_ids], device=device)
    # Position i of the decoder's input is what position i of its output was predicted from.
    target_in = torch.tensor([[BOS, *target_ids[:-1]]], device=device)
    weights = model.attention_maps(batch, target_in).cross[-1].mean(dim=1)[0]
    pieces = tokenizers[0].pieces(source_ids), tokenizers[1].pieces(target_ids)
    return *pieces, weights.tolist()
