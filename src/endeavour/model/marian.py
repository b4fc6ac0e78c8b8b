"""The weights of a Marian checkpoint in Hugging Face's form as those of our Transformer: the same function.

The inverse of what `export.huggingface` does, and two things more. Marian's sinusoids are sines first and cosines after
them, so the components of every state are put into our order. And its logits have a bias, which ours have not: it goes
into the matrix of the output, see `_fold_bias`, which then is no longer that of the embeddings.

Knows tensors and their names; no files, no pieces.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from endeavour.errors import UserError
from endeavour.model.config import ModelConfig
from endeavour.model.positions import SinusoidalPositions
from endeavour.special import BOS, UNK

Tensors = dict[str, Tensor]

# The logit of an output that the checkpoint has not: without weight beside the others, but so near to them that label
# smoothing, which asks for a little of everything, costs nothing either.
IMPOSSIBLE = -50.0
ACTIVATIONS: dict[str, Literal["relu", "gelu", "silu"]] = {
    "relu": "relu",
    "gelu": "gelu",
    "silu": "silu",
    "swish": "silu",
}
# One matrix by four names, of which a file may leave out some.
EMBEDDINGS = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
# Part of our layer → those of theirs whose rows it joins, in this order.
LAYER = {
    "self_attention.input": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention.output": ("self_attn.out_proj",),
    "attention_residual.norm": ("self_attn_layer_norm",),
    "cross_attention.query": ("encoder_attn.q_proj",),
    "cross_attention.memory": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross_attention.output": ("encoder_attn.out_proj",),
    "cross_residual.norm": ("encoder_attn_layer_norm",),
    "feed_forward.inner": ("fc1",),
    "feed_forward.outer": ("fc2",),
    "feed_forward_residual.norm": ("final_layer_norm",),
}
# Those that read the stream, which passes from layer to layer; the others write to it.
READING = {"self_attention.input", "cross_attention.query", "cross_attention.memory", "feed_forward.inner"}
# Key → the only value that our model can have.
REQUIRED: dict[str, Any] = {
    "model_type": "marian",
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "static_position_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
}


def marian_config(theirs: Mapping[str, Any], *, name: str) -> ModelConfig:
    """The config of our model, from what config.json holds.

    Raises:
        UserError: it says something that our model cannot do; the message names the key.
    """
    given = {"scale_embedding": False} | dict(
        theirs
    )  # the only one of these that is another where it is not said
    for key, value in REQUIRED.items():
        if given.get(key, value) != value:
            raise UserError(f"{name}: config.json has {key}={given[key]}, which is supported only as {value}")
    for key in ("attention_heads", "ffn_dim"):
        if theirs[f"encoder_{key}"] != theirs[f"decoder_{key}"]:
            raise UserError(f"{name}: config.json has another encoder_{key} than decoder_{key}")
    if theirs["activation_function"] not in ACTIVATIONS:
        raise UserError(
            f"{name}: config.json has activation_function={theirs['activation_function']}; supported are "
            + ", ".join(ACTIVATIONS)
        )
    return ModelConfig(
        name=name,
        width=theirs["d_model"],
        encoder_layers=theirs["encoder_layers"],
        decoder_layers=theirs["decoder_layers"],
        num_heads=theirs["encoder_attention_heads"],
        feed_forward=theirs["encoder_ffn_dim"],
        activation=ACTIVATIONS[theirs["activation_function"]],
        norm="post",
        positions="sinusoidal",
        max_length=theirs["max_position_embeddings"],
        tie="none",
        dropout=theirs["dropout"],
        attention_dropout=theirs["attention_dropout"],
        activation_dropout=theirs["activation_dropout"],
        embedding_dropout=theirs["dropout"],
    )


def marian_state(
    theirs: Mapping[str, Tensor], config: ModelConfig, rows: Sequence[int | None], *, start: int
) -> Tensors:
    """The state of `Transformer` for `config`.

    Args:
        theirs: name → tensor, of the checkpoint.
        rows: for each of our ids the checkpoint's; an id that has none is embedded as unknown, and never comes out.
        start: the checkpoint's id with which its decoder begins; ours begins with BOS.

    Raises:
        KeyError, StopIteration: a tensor is missing.
        UserError: the positions are not sinusoids, the bias cannot be folded in, or `config` has no place for a tensor.
    """
    theirs = dict(theirs)  # each layer takes its tensors out of it
    width = config.width
    order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)]).argsort()
    _check_positions(theirs, order)
    embedding = next(theirs[name] for name in EMBEDDINGS if name in theirs).float()[:, order]
    unknown = rows[UNK]
    assert unknown is not None
    source = embedding[[unknown if row is None else row for row in rows]]
    target = source.clone()
    target[BOS] = embedding[start]
    state: Tensors = {"source_embedding.weight": source, "target_embedding.weight": target}
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            layer = _layer(theirs, f"model.{side}.layers.{number}", order, cross=side == "decoder")
            state |= {f"{side}.{number}.{name}": tensor for name, tensor in layer.items()}
    if unread := sorted(theirs.keys() - {*EMBEDDINGS, *POSITIONS, BIAS}):
        raise UserError(
            f"config.json describes a model without {unread[0]}, one of {len(unread)} such tensors of the checkpoint"
        )
    # A row of the output that the checkpoint has not is zeros with a bias of its own.
    there = torch.tensor([row is not None for row in rows])
    bias = theirs[BIAS].float().flatten()[[row or 0 for row in rows]]
    output = embedding[[row or 0 for row in rows]].where(there[:, None], 0.0)
    last = f"decoder.{config.decoder_layers - 1}.feed_forward_residual.norm"
    state["output.weight"], state[f"{last}.bias"] = _fold_bias(
        output, bias.where(there, IMPOSSIBLE), state[f"{last}.weight"], state[f"{last}.bias"]
    )
    return {name: tensor.contiguous() for name, tensor in state.items()}


def _check_positions(theirs: Mapping[str, Tensor], order: Tensor) -> None:
    """Raises `UserError` where a file that holds the positions holds others than sinusoids."""
    ours = SinusoidalPositions(len(order))
    for name in POSITIONS:
        table = theirs.get(name)
        if table is not None and not torch.allclose(table[:, order].float(), ours(0, len(table)), atol=1e-3):
            raise UserError(f"{name} holds other positions than Marian's sinusoids")


def _fold_bias(matrix: Tensor, bias: Tensor, gain: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Another matrix, and another shift of the layer norm before it, with which matrix · y + bias needs no bias.

    A norm's output is y = gain · z + shift, where the components of z add up to 0. So u = 1 / gain has the same product
    with every y, u · y = Σ shift / gain, and adding bias / (u · y) times u to each row adds the bias. That the product
    is never near 0, the shift is first moved by ± gain, which the rows make good too.

    Args:
        matrix: (vocabulary, width); bias: (vocabulary,); gain, shift: (width,).

    Raises:
        UserError: a component of the gain is 0, so that z is lost.
    """
    matrix, bias, gain, shift = (tensor.double() for tensor in (matrix, bias, gain, shift))
    if gain.abs().min() < 1e-4:
        raise UserError(
            "the last norm of the decoder has a gain of 0, so the bias of the logits cannot be folded in"
        )
    product = (shift / gain).sum()
    moved = gain if product >= 0 else -gain
    share = (bias - matrix @ moved) / (product + (moved / gain).sum())
    return (matrix + torch.outer(share, 1 / gain)).float(), (shift + moved).float()


def _layer(theirs: Tensors, name: str, order: Tensor, *, cross: bool) -> Tensors:
    """Takes a layer out of `theirs`; `order` is that of the stream."""
    layer: Tensors = {}
    for part, names in LAYER.items():
        if cross or not part.startswith("cross_"):
            for kind in ("weight", "bias"):
                joined = torch.cat([theirs.pop(f"{name}.{one}.{kind}") for one in names])
                layer[f"{part}.{kind}"] = in_stream_order(part, joined.float(), order)
    return layer


def in_stream_order(part: str, tensor: Tensor, order: Tensor) -> Tensor:
    """A weight or bias of `part` of a layer, with the components of the stream in another order.

    Maps read the stream by columns and write to it by rows.
    """
    if part not in READING:
        return tensor[order]
    return tensor[:, order] if tensor.ndim == 2 else tensor
