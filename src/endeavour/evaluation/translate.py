"""Sentences in, sentences out, through a tokenizer, a model and beam search.

Knows text and ids; not files, references or scores. Lines are read, translated and given back a window at a
time, so memory does not grow with their number.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from endeavour.data.batching import length_batches, pad
from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizer
from endeavour.decoding.beam_search import DecodingConfig, beam_search
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS

# Lines that are sorted by length together. More means less padding; fewer means an earlier first answer.
WINDOW = 2048


class Translation(NamedTuple):
    """One hypothesis as text, with its length-normalised score."""

    text: str
    score: float


class Translator:
    """A model with its tokenizers and the settings of the search.

    Args:
        model: in evaluation mode or not; it is switched during a call and back after it.
        tokenizers: of source and target.
        decoding: see conf/decoding/*.yaml.
        window: lines that are read, and sorted by length, before any is given back.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizers: tuple[Tokenizer, Tokenizer],
        decoding: DecodingConfig,
        window: int = WINDOW,
    ) -> None:
        self.model = model
        self.decoding = decoding
        self._window_lines = window
        self._source, self._target = tokenizers

    def translate(self, lines: Iterable[str]) -> Iterator[str]:
        """The best translation of each line, in order, one line for each line; empty lines stay empty."""
        for hypotheses in self.translate_n_best(lines):
            yield hypotheses[0].text

    def translate_n_best(self, lines: Iterable[str]) -> Iterator[list[Translation]]:
        """The `num_hypotheses` best translations of each line, best first."""
        remaining = iter(lines)
        while window := list(islice(remaining, self._window_lines)):
            yield from self._window(window)

    def _window(self, lines: Sequence[str]) -> list[list[Translation]]:
        texts = [normalize(line) for line in lines]
        ids = [[*row, EOS] for row in self._source.encode(texts)]
        results: list[list[Translation]] = [[Translation("", 0.0)] for _ in lines]
        rows = [number for number, text in enumerate(texts) if text]
        lengths = np.array([len(ids[row]) for row in rows], np.int32)
        budget = max(1, self.decoding.tokens_per_batch // self.decoding.beam_size)
        for batch in length_batches(lengths, budget):
            chosen = [rows[number] for number in batch]
            for row, translations in zip(chosen, self._batch([ids[row] for row in chosen]), strict=True):
                results[row] = translations
        return results

    def _batch(self, ids: list[list[int]]) -> list[list[Translation]]:
        was_training = self.model.training
        self.model.eval()
        device = self.model.output_weight.device
        found = beam_search(
            self.model,
            pad(ids).to(device),
            beam_size=self.decoding.beam_size,
            length_penalty=self.decoding.length_penalty,
            max_length_ratio=self.decoding.max_length_ratio,
            max_length_offset=self.decoding.max_length_offset,
            num_hypotheses=self.decoding.num_hypotheses,
        )
        self.model.train(was_training)
        return [self._texts([(hypothesis.ids, hypothesis.score) for hypothesis in row]) for row in found]

    def _texts(self, hypotheses: list[tuple[list[int], float]]) -> list[Translation]:
        texts = self._target.decode([ids for ids, _ in hypotheses])
        scores = (score for _, score in hypotheses)
        return [Translation(text, score) for text, score in zip(texts, scores, strict=True)]


def attention_picture(
    model: Transformer, tokenizers: tuple[Tokenizer, Tokenizer], source: str, hypothesis: str
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
