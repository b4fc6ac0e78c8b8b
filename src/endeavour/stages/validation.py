"""Validation as training needs it: a function of the model, over one split held in memory."""

import math

import torch

from endeavour.config import Config
from endeavour.data.batching import collate, length_batches
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import UserError
from endeavour.evaluation.metrics import corpus_bleu
from endeavour.evaluation.translate import PyTorchEngine, Translator
from endeavour.model.transformer import Transformer
from endeavour.training.device import autocast, choose_precision
from endeavour.training.loop import Validation
from endeavour.training.loss import projected_loss

# Translations that are shown and tracked at every validation.
SAMPLES = 8


class Validator:
    """Loss and perplexity on the whole validation split, BLEU on its first `validation_sentences`.

    Raises:
        UserError: the split does not fit the positions that the model is to learn.
    """

    def __init__(self, data: PreparedData, tokenizers: tuple[Tokenizer, Tokenizer], config: Config) -> None:
        split = data.validation_split
        dataset = ParallelDataset.open(data.folder, split)
        longest = int(max(dataset.source.lengths.max(), dataset.target.lengths.max()))
        if config.model.positions == "learned" and longest > config.model.max_length:
            raise UserError(
                f"the {split} split has a sentence of {longest} tokens: "
                f"model.max_length={config.model.max_length} has to be as much"
            )
        self._batches = [
            collate(dataset, rows)
            for rows in length_batches(dataset.target.lengths, config.training.tokens_per_batch)
        ]
        shown = slice(config.training.validation_sentences)
        self._sources = data.lines(split, "source")[shown]
        self._references = data.lines(split, "target")[shown]
        self._tokenizers = tokenizers
        self._training = config.training
        self._decoding = config.validation_decoding

    def __call__(self, model: Transformer) -> Validation:
        loss, likelihood = self._loss(model)
        translator = Translator(PyTorchEngine(model, self._decoding), self._tokenizers)
        hypotheses = list(translator.translate(self._sources))
        samples = list(zip(self._sources, hypotheses, self._references, strict=True))
        return Validation(
            loss=loss,
            perplexity=math.exp(min(likelihood, 700.0)),
            bleu=corpus_bleu(hypotheses, self._references),
            samples=samples[:: max(1, len(samples) // SAMPLES)][:SAMPLES],
        )

    @torch.no_grad()
    def _loss(self, model: Transformer) -> tuple[float, float]:
        """Smoothed loss and negative log-likelihood, nats per target token."""
        device = model.output_weight.device
        precision = choose_precision(self._training.precision, device)
        sums = torch.zeros(2, dtype=torch.float64)
        for batch in self._batches:
            batch = batch.to(device)
            with autocast(device, precision):
                states = model.decode(batch.target_in, model.encode(batch.source))
                losses = projected_loss(
                    states,
                    model.output_weight,
                    batch.target_out,
                    label_smoothing=self._training.label_smoothing,
                )
            sums += torch.stack(losses).cpu().double()
        tokens = sum(batch.target_tokens for batch in self._batches)
        loss, likelihood = (sums / tokens).tolist()
        return loss, likelihood
