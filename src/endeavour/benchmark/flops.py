"""How many floating-point operations an update of the Transformer needs. Pure: lengths and sizes in, a number out.

Counted are the matrix products of the model, a multiply-add as two operations and the backward pass as twice
the forward one (Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1), with the
products of attention in full, causal or not (Chowdhery et al. 2022, "PaLM", appendix B), and the vocabulary
projection. Padding, softmax, norms, embeddings, dropout and the optimizer are not counted: a toolkit that
pads more or recomputes gets no credit for it.
"""

import numpy as np
from numpy.typing import NDArray

from endeavour.model.config import ModelConfig
from endeavour.model.layers import GATED


def update_flop(
    config: ModelConfig,
    source_lengths: NDArray[np.int32],
    target_lengths: NDArray[np.int32],
    *,
    target_vocabulary: int,
) -> int:
    """Floating-point operations of one forward and backward pass over sentence pairs of these lengths.

    Args:
        source_lengths, target_lengths: (pairs), EOS included.
    """
    source, target = source_lengths.astype(np.int64), target_lengths.astype(np.int64)
    width = config.width
    square = width * width
    feed_forward = (3 if config.activation in GATED else 2) * width * config.feed_forward
    source_tokens, target_tokens = int(source.sum()), int(target.sum())
    # Multiply-adds. Query, key, value and output maps are 4 · width² a token; the scores and the weighted sum
    # of the values are 2 · width for each pair of positions.
    encoder_layer = source_tokens * (4 * square + feed_forward) + 2 * width * int((source * source).sum())
    self_attention = target_tokens * 4 * square + 2 * width * int((target * target).sum())
    cross_attention = (target_tokens + source_tokens) * 2 * square + 2 * width * int((source * target).sum())
    decoder_layer = self_attention + cross_attention + target_tokens * feed_forward
    projection = target_tokens * width * target_vocabulary
    forward = 2 * (config.encoder_layers * encoder_layer + config.decoder_layers * decoder_layer + projection)
    return 3 * forward
