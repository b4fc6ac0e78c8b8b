"""The same Transformer as others offer it: `torch.nn.Transformer` and Hugging Face's Marian.

They are built as a user who reads their manuals would build them, with no code of ours but the table of positions, and
are trained; decoding is measured with exports of our own weights. Knows ids and logits; not losses or clocks.

Shapes: batch = sentences; source, target = padded lengths; width = of the model.
"""

import logging
import warnings
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from endeavour.errors import first_line
from endeavour.model.config import ModelConfig
from endeavour.model.layers import GATED
from endeavour.model.positions import SinusoidalPositions
from endeavour.special import BOS, EOS, PAD

# Rows of Marian's table of positions: ours have no limit if they are sinusoidal, whatever model.max_length says.
POSITIONS = 8192
PACKAGES = {"torch": "torch", "huggingface": "transformers", "ctranslate2": "ctranslate2"}


def why_no_reference(name: str, config: ModelConfig, device: torch.device) -> str | None:
    """Why a reference cannot be compared with a model of this config on this device; None if it can."""
    try:
        import_module(PACKAGES[name])
    except ImportError as error:  # or something that it needs is missing, or of another version
        return f"{PACKAGES[name]} cannot be imported ({first_line(error)})"
    if name == "ctranslate2":  # an export of our own model, whatever its parts
        return None if device.type in ("cpu", "cuda") else f"it does not support {device.type}"
    if config.activation in GATED:
        return f"it has no model.activation={config.activation}"
    if config.positions != "sinusoidal":
        return f"it has no model.positions={config.positions}"
    if name == "huggingface" and config.tie != "all":
        return "Marian is measured with model.tie=all"
    return None


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer` with embeddings, positions and a vocabulary projection."""

    def __init__(self, config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.scale = config.width**0.5
        self.source_embedding = nn.Embedding(source_vocabulary, config.width, padding_idx=PAD)
        self.target_embedding = (
            self.source_embedding
            if config.tie == "all"
            else nn.Embedding(target_vocabulary, config.width, padding_idx=PAD)
        )
        self.positions = SinusoidalPositions(config.width)
        self.dropout = nn.Dropout(config.embedding_dropout)
        with warnings.catch_warnings():  # that pre-norm rules out nested tensors, which are for inference
            warnings.filterwarnings("ignore", message="enable_nested_tensor")
            self.transformer = nn.Transformer(
                config.width,
                config.num_heads,
                config.encoder_layers,
                config.decoder_layers,
                config.feed_forward,
                config.dropout,
                # It knows the names of the others.
                functional.silu if config.activation == "silu" else config.activation,
                batch_first=True,
                norm_first=config.norm == "pre",
            )
        # Its one dropout stands for four; these two layers drop as the config says, like those of all others here.
        for layer in self.transformer.modules():
            if isinstance(layer, nn.MultiheadAttention):
                layer.dropout = config.attention_dropout
            elif isinstance(layer, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                layer.dropout.p = config.activation_dropout
        self.output = nn.Linear(config.width, target_vocabulary, bias=False)
        if config.tie != "none":
            self.output.weight = self.target_embedding.weight
        for embedding in dict.fromkeys((self.source_embedding, self.target_embedding)):  # in this order
            nn.init.normal_(embedding.weight, std=config.width**-0.5)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Ids (batch, source) and (batch, target) to logits (batch, target, vocabulary)."""
        length = target_in.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=source.device).triu(1)
        states = self.transformer(
            self._embed(self.source_embedding, source),
            self._embed(self.target_embedding, target_in),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target_in == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.output(states)

    def _embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        return self.dropout(embedding(ids) * self.scale + self.positions(0, ids.shape[1]))


class MarianTransformer(nn.Module):
    """`transformers.MarianMTModel`, whose norm is always post and whose vocabulary is joint."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        logging.getLogger("transformers").setLevel(logging.ERROR)
        from transformers import MarianConfig, MarianMTModel

        self.model = cast(
            Any,
            MarianMTModel(
                MarianConfig(
                    vocab_size=vocabulary,
                    d_model=config.width,
                    encoder_layers=config.encoder_layers,
                    decoder_layers=config.decoder_layers,
                    encoder_attention_heads=config.num_heads,
                    decoder_attention_heads=config.num_heads,
                    encoder_ffn_dim=config.feed_forward,
                    decoder_ffn_dim=config.feed_forward,
                    activation_function=config.activation,
                    dropout=config.dropout,
                    attention_dropout=config.attention_dropout,
                    activation_dropout=config.activation_dropout,
                    max_position_embeddings=max(config.max_length, POSITIONS),
                    scale_embedding=True,
                    pad_token_id=PAD,
                    bos_token_id=BOS,
                    eos_token_id=EOS,
                    decoder_start_token_id=BOS,
                )
            ),
        )

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Ids (batch, source) and (batch, target) to logits (batch, target, vocabulary)."""
        return self.model(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            decoder_input_ids=target_in,
            use_cache=False,
        ).logits


def reference(name: str, config: ModelConfig, vocabularies: tuple[int, int]) -> nn.Module:
    """The model of a reference that can be trained, by its name in `bench.references`."""
    if name == "torch":
        return TorchTransformer(config, *vocabularies)
    assert name == "huggingface"
    return MarianTransformer(config, vocabularies[0])
