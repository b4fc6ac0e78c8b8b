"""Our weights in torch's modules."""

import torch
from torch import nn

from endeavour.model.attention import CrossAttention, SelfAttention
from endeavour.model.transformer import DecoderLayer, EncoderLayer, Transformer


@torch.no_grad()
def copy_layers(ours: Transformer, encoder: nn.TransformerEncoder, decoder: nn.TransformerDecoder) -> None:
    """Copies the weights of all layers; not those of the norms on top."""
    for stack, their_stack in ((ours.encoder, encoder), (ours.decoder, decoder)):
        for mine, other in zip(stack, their_stack.layers, strict=True):
            assert isinstance(mine, EncoderLayer | DecoderLayer)
            _copy_attention(mine.self_attention, other.self_attn)
            other.linear1.load_state_dict(mine.feed_forward.inner.state_dict())
            other.linear2.load_state_dict(mine.feed_forward.outer.state_dict())
            residuals = [mine.attention_residual, mine.feed_forward_residual]
            if isinstance(mine, DecoderLayer):
                _copy_attention(mine.cross_attention, other.multihead_attn)
                residuals.insert(1, mine.cross_residual)
            for number, residual in enumerate(residuals, start=1):
                getattr(other, f"norm{number}").load_state_dict(residual.norm.state_dict())


def _copy_attention(ours: SelfAttention | CrossAttention, theirs: nn.MultiheadAttention) -> None:
    fused = [ours.input] if isinstance(ours, SelfAttention) else [ours.query, ours.memory]
    assert theirs.in_proj_bias is not None
    theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in fused]))
    theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in fused]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())
