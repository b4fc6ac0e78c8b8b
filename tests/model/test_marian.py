"""Marian's settings and weights as ours: what is refused, and that a bias of the logits goes into their matrix."""

from typing import Any

import pytest
import torch

from endeavour.errors import UserError
from endeavour.model.marian import _check_positions, _fold_bias, marian_config
from endeavour.model.positions import SinusoidalPositions

CONFIG = {
    "model_type": "marian",
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "activation_function": "swish",
    "scale_embedding": True,
    "max_position_embeddings": 128,
    "dropout": 0.1,
    "attention_dropout": 0.2,
    "activation_dropout": 0.3,
}


def test_the_settings_are_taken_over() -> None:
    ours = marian_config(CONFIG, name="opus")
    assert (ours.name, ours.width, ours.encoder_layers, ours.decoder_layers) == ("opus", 32, 2, 3)
    assert (ours.num_heads, ours.feed_forward, ours.activation, ours.norm) == (4, 48, "silu", "post")
    assert (ours.dropout, ours.attention_dropout, ours.activation_dropout) == (0.1, 0.2, 0.3)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "pegasus"),
        ("scale_embedding", False),
        ("scale_embedding", None),
        ("share_encoder_decoder_embeddings", False),
        ("tie_word_embeddings", False),
        ("static_position_embeddings", False),
        ("normalize_before", True),
        ("normalize_embedding", True),
        ("add_final_layer_norm", True),
        ("decoder_ffn_dim", 64),
        ("decoder_attention_heads", 2),
        ("activation_function", "gelu_new"),
    ],
)
def test_what_our_model_cannot_do_is_refused_by_name(key: str, value: Any) -> None:
    changed = CONFIG | {key: value}
    if value is None:
        del changed[key]
    with pytest.raises(UserError, match=key):
        marian_config(changed, name="opus")


@pytest.mark.parametrize("sign", [1, -1, 0])
def test_a_bias_goes_into_the_matrix(sign: int) -> None:
    """Whatever the shift: its product with the inverse gain is large, negative, or 0."""
    torch.manual_seed(0)
    norm = torch.nn.LayerNorm(16)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(16) + 0.1)
        norm.bias.copy_(sign * norm.weight * torch.rand(16))
    matrix, bias = torch.randn(9, 16), torch.randn(9) * 5
    bias[3] = -50.0
    states = torch.randn(20, 16) * 3 + 7
    expected = norm(states) @ matrix.T + bias
    folded, shift = _fold_bias(matrix, bias, norm.weight, norm.bias)
    with torch.no_grad():
        norm.bias.copy_(shift)
    torch.testing.assert_close(norm(states) @ folded.T, expected, atol=2e-4, rtol=0)


def test_a_norm_without_gain_is_refused() -> None:
    gain = torch.ones(8)
    gain[5] = 0
    with pytest.raises(UserError, match="gain of 0"):
        _fold_bias(torch.ones(3, 8), torch.ones(3), gain, torch.zeros(8))


def test_positions_that_are_not_sinusoids_are_refused() -> None:
    order = torch.cat([torch.arange(0, 8, 2), torch.arange(1, 8, 2)])
    table = SinusoidalPositions(8)(0, 20)[:, order]  # sines first
    _check_positions({"model.encoder.embed_positions.weight": table}, order.argsort())
    with pytest.raises(UserError, match=r"model\.decoder\.embed_positions\.weight"):
        _check_positions({"model.decoder.embed_positions.weight": table + 0.1}, order.argsort())
