"""Models with a search: ours, Hugging Face's and CTranslate2's, with the same fresh weights that never choose EOS.

Knows ids and the limits under which all of them decode to one length; not clocks or text.
"""

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import torch
from torch import nn

from endeavour.benchmark.config import OURS
from endeavour.benchmark.task import Task
from endeavour.data.batching import pad
from endeavour.decoding.beam_search import beam_search
from endeavour.decoding.ctranslate2 import DESCRIPTION, CTranslate2Engine
from endeavour.decoding.graphed import search_model
from endeavour.export.ctranslate2 import exported_positions, write_ctranslate2
from endeavour.export.huggingface import HuggingFaceEngine, write_huggingface
from endeavour.model.transformer import DecoderLayer, Transformer
from endeavour.special import EOS, PAD
from endeavour.training.precision import DTYPES

Sentences = Sequence[list[int]]

# Logit of EOS in a model that never ends. Those of a fresh model have deviation 1 or so.
NEVER = -100.0


class Decoder(Protocol):
    """A model with a search."""

    def decode(self, sources: Sentences, beam_size: int) -> list[int]:
        """Tokens of each translation, EOS counted where there is one."""
        ...


class OurDecoder:
    """`beam_search` over our model."""

    def __init__(self, model: Transformer, task: Task, precision: torch.dtype) -> None:
        own = copy.deepcopy(model).to(precision)
        self._model = search_model(own, task.decoding, lambda _: task.settings.decoding_tokens)
        self._task = task

    def decode(self, sources: Sentences, beam_size: int) -> list[int]:
        ids = pad(sources).to(self._task.device)
        tokens = self._task.settings.decoding_tokens
        found = beam_search(
            self._model,
            ids,
            [tokens - 1] * len(sources),
            beam_size=beam_size,
            alpha=0.0,
            num_hypotheses=1,
        )
        return [len(row[0].ids) + 1 for row in found]


class HuggingFaceDecoder:
    """`generate` of the Hugging Face model that our export of the same weights gives: Pegasus or Marian."""

    def __init__(self, model: Transformer, task: Task, precision: torch.dtype, folder: Path) -> None:
        folder.mkdir()
        write_huggingface(folder, model, task.decoding)
        self._model = HuggingFaceEngine(folder, task.decoding).model.to(task.device, precision)
        self._task = task

    @torch.inference_mode()
    def decode(self, sources: Sentences, beam_size: int) -> list[int]:
        ids = pad(sources).to(self._task.device)
        found = self._model.generate(
            input_ids=ids,
            attention_mask=(ids != PAD).long(),
            num_beams=beam_size,
            do_sample=False,
            max_length=self._task.settings.decoding_tokens + 1,  # with BOS
        )
        return [found.shape[1] - 1] * len(found)


class CTranslate2Decoder:
    """Our engine over an export of our model; on a CPU with one worker a thread, so that one sentence has one thread.

    It is told to go on to the limit: in int8 the rounded row of EOS no longer has the logit `NEVER`.
    """

    def __init__(self, model: Transformer, task: Task, quantization: str, folder: Path) -> None:
        folder.mkdir()
        source, target = ([f"piece{number}" for number in range(size)] for size in task.vocabularies)
        write_ctranslate2(folder, model, (source, target), quantization=quantization)
        (folder / DESCRIPTION).write_text(
            json.dumps({"positions": exported_positions(model.config)}), "utf-8"
        )
        self._engines = {
            beam_size: CTranslate2Engine(
                folder,
                replace(
                    task.decoding,
                    beam_size=beam_size,
                    length_penalty=0.0,
                    max_length_ratio=0.0,
                    max_length_offset=task.settings.decoding_tokens - 1,
                    num_hypotheses=1,
                ),
                device=task.device.type,
                device_index=task.device.index or 0,
                workers=torch.get_num_threads() if task.device.type == "cpu" else 1,
                shortest=task.settings.decoding_tokens,
            )
            for beam_size in task.settings.beam_sizes
        }

    def decode(self, sources: Sentences, beam_size: int) -> list[int]:
        return [len(row[0].ids) + 1 for row in self._engines[beam_size].search(sources)]


def never_ending(model: Transformer) -> Transformer:
    """The model, whose weights are fresh, altered so that the logit of EOS is `NEVER` at every step.

    This needs no help from a search, and survives an export. Layer norm subtracts the mean, so the components
    of its output sum to 0, or with biases of 1 to `width`: a row of EOS whose components all are
    NEVER / width has with any such output the product NEVER.
    """
    if model.config.norm == "pre":
        norm = model.decoder_norm
    else:
        last = model.decoder[-1]
        assert isinstance(last, DecoderLayer)
        norm = last.feed_forward_residual.norm
    assert isinstance(norm, nn.LayerNorm)
    with torch.no_grad():
        nn.init.ones_(norm.bias)
        model.output_weight[EOS] = NEVER / model.config.width
    return model


def decoding_contenders(
    references: Sequence[str], precisions: Sequence[str], device: torch.device
) -> list[str]:
    """`endeavour fp32`, …: ours and the references that search, each in what it can; torch has no search."""
    kinds = ("int8", "float32") if device.type == "cpu" else ("int8_float16", "float16")
    names = [f"{OURS} {precision}" for precision in precisions]
    names += [f"huggingface {precision}" for precision in precisions] if "huggingface" in references else []
    names += [f"ctranslate2 {kind}" for kind in kinds] if "ctranslate2" in references else []
    return names


def never_ending_model(task: Task) -> Transformer:
    """Fresh weights, drawn from the task's seed, that never choose EOS."""
    torch.manual_seed(task.seed)
    source, target = task.vocabularies
    model = Transformer(task.model, source_vocabulary=source, target_vocabulary=target)
    return never_ending(model).to(task.device).eval()


def make_decoder(model: Transformer, task: Task, name: str, folder: Path) -> Decoder:
    """The one of that name, from `decoding_contenders`.

    Args:
        folder: to which an export is written; it must outlive the decoder.
    """
    package, _, kind = name.partition(" ")
    if package == OURS:
        return OurDecoder(model, task, DTYPES[kind])
    if package == "ctranslate2":
        return CTranslate2Decoder(model, task, kind, folder / name)
    return HuggingFaceDecoder(model, task, DTYPES[kind], folder / name)
