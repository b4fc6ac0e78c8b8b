"""Validation as training needs it: a function of the model, over one split held in memory."""

import numpy as np
import torch

from endeavour.data.batching import collate, length_batches
from endeavour.data.corpus import VALIDATION
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.data.tokenizer import encode_pairs
from endeavour.decoding.alignment import attention_picture
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translator
from endeavour.errors import named_memory_error
from endeavour.evaluation.metrics import corpus_bleu
from endeavour.model.transformer import Transformer
from endeavour.runs.config import RunConfig
from endeavour.runs.translators import resolve_decoding
from endeavour.training.log import perplexity
from endeavour.training.monitor import Validation
from endeavour.training.precision import autocast
from endeavour.training.step import SMALLER_BATCHES, LossModel

# Translations that are shown and tracked at every validation.
SAMPLES = 8
# Least and most pieces, EOS included, on either side of the pair whose attention is watched.
WATCHED = range(8, 21)


class Validator:
    """Loss and perplexity on the whole validation split, BLEU on its first `validation_sentences`, lowercased where the
    vocabulary is.

    Args:
        precision: that the run trains in.
    """

    def __init__(self, data: PreparedData, config: RunConfig, precision: torch.dtype) -> None:
        dataset = ParallelDataset.open(data.folder, VALIDATION)
        lengths = np.maximum(dataset.source.lengths, dataset.target.lengths)
        self._batches = [
            collate(dataset, rows) for rows in length_batches(lengths, config.training.tokens_per_batch)
        ]
        shown = slice(config.training.validation_sentences)
        self._sources = data.lines(VALIDATION, "source")[shown]
        self._references = data.lines(VALIDATION, "target")[shown]
        self._tokenizers = data.load_tokenizers()
        self._watched = self._choose_watched()
        self._training = config.training
        self._decoding = config.validation_decoding
        self._precision = precision

    def __call__(self, model: Transformer) -> Validation:
        loss, nll = self.losses(model)
        self._decoding = resolve_decoding(self._decoding, model)
        engine = PyTorchEngine(model, self._decoding)
        translator = Translator(engine, self._tokenizers, decoding=self._decoding)
        hypotheses = list(translator.translate(self._sources))
        samples = list(zip(self._sources, hypotheses, self._references, strict=True))
        return Validation(
            loss=loss,
            perplexity=perplexity(nll),
            bleu=corpus_bleu(hypotheses, self._references, lowercase=self._tokenizers[1].lowercase),
            samples=samples[:: max(1, len(samples) // SAMPLES)][:SAMPLES],
            attention=self._attention(model),
        )

    @torch.no_grad()
    def losses(self, model: Transformer) -> tuple[float, float]:
        """Smoothed loss and negative log-likelihood of the whole split, nats per target token."""
        device = model.device
        loss_model = LossModel(model, label_smoothing=self._training.label_smoothing)
        sums = torch.zeros(2, dtype=torch.float64)
        for batch in self._batches:
            with named_memory_error("validation's loss", SMALLER_BATCHES), autocast(device, self._precision):
                losses = loss_model(*batch.to(device))
            sums += torch.stack(losses).cpu().double()
        tokens = sum(batch.target_tokens for batch in self._batches)
        loss, nll = (sums / tokens).tolist()
        return loss, nll

    def _choose_watched(self) -> tuple[str, str] | None:
        """The first pair that is neither too short to show anything nor too long to be read."""
        pairs = list(zip(self._sources, self._references, strict=True))
        encoded = zip(*encode_pairs(self._tokenizers, pairs), strict=True)
        fitting = (
            pair
            for pair, sides in zip(pairs, encoded, strict=True)
            if all(len(ids) + 1 in WATCHED for ids in sides)
        )
        return next(fitting, None)

    def _attention(self, model: Transformer) -> tuple[list[str], list[str], list[list[float]]] | None:
        """Of the watched pair, given its reference, so that the pieces stay the same."""
        if self._watched is None:
            return None
        source, target, weights = attention_picture(model, self._tokenizers, *self._watched)
        return source, target, [[round(weight, 4) for weight in row] for row in weights]
