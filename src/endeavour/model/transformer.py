"""The encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017), read top-down.

Knows ids, masks and layers; not text, losses, optimizers or search. Masks are made here, from the ids.

Shapes: batch = sentences; source, target = padded lengths; beam = hypotheses of one sentence.
"""

from collections.abc import Iterable
from functools import partial
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from endeavour.errors import UserError
from endeavour.model.attention import CrossAttention, SelfAttention, padding_mask
from endeavour.model.config import ModelConfig
from endeavour.model.decoder_step import DecoderCache, LayerStep
from endeavour.model.layers import Dropout, FeedForward, Residual, linear
from endeavour.model.positions import LearnedPositions, RotaryPositions, Rotation, SinusoidalPositions
from endeavour.special import PAD


class Memory(NamedTuple):
    """The encoded source: states (batch, source, width) and the mask that hides PAD."""

    states: Tensor
    mask: Tensor | None


AttentionKind = Literal["encoder", "decoder", "cross"]


class AttentionMaps(NamedTuple):
    """Weights of all layers, each (layers, batch, heads, queries, keys); they add up to 1 over the keys."""

    encoder: Tensor
    decoder: Tensor
    cross: Tensor


class Transformer(nn.Module):
    """forward(source, target_in) = project(decode(target_in, encode(source))).

    `source` rows end in EOS, `target_in` rows begin with BOS; both are padded with PAD on the right. The
    weights are initialised from torch's global generator.

    Raises UserError for two vocabularies of different size with `tie=all`.
    """

    def __init__(self, config: ModelConfig, *, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        if config.tie == "all" and source_vocabulary != target_vocabulary:
            raise UserError(
                f"model.tie=all needs one joint vocabulary, not {source_vocabulary} source and "
                f"{target_vocabulary} target pieces: set tokenizer.joint=true or model.tie=decoder"
            )
        self.config = config
        width = config.width
        # A tied matrix is registered once, so that a checkpoint holds it once.
        self.source_embedding = nn.Embedding(source_vocabulary, width, padding_idx=PAD)
        self.target_embedding = (
            None if config.tie == "all" else nn.Embedding(target_vocabulary, width, padding_idx=PAD)
        )
        self.output = nn.Linear(width, target_vocabulary, bias=False) if config.tie == "none" else None
        self.source_positions = _absolute_positions(config)
        self.target_positions = _absolute_positions(config)
        self.rotary = RotaryPositions(width // config.num_heads) if config.positions == "rotary" else None
        self.embedding_dropout = Dropout(config.embedding_dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        # Post-norm layers already end with a norm.
        self.encoder_norm = nn.LayerNorm(width) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(width) if config.norm == "pre" else nn.Identity()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform maps, biases of zero, embeddings with deviation width^-1/2 (PAD: 0).

        On the way in, embeddings are multiplied by √width (section 3.4), so that their size is 1. On the way out they
        are not, so that the logits of a fresh model are of size 1 too.
        """
        for module in self.modules():
            if isinstance(module, SelfAttention | CrossAttention | FeedForward | LearnedPositions):
                module.reset_parameters()
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.config.width**-0.5)
                nn.init.zeros_(module.weight[PAD])
        if self.output is not None:
            nn.init.normal_(self.output.weight, std=self.config.width**-0.5)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.output_weight.device

    @property
    def output_weight(self) -> Tensor:
        """The matrix of `project`, (target_vocabulary, width); depending on `tie` also that of the embeddings."""
        return self._target_embedding.weight if self.output is None else self.output.weight

    @property
    def embeddings(self) -> tuple[nn.Embedding, nn.Embedding]:
        """The source and target embeddings; the same one with `tie=all`."""
        return self.source_embedding, self._target_embedding

    @property
    def max_target_length(self) -> int | None:
        """Number of target positions, BOS included; None for no limit."""
        return self.config.max_length if self.config.positions == "learned" else None

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Ids (batch, source) and (batch, target) to logits (batch, target, target_vocabulary)."""
        return self.project(self.states(source, target_in))

    def states(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Ids (batch, source) and (batch, target), all known, to the decoder's states (batch, target, width)."""
        return self.decode(target_in, self.encode(source))

    def embed_source(self, source: Tensor) -> Tensor:
        """Ids (batch, source) to what the first layer of the encoder reads, (batch, source, width)."""
        return self._embed(self.source_embedding, self.source_positions, source, 0, source.shape[1])

    def encode(
        self, source: Tensor, *, embedded: Tensor | None = None, record: list[Tensor] | None = None
    ) -> Memory:
        """Ids (batch, source) to the encoder's states.

        Args:
            embedded: what `embed_source` made of them, where its gradient is to be taken.
            record: to which the attention weights of each layer are appended.
        """
        states = self.embed_source(source) if embedded is None else embedded
        rotation = self.rotation(0, source.shape[1])
        # Checking for padding is free on the CPU; on a GPU the host would have to wait for the answer.
        unpadded = source.device.type == "cpu" and bool((source != PAD).all())
        mask = None if unpadded else padding_mask(source, states.dtype)
        for layer in self._encoder_layers:
            states = layer(states, mask=mask, rotation=rotation, record=record)
        return Memory(self.encoder_norm(states), mask)

    def decode(self, target_in: Tensor, memory: Memory, *, record: list[Tensor] | None = None) -> Tensor:
        """Ids (batch, target), all known, to states (batch, target, width); each position sees no later one.

        Target padding needs no mask: it is on the right, where no token attends. Each layer appends to
        `record` the weights of its self-attention and of its cross-attention.
        """
        length = target_in.shape[1]
        states = self._embed(self._target_embedding, self.target_positions, target_in, 0, length)
        rotation = self.rotation(0, length)
        for layer in self._decoder_layers:
            states = layer(states, memory.states, memory_mask=memory.mask, rotation=rotation, record=record)
        return self.decoder_norm(states)

    def start(self, memory: Memory, *, beam_size: int) -> DecoderCache:
        """An empty cache for `step`, with the cross-attention's keys and values computed."""
        layers = [
            LayerStep(
                layer.self_attention,
                layer.cross_attention,
                layer.feed_forward,
                (layer.attention_residual, layer.cross_residual, layer.feed_forward_residual),
                cross=layer.cross_attention.project_kv(memory.states),
            )
            for layer in self._decoder_layers
        ]
        return DecoderCache(layers, memory.mask, beam_size=beam_size)

    def step(self, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """`decode` for one more position, without dropout: the newest ids (batch, beam) to states (batch, beam, width).

        Every layer treats the beam as the length of a sequence: the hypotheses share the keys of their sentence, and
        the cache's mask shows each of them only its own past.
        """
        position = cache.length
        states = self._embed(self._target_embedding, self.target_positions, tokens, position, 1)
        return self.decoder_norm(cache.advance(states, self.rotation(position, 1)))

    def rotation(self, start: int, length: int) -> Rotation | None:
        """Of positions start to start + length; None without rotary positions."""
        return None if self.rotary is None else self.rotary(start, length)

    def project(self, states: Tensor) -> Tensor:
        """States (..., width) to logits (..., target_vocabulary)."""
        return linear(states, self.output_weight)

    @torch.no_grad()
    def attention_maps(self, source: Tensor, target_in: Tensor) -> AttentionMaps:
        """All attention weights of one forward pass, to be shown; call it in evaluation mode."""
        encoder: list[Tensor] = []
        decoder: list[Tensor] = []
        self.decode(target_in, self.encode(source, record=encoder), record=decoder)
        return AttentionMaps(*map(torch.stack, (encoder, decoder[0::2], decoder[1::2])))

    @property
    def _encoder_layers(self) -> Iterable["EncoderLayer"]:
        return cast(Iterable[EncoderLayer], self.encoder)

    @property
    def _decoder_layers(self) -> Iterable["DecoderLayer"]:
        return cast(Iterable[DecoderLayer], self.decoder)

    @property
    def _target_embedding(self) -> nn.Embedding:
        return self.source_embedding if self.target_embedding is None else self.target_embedding

    def _embed(
        self, embedding: nn.Embedding, positions: nn.Module | None, ids: Tensor, start: int, length: int
    ) -> Tensor:
        """Ids (batch, any) to states (batch, any, width), at positions start to start + length.

        `length` is that of the ids, or 1 if they all share one position.
        """
        states = embedding(ids) * self.config.width**0.5
        if positions is not None:
            states = states + positions(start, length)
        return self.embedding_dropout(_as_autocast(states))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each within a residual connection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = _self_attention(config)
        self.feed_forward = _feed_forward(config)
        self.attention_residual = _residual(config)
        self.feed_forward_residual = _residual(config)

    def forward(
        self,
        states: Tensor,
        *,
        mask: Tensor | None,
        rotation: Rotation | None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """States (batch, source, width) in and out."""
        states = self.attention_residual(
            states, partial(self.self_attention, mask=mask, rotation=rotation, record=record)
        )
        return self.feed_forward_residual(states, self.feed_forward)


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention, feed-forward, each within a residual connection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = _self_attention(config)
        self.cross_attention = CrossAttention(
            width=config.width, num_heads=config.num_heads, dropout=config.attention_dropout
        )
        self.feed_forward = _feed_forward(config)
        self.attention_residual = _residual(config)
        self.cross_residual = _residual(config)
        self.feed_forward_residual = _residual(config)

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        *,
        memory_mask: Tensor | None,
        rotation: Rotation | None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """States (batch, target, width) in and out; `memory` is the encoder's states (batch, source, width)."""
        states = self.attention_residual(
            states,
            partial(self.self_attention, causal=True, rotation=rotation, record=record),
        )
        states = self.cross_residual(
            states,
            partial(self.cross_attention, memory=memory, mask=memory_mask, record=record),
        )
        return self.feed_forward_residual(states, self.feed_forward)


def _self_attention(config: ModelConfig) -> SelfAttention:
    return SelfAttention(width=config.width, num_heads=config.num_heads, dropout=config.attention_dropout)


def _feed_forward(config: ModelConfig) -> FeedForward:
    return FeedForward(
        width=config.width,
        feed_forward=config.feed_forward,
        activation=config.activation,
        dropout=config.activation_dropout,
    )


def _residual(config: ModelConfig) -> Residual:
    return Residual(width=config.width, norm=config.norm, dropout=config.dropout)


def _as_autocast(states: Tensor) -> Tensor:
    """Under autocast on a CPU the residual stream has its type too; otherwise every sublayer would convert it."""
    if states.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        return states.to(torch.get_autocast_dtype("cpu"))
    return states


def _absolute_positions(config: ModelConfig) -> nn.Module | None:
    """The module whose vectors are added to the embeddings; None for rotary positions."""
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.width)
    if config.positions == "learned":
        return LearnedPositions(config.width, config.max_length)
    return None
