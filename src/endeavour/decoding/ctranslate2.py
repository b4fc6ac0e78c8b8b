"""Decoding by CTranslate2, from a folder that `export` wrote: on a CPU in int8 up to several times faster than
PyTorch, in float32 only for single sentences.

Knows ids and the folder; not text, nor how the model was converted. CTranslate2's search differs from ours:

- It ranks by log-probability / length^α. Its hypotheses are ranked here again by our penalty (`engine.rank`).
- It takes 2 × beam extensions, refills the beam as hypotheses end, and stops once `PATIENCE` × beam have ended
  (or, for α = 0, once the best has); ours goes on until no live hypothesis could win.
- PAD and BOS are excluded before the softmax, not after it: log-probabilities are slightly higher than ours.
- At its length limit a hypothesis is cut, where ours ends with the probability of EOS.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.engine import Hypothesis, batches_of_one_length, limit_of, rank
from endeavour.errors import UserError
from endeavour.optional import require
from endeavour.special import BOS, EOS, PAD

DESCRIPTION = "export.json"

# CTranslate2's default of 1 is a quarter faster, and misses up to 4% of the translations that our search finds.
PATIENCE = 2


class CTranslate2Engine:
    """An `engine.Engine` over a CTranslate2 model folder.

    Args:
        folder: written by `endeavour export format=ctranslate2`.
        decoding: see conf/decoding/*.yaml; sentences of one length share a batch.
        device: cpu or cuda.
        device_index: which GPU.
        workers: translations at a time, of one thread each (two workers of one thread beat one of two).
        shortest: the fewest tokens of every translation, for measurements.

    Raises:
        UserError: CTranslate2 does not run on this GPU.
    """

    def __init__(
        self,
        folder: Path,
        decoding: DecodingConfig,
        *,
        device: str = "cpu",
        device_index: int = 0,
        workers: int = 1,
        shortest: int = 0,
    ) -> None:
        self.decoding = decoding
        self._shortest = shortest
        self.longest: int = json.loads((folder / DESCRIPTION).read_text("utf-8"))["positions"]
        self._source_pieces = _vocabulary(folder, "source")
        self._target_pieces = _vocabulary(folder, "target")
        self._target_ids = {piece: number for number, piece in enumerate(self._target_pieces)}
        torch = sys.modules.get("torch")
        threads = torch.get_num_threads() if torch else 0
        package = require("ctranslate2")
        try:
            self._translator = package.Translator(
                str(folder),
                device=device,
                device_index=device_index,
                inter_threads=workers,
                intra_threads=1,
            )
            if device == "cuda":  # only now its libraries are loaded
                self._translator.translate_batch([self._source_pieces[:1]], max_decoding_length=1)
        except (RuntimeError, ValueError) as error:  # a ValueError: no such index
            if device != "cuda":
                raise
            raise UserError(
                f"CTranslate2 does not run on this GPU ({error}): use device=cpu, decoding.engine=pytorch, or "
                "in `endeavour bench` bench.references=[torch,huggingface]"
            ) from error
        finally:
            if torch:
                torch.set_num_threads(threads)  # CTranslate2 has set it to one thread, for the whole process
        self.compute_type: str = self._translator.compute_type  # on this device, in CTranslate2's words

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """See `engine.Engine`. Raises `UserError` for a sentence longer than the positions exported."""
        longest = max((len(source) for source in sources), default=0)
        if longest > self.longest:
            raise UserError(
                f"a sentence of {longest} tokens does not fit the {self.longest} positions of this export: "
                "shorten it, or use decoding.engine=pytorch"
            )
        results: list[list[Hypothesis]] = [[] for _ in sources]
        waiting: list[tuple[int, int, Any]] = []
        budget = self.decoding.tokens_per_batch // self.decoding.beam_size
        for rows in batches_of_one_length(sources, budget):
            limit = limit_of(self.decoding, len(sources[rows[0]]) - 1, positions=self.longest)
            answers = self._submit([sources[row] for row in rows], limit)
            waiting += [(row, limit, answer) for row, answer in zip(rows, answers, strict=True)]
        for row, limit, answer in waiting:
            results[row] = self._ranked(answer.result(), limit)
        return results

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """Log-probability of each target (ids without BOS and EOS) and of EOS after it; nothing is excluded."""
        scored = self._translator.score_batch(
            [[self._source_pieces[number] for number in source[:-1]] for source in sources],
            [[self._target_pieces[number] for number in target] for target in targets],
            max_batch_size=self.decoding.tokens_per_batch,
            batch_type="tokens",
            max_input_length=0,
        )
        return [sum(result.log_probs) for result in scored]

    def _submit(self, sources: list[Sequence[int]], limit: int) -> list[Any]:
        """Submits sentences of one length to the workers; returns at once, with a future per sentence."""
        settings = self.decoding
        # With α = 0 its order is ours, and it may stop at the first; otherwise we need all its hypotheses.
        all_found = settings.beam_size > 1 and settings.length_penalty > 0
        count = PATIENCE * settings.beam_size if all_found else settings.num_hypotheses
        return self._translator.translate_batch(
            [[self._source_pieces[number] for number in source[:-1]] for source in sources],
            asynchronous=True,
            beam_size=settings.beam_size,
            patience=PATIENCE,
            num_hypotheses=count,
            length_penalty=settings.length_penalty,
            suppress_sequences=[[self._target_pieces[number]] for number in (PAD, BOS)],
            max_input_length=0,
            max_decoding_length=limit + 1,
            min_decoding_length=min(self._shortest, limit + 1),
            return_end_token=True,
            return_scores=True,
        )

    def _ranked(self, answer: Any, limit: int) -> list[Hypothesis]:
        """CTranslate2's scores are log-probability / length^α, length counting EOS."""
        found: list[tuple[list[int], float, bool]] = []
        for pieces, score in zip(answer.hypotheses, answer.scores, strict=True):
            ids = [self._target_ids[piece] for piece in pieces]
            ended = ids[-1:] == [EOS]
            log_probability = score * max(len(ids), 1) ** self.decoding.length_penalty
            found.append((ids[:-1] if ended else ids[:limit], log_probability, ended))
        return rank(found, alpha=self.decoding.length_penalty, best=self.decoding.num_hypotheses)


def _vocabulary(folder: Path, side: str) -> list[str]:
    shared = folder / "shared_vocabulary.json"
    path = shared if shared.is_file() else folder / f"{side}_vocabulary.json"
    return json.loads(path.read_text("utf-8"))
