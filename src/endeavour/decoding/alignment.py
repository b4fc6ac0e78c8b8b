"""Which source pieces a model attends to while it writes a translation.

Knows a model, tokenizers and one sentence pair; not how the weights are shown.
"""

import torch

from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizers
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS


def attention_picture(
    model: Transformer, tokenizers: Tokenizers, source: str, hypothesis: str
) -> tuple[list[str], list[str], list[list[float]]]:
    """Cross-attention of the last layer, averaged over its heads, of a sentence and its translation.

    Returns:
        Source pieces, target pieces, and for each target piece its weights over the source pieces.
    """
    source_ids = [*tokenizers[0].encode([normalize(source)])[0], EOS]
    target_ids = [*tokenizers[1].encode([normalize(hypothesis)])[0], EOS]
    device = model.output_weight.device
    batch = torch.tensor([source_ids], device=device)
    # Position i of the decoder's input is what position i of its output was predicted from.
    target_in = torch.tensor([[BOS, *target_ids[:-1]]], device=device)
    weights = model.attention_maps(batch, target_in).cross[-1].mean(dim=1)[0]
    pieces = tokenizers[0].pieces(source_ids), tokenizers[1].pieces(target_ids)
    return *pieces, weights.tolist()
