"""Our own search as an engine: batches of similar length, decoded by beam search or by sampling.

Knows ids, models and settings; not text or files.
"""

import copy
import hashlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from endeavour.data.batching import length_batches, pad
from endeavour.decoding.beam_search import NoProbabilities, beam_search
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.engine import Hypothesis, limit_of
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.graphed import search_model
from endeavour.decoding.sampling import sample
from endeavour.errors import UserError, named_memory_error
from endeavour.model.transformer import Transformer

# A GPU decodes so many times the tokens of `tokens_per_batch` at a time: an H100 took hardly longer for 512 sentences
# than for 64.
GPU_FACTOR = 8
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
SMALLER_BATCHES = "lower decoding.tokens_per_batch (validation_decoding.tokens_per_batch while training)"


class PyTorchEngine:
    """A `decoding.engine.Engine` over one of our models or an ensemble, by beam search or by sampling.

    Args:
        model: each call switches it to evaluation mode and back afterwards. Except with precision fp32 a copy is used.
        decoding: see conf/decoding/*.yaml; its precision must not be "auto" any more.
    """

    def __init__(self, model: Transformer | Ensemble, decoding: DecodingConfig) -> None:
        assert decoding.precision != "auto", "resolve decoding.precision=auto first"
        half = HALVES.get(decoding.precision)
        self.model = model if half is None else copy.deepcopy(model).to(half)
        self.decoding = decoding
        self.longest: int | None = self.model.max_target_length
        self._searched = search_model(self.model, decoding, lambda length: self._limit(length) + 1)

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """See `decoding.engine.Engine`; sentences of similar length share a batch.

        Raises:
            UserError: a batch does not fit into memory, or the model gives no probabilities.
        """
        results: list[list[Hypothesis]] = [[] for _ in sources]
        lengths = np.array([len(source) for source in sources], np.int32)
        each = self.decoding.num_hypotheses if self.decoding.sampling else self.decoding.beam_size
        device = self.model.device
        budget = max(1, self.decoding.tokens_per_batch // each) * (GPU_FACTOR if device.type == "cuda" else 1)
        generator = torch.Generator(device)
        if self.decoding.sampling:
            generator.manual_seed(self._seed(sources))
        was_training = self.model.training
        self.model.eval()
        for rows in length_batches(lengths, budget):
            shape = f"decoding {len(rows)} sentences of {lengths[rows[0]]} tokens"
            with named_memory_error(shape, SMALLER_BATCHES), self._named_precision():
                found = self._search_batch([sources[row] for row in rows], generator)
            for row, hypotheses in zip(rows, found, strict=True):
                results[row] = hypotheses
        self.model.train(was_training)
        return results

    @contextmanager
    def _named_precision(self) -> Generator[None]:
        """Names the precision where it may be why there are no probabilities: in fp32 the weights are numbers."""
        try:
            yield
        except NoProbabilities as error:
            precision = self.decoding.precision
            if precision not in HALVES or any(one.isnan().any() for one in self.model.parameters()):
                raise
            raise UserError(
                f"the model gives no probabilities (NaN) in {precision}: set decoding.precision=fp32 "
                "(validation_decoding.precision while training)"
            ) from error

    def _limit(self, length: int) -> int:
        """Of a translation, without EOS, of a source of this length, with it."""
        return limit_of(self.decoding, length - 1, positions=self.longest)

    def _seed(self, sources: Sequence[Sequence[int]]) -> int:
        """By the sources, so that earlier calls do not matter."""
        content = hashlib.sha256(repr((self.decoding.seed, [list(source) for source in sources])).encode())
        return int.from_bytes(content.digest()[:8], "little") >> 1

    def _search_batch(
        self, sources: Sequence[Sequence[int]], generator: torch.Generator
    ) -> list[list[Hypothesis]]:
        """The hypotheses of one batch; samples are drawn with `generator`."""
        settings = self.decoding
        source, limits = pad(sources).to(self.model.device), [self._limit(len(one)) for one in sources]
        if settings.sampling:
            return sample(
                self.model,
                source,
                limits,
                num_hypotheses=settings.num_hypotheses,
                temperature=settings.temperature,
                top_k=settings.top_k,
                epsilon=settings.epsilon,
                generator=generator,
                alpha=settings.length_penalty,
            )
        return beam_search(
            self._searched,
            source,
            limits,
            beam_size=settings.beam_size,
            alpha=settings.length_penalty,
            num_hypotheses=settings.num_hypotheses,
        )
