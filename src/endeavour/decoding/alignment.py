"""Where a model looks while it writes a translation: attention of all kinds, saliency, and which words belong together.

Knows a model, tokenizers and one sentence pair; not how the weights are shown.

Shapes: layers, heads as in the model; source counts EOS; target counts the tokens and EOS, and row i of it is the
position from which token i is predicted.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from endeavour.data.protection import restore
from endeavour.data.tokenizer import Tokenizer, Tokenizers
from endeavour.decoding.translator import Part, part_of_pair
from endeavour.model.transformer import AttentionMaps, Transformer
from endeavour.special import BOS, EOS

PLACES_AT_ONCE = 8  # of the target, of which `saliency` keeps all activations for a backward pass


def attention(model: Transformer, source: Sequence[int], target: Sequence[int]) -> AttentionMaps:
    """The attention of a pair, on the CPU and without the dimension of the batch.

    Encoder: (layers, heads, source, source); decoder: (layers, heads, target, target), whose keys are BOS and the
    tokens; cross: (layers, heads, target, source).

    Args:
        model: in evaluation mode.
        source: ids, ending in EOS.
        target: ids, without BOS and EOS.
    """
    device = model.device
    pair = torch.tensor([source], device=device), torch.tensor([[BOS, *target]], device=device)
    return AttentionMaps(*(maps.squeeze(1).float().cpu() for maps in model.attention_maps(*pair)))


def saliency(model: Transformer, source: Sequence[int], target: Sequence[int]) -> Tensor:
    """How much each source token matters to each target token, (target, source); the rows add up to 1.

    The size of gradient × input: |Σ gradient of log p(token) · embedding|, over the embedding's components (Denil et
    al. 2014, "Extraction of Salient Sentences from Labelled Documents"; in translation Ding et al. 2019,
    "Saliency-driven Word Alignment Interpretation"). The gradients of the weights are left alone.
    """
    with torch.inference_mode(False), torch.enable_grad():
        ids = source, [BOS, *target], [*target, EOS]
        source_ids, target_in, tokens = (torch.tensor(one, device=model.device) for one in ids)
        sizes = torch.cat(
            [
                _gradient_times_input(model, source_ids, target_in, tokens, places)
                for places in torch.arange(len(tokens), device=model.device).split(PLACES_AT_ONCE)
            ]
        )
    return sizes / sizes.sum(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)


def _gradient_times_input(
    model: Transformer, source: Tensor, target_in: Tensor, tokens: Tensor, places: Tensor
) -> Tensor:
    """What `saliency` is before rows are scaled, (places, source), for the tokens at some places of the target."""
    # One row for each token, so that one backward pass gives the gradients of all of them.
    source = source.expand(len(places), -1)
    embedded = model.embed_source(source).detach().requires_grad_()
    states = model.decode(target_in.expand(len(places), -1), model.encode(source, embedded=embedded))
    own = states[torch.arange(len(places), device=places.device), places]  # (places, width)
    log_probabilities = model.project(own).float().log_softmax(dim=-1)
    (gradient,) = torch.autograd.grad(log_probabilities.gather(1, tokens[places, None]).sum(), embedded)
    return (gradient * embedded.detach()).sum(dim=-1).abs().float().cpu()


def attention_picture(
    model: Transformer, tokenizers: Tokenizers, source: str, hypothesis: str
) -> tuple[list[str], list[str], list[list[float]]]:
    """Cross-attention of the last layer, averaged over its heads, of a sentence and its translation.

    Returns:
        Source pieces, target pieces, and for each target piece its weights over the source pieces.
    """
    source_ids, target_ids, _ = part_of_pair(tokenizers, source, hypothesis)
    weights = attention(model, source_ids, target_ids).cross[-1].mean(dim=0)
    pieces = tokenizers[0].pieces(source_ids), tokenizers[1].pieces([*target_ids, EOS])
    return *pieces, weights.tolist()


def align_words(
    cross: Tensor, source_words: Sequence[int], target_words: Sequence[int]
) -> list[tuple[int, int]]:
    """For each target word the source word to which most of its attention goes.

    The mean of the heads of the last layer but one, which agrees best with word alignments made by hand (Garg et al.
    2019, "Jointly Learning to Align and Translate with Transformer Models", section 4.2).

    Args:
        cross: (layers, heads, target, source), see `attention`.
        source_words, target_words: the number of the word that each piece, EOS aside, belongs to.

    Returns:
        (source word, target word) pairs, counted from 0, in the order of the target.
    """
    if not source_words:
        return []
    weights = cross[max(0, len(cross) - 2)].mean(dim=0)[: len(target_words), : len(source_words)]
    by_source = torch.zeros(len(target_words), max(source_words) + 1)
    by_source.index_add_(1, torch.tensor(source_words), weights)
    by_word = torch.zeros(max(target_words, default=-1) + 1, by_source.shape[1])
    by_word.index_add_(0, torch.tensor(target_words, dtype=torch.int64), by_source)
    return [(int(by_word[word].argmax()), word) for word in sorted(set(target_words))]


def align_translation(
    model: Transformer, tokenizers: Tokenizers, parts: Sequence[Part]
) -> list[tuple[int, int]]:
    """The words of a line and of its translation that belong together, see `align_words`; a tag is no word of it."""
    tag = len(tokenizers[0].tag)
    pairs: list[tuple[int, int]] = []
    begun = [0, 0]  # words of the parts before
    for part in parts:
        sides = zip(tokenizers, (part.source[tag:-1], part.target), strict=True)
        source_words, target_words = (words_of_pieces(tokenizer, ids, part.spans) for tokenizer, ids in sides)
        cross = attention(model, part.source, part.target).cross[..., tag:]
        found = align_words(cross, source_words, target_words)
        pairs += [(begun[0] + source, begun[1] + target) for source, target in found]
        begun[0] += max(source_words, default=-1) + 1
        begun[1] += max(target_words, default=-1) + 1
    return pairs


def words_of_pieces(tokenizer: Tokenizer, ids: Sequence[int], spans: Sequence[str]) -> list[int]:
    """The number, from 0, of the word that each piece belongs to, words being what spaces separate in the text.

    Args:
        spans: what the symbols stand for; of several words that one has the symbol belongs to the last.
    """
    texts = tokenizer.decode([ids[: end + 1] for end in range(len(ids))])
    placeholders = tokenizer.placeholders
    return [max(0, len(restore(text, spans, placeholders).split()) - 1) for text in texts]
