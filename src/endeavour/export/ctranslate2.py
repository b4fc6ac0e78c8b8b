"""A model as a CTranslate2 folder, by its model-spec API: weight by weight, with explicit position encodings.

The converter for Marian cannot be used: it assumes that PAD is the last row of the vocabulary, and drops it. Knows
model and pieces; not runs, text or search.

Shapes: width × width maps are (outputs, inputs), as in torch.
"""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from endeavour.model.config import ModelConfig
from endeavour.model.layers import GATED, FeedForward
from endeavour.model.transformer import DecoderLayer, EncoderLayer, Transformer
from endeavour.optional import require
from endeavour.special import BOS, EOS, UNK

# Sinusoids have no limit, but CTranslate2 needs a table of them; twice the default model.max_length.
TABULATED_POSITIONS = 2048


def exported_positions(config: ModelConfig) -> int:
    """Positions that an export of a model has, on either side."""
    return config.max_length if config.positions == "learned" else TABULATED_POSITIONS


def write_ctranslate2(
    folder: Path, model: Transformer, pieces: tuple[list[str], list[str]], *, quantization: str
) -> None:
    """Writes model.bin, config.json and the vocabularies into an existing folder.

    Args:
        model: on any device.
        pieces: the written form of every id, of source and target.
        quantization: see `decoding.config.Quantization`; int8 rounds the weights of every map and embedding row by
            row, and what follows it is the type of all others.
    """
    spec = _spec(model)
    spec.register_source_vocabulary(pieces[0])
    spec.register_target_vocabulary(pieces[1])
    spec.config.unk_token = pieces[1][UNK]
    spec.config.bos_token = spec.config.decoder_start_token = pieces[1][BOS]
    spec.config.eos_token = pieces[1][EOS]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = nn.LayerNorm(1).eps
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def _spec(model: Transformer) -> Any:
    specs = require("ctranslate2").specs
    config = model.config
    activation = {
        "relu": specs.Activation.RELU,
        "gelu": specs.Activation.GELU,
        "silu": specs.Activation.SWISH,
        "swiglu": specs.Activation.SWISH,
    }[config.activation]
    options: dict[str, Any] = {
        "num_heads": config.num_heads,
        "pre_norm": config.norm == "pre",
        "activation": activation,
        "ffn_glu": config.activation in GATED,
    }
    if config.positions == "rotary":
        # Halves are paired, as in `positions.rotate`; self-attention alone turns.
        options |= {"rotary_dim": config.width // config.num_heads, "rotary_interleave": False}
    encoder = specs.transformer_spec.TransformerEncoderSpec(config.encoder_layers, **options)
    decoder = specs.transformer_spec.TransformerDecoderSpec(config.decoder_layers, **options)
    source, target = model.embeddings
    encoder.embeddings[0].weight = _plain(source.weight)
    decoder.embeddings.weight = _plain(target.weight)
    decoder.projection.weight = _plain(model.output_weight)
    for stack, positions in ((encoder, model.source_positions), (decoder, model.target_positions)):
        if positions is not None:
            stack.position_encodings.encodings = _plain(positions(0, exported_positions(model.config)))
    for spec, layer in zip(encoder.layer, model.encoder, strict=True):
        _layer(spec, layer)
    for spec, layer in zip(decoder.layer, model.decoder, strict=True):
        _layer(spec, layer)
    if config.norm == "pre":
        _norm(encoder.layer_norm, model.encoder_norm)
        _norm(decoder.layer_norm, model.decoder_norm)
    return specs.TransformerSpec(encoder, decoder)


def _layer(spec: Any, layer: nn.Module) -> None:
    assert isinstance(layer, EncoderLayer | DecoderLayer)
    own = layer.self_attention
    _maps(
        spec.self_attention, own.input, own.output
    )  # in both one map for query, key and value, in this order
    _norm(spec.self_attention.layer_norm, layer.attention_residual.norm)
    if isinstance(layer, DecoderLayer):
        cross = layer.cross_attention
        _maps(spec.attention, cross.query, cross.memory, cross.output)
        _norm(spec.attention.layer_norm, layer.cross_residual.norm)
    _feed_forward(spec.ffn, layer.feed_forward)
    _norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)


def _maps(spec: Any, *maps: nn.Linear) -> None:
    for linear, ours in zip(spec.linear, maps, strict=True):
        _linear(linear, ours)


def _feed_forward(spec: Any, block: FeedForward) -> None:
    _linear(spec.linear_1, block.outer)
    if block.inner.maps == 1:
        _linear(spec.linear_0, block.inner)
        return
    halves = zip(block.inner.weight.chunk(2), block.inner.bias.chunk(2), strict=True)
    for linear, (weight, bias) in zip((spec.linear_0, spec.linear_0_noact), halves, strict=True):
        linear.weight, linear.bias = _plain(weight), _plain(bias)


def _linear(spec: Any, linear: nn.Linear) -> None:
    spec.weight, spec.bias = _plain(linear.weight), _plain(linear.bias)


def _norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = _plain(norm.weight), _plain(norm.bias)


def _plain(tensor: Tensor) -> Any:
    """A copy as a numpy array, since CTranslate2 quantizes in place."""
    return tensor.detach().float().cpu().numpy().copy()
