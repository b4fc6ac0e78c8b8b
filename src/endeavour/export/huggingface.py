"""A model as a folder for Hugging Face transformers: Marian (post-norm) or its pre-norm twin, Pegasus.

Both add sinusoids of another layout, sines in the first half and cosines in the second, where ours alternate.
With sinusoidal positions the components of every state are therefore put into their order: the same function,
with its weights' rows and columns moved. Knows models and ids; not runs, text or tokenizers.

Shapes: maps are (outputs, inputs); "stream" is what passes from layer to layer, (..., width).
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.engine import Hypothesis, batches_of_one_length, limit_of, rank
from endeavour.decoding.scoring import log_probabilities
from endeavour.errors import UserError
from endeavour.export.ctranslate2 import exported_positions
from endeavour.export.readme import MAX_LENGTH
from endeavour.model.config import ModelConfig
from endeavour.model.layers import GATED
from endeavour.model.marian import LAYER, Tensors, in_stream_order
from endeavour.model.transformer import Transformer
from endeavour.optional import require
from endeavour.special import BOS, EOS, PAD
from endeavour.storage import safetensors_errors

IMPOSSIBLE = -1e9  # the logit of a row that only pads a vocabulary


def check_huggingface(config: ModelConfig) -> None:
    """Raises `UserError`, naming the key, for a model that none of its architectures can hold exactly."""
    remedy = "use format=ctranslate2, or train with"
    if config.activation in GATED:
        raise UserError(
            f"format=huggingface does not support model.activation={config.activation}: {remedy} relu, gelu or silu"
        )
    if config.positions == "rotary":
        raise UserError(
            f"format=huggingface does not support model.positions=rotary: {remedy} sinusoidal ones"
        )
    if config.positions == "learned" and config.norm == "post":
        raise UserError(
            "format=huggingface: Marian drops learned positions when it is saved again (model.positions=learned "
            f"with model.norm=post): {remedy} sinusoidal ones"
        )


def write_huggingface(folder: Path, model: Transformer, decoding: DecodingConfig) -> None:
    """Writes config.json, generation_config.json and model.safetensors into an existing folder.

    Raises:
        UserError: see `check_huggingface`.
    """
    check_huggingface(model.config)
    transformers = require("transformers")
    post = model.config.norm == "post"
    config_class = transformers.MarianConfig if post else transformers.PegasusConfig
    model_class = transformers.MarianMTModel if post else transformers.PegasusForConditionalGeneration
    theirs = model_class(config_class(**_config(model)))
    theirs.load_state_dict(_weights(model, names=set(theirs.state_dict())))
    theirs.generation_config = transformers.GenerationConfig(
        **_beam(decoding),
        max_length=min(MAX_LENGTH, exported_positions(model.config)),
        decoder_start_token_id=BOS,
        bos_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
        suppress_tokens=[PAD, BOS],
    )
    with _quiet(transformers), safetensors_errors(folder):
        theirs.save_pretrained(str(folder))


class HuggingFaceEngine:
    """An `engine.Engine` over such a folder, for the proof that `model`, theirs, is the same model.

    Log-probabilities are those of the Hugging Face model, from a pass over what its `generate` found.
    """

    compute_type = "float32"

    def __init__(self, folder: Path, decoding: DecodingConfig) -> None:
        self.decoding = decoding
        transformers = require("transformers")
        load = transformers.AutoModelForSeq2SeqLM.from_pretrained
        with _quiet(transformers):
            self.model = load(str(folder), local_files_only=True, dtype=torch.float32).eval()
        self.longest = int(self.model.config.max_position_embeddings)

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """See `engine.Engine`."""
        results: list[list[Hypothesis]] = [[] for _ in sources]
        settings = self.decoding
        for rows in batches_of_one_length(sources, settings.tokens_per_batch // settings.beam_size):
            batch = [list(sources[row]) for row in rows]
            limit = limit_of(settings, len(batch[0]) - 1, positions=self.longest)
            found = self._generate(batch, limit)
            repeated = [source for source, several in zip(batch, found, strict=True) for _ in several]
            flat = [ids for several in found for ids in several]
            scores = iter(log_probabilities(self._logits, repeated, flat))
            for row, several in zip(rows, found, strict=True):
                # At the limit it makes EOS certain; here as in our search its probability is the model's own.
                scored = [(ids, next(scores), True) for ids in several]
                results[row] = rank(scored, alpha=settings.length_penalty, best=settings.num_hypotheses)
        return results

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """Log-probability of each target (ids without BOS and EOS) and of EOS after it."""
        return log_probabilities(self._logits, sources, targets)

    def _generate(self, batch: list[list[int]], limit: int) -> list[list[list[int]]]:
        """All that the beam of each sentence ended with, ids without BOS and EOS."""
        beam = self.decoding.beam_size
        source = torch.tensor(batch)
        output = self.model.generate(
            source,
            attention_mask=torch.ones_like(source),
            num_return_sequences=beam,
            **_beam(self.decoding),
            max_length=limit + 2,  # with BOS and EOS
        )
        rows: list[list[int]] = [
            row[1 : row.index(EOS, 1) if EOS in row[1:] else len(row)] for row in output.tolist()
        ]
        return [rows[start : start + beam] for start in range(0, len(rows), beam)]

    def _logits(self, source: Tensor, target_in: Tensor) -> Tensor:
        inputs = {"input_ids": source, "attention_mask": (source != PAD).long()}
        return self.model(**inputs, decoder_input_ids=target_in, use_cache=False).logits


@contextmanager
def _quiet(transformers: Any) -> Generator[None]:
    """Without the progress bars for a file that is read or written at once."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _beam(decoding: DecodingConfig) -> dict[str, Any]:
    """Theirs divides by length^α, ours by ((5 + length) / 6)^α: the nearest that it offers."""
    if decoding.beam_size == 1:
        return {"num_beams": 1}
    return {"num_beams": decoding.beam_size, "length_penalty": decoding.length_penalty}


def _config(model: Transformer) -> dict[str, Any]:
    """Keyword arguments that Marian's and Pegasus' configs share, and those of one that the other ignores."""
    config = model.config
    source, target = model.embeddings
    shared = config.tie == "all"
    values: dict[str, Any] = {
        "vocab_size": source.num_embeddings,
        "decoder_vocab_size": target.num_embeddings,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": config.tie != "none",
    }
    if config.norm == "pre":  # Pegasus has one vocabulary size, and ties all or nothing
        size = max(source.num_embeddings, target.num_embeddings)
        values = {"vocab_size": size, "tie_word_embeddings": shared}
    return values | {
        "d_model": config.width,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "encoder_ffn_dim": config.feed_forward,
        "decoder_ffn_dim": config.feed_forward,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "max_position_embeddings": exported_positions(model.config),
        "scale_embedding": True,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "forced_eos_token_id": EOS,
        "decoder_start_token_id": BOS,
    }


def _weights(model: Transformer, *, names: set[str]) -> Tensors:
    """All of the model's weights under the names of the twin, which are `names`."""
    order = torch.arange(model.config.width)
    if model.config.positions == "sinusoidal":
        order = torch.cat([order[0::2], order[1::2]])
    source, target = (embedding.weight[:, order] for embedding in model.embeddings)
    output = model.output_weight[:, order]
    rows = max(len(source), len(target)) if model.config.norm == "pre" else None
    bias = torch.zeros(1, rows or len(target))
    bias[:, len(target) :] = IMPOSSIBLE
    weights: Tensors = {
        "model.shared.weight": _filled(source, rows),
        "model.encoder.embed_tokens.weight": _filled(source, rows),
        "model.decoder.embed_tokens.weight": _filled(target, rows),
        "lm_head.weight": _filled(output, rows),
        "final_logits_bias": bias,
    }
    count = exported_positions(model.config)
    for side, positions, layers, norm in (
        ("encoder", model.source_positions, model.encoder, model.encoder_norm),
        ("decoder", model.target_positions, model.decoder, model.decoder_norm),
    ):
        assert positions is not None
        weights[f"model.{side}.embed_positions.weight"] = positions(0, count)[:, order]
        for number, layer in enumerate(layers):
            for name, tensor in _layer(layer, order).items():
                weights[f"model.{side}.layers.{number}.{name}"] = tensor
        for kind, tensor in norm.state_dict().items():  # none where the norm is post
            weights[f"model.{side}.layer_norm.{kind}"] = tensor[order]
    # Marian has no `shared` matrix where source and target differ.
    return {name: tensor.detach().float().cpu() for name, tensor in weights.items() if name in names}


def _filled(matrix: Tensor, rows: int | None) -> Tensor:
    """Filled up with rows of zeros to `rows`."""
    return matrix if rows is None else nn.functional.pad(matrix, (0, 0, 0, rows - len(matrix)))


def _layer(layer: nn.Module, order: Tensor) -> Tensors:
    weights: Tensors = {}
    for name, tensor in layer.state_dict().items():
        part, _, kind = name.rpartition(".")
        pieces = in_stream_order(part, tensor, order).chunk(len(LAYER[part]))
        weights |= {f"{one}.{kind}": piece for one, piece in zip(LAYER[part], pieces, strict=True)}
    return weights
