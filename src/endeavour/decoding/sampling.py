"""Translations drawn at random, token by token, with the probabilities that the model gives them: ids in, ids out.

What beam search finds is the most probable, and the same each time; what is drawn here is as various as the model
thinks translations are. That is wanted for synthetic sources (back-translation: Edunov et al. 2018) and for candidates
of minimum Bayes risk (Eikema & Aziz 2020). Knows the same of a model as `beam_search`.

Shapes: batch = sentences; draws = translations of all of them that are in work.
"""

import torch
from torch import Tensor

from endeavour.decoding.beam_search import DONE_SHARE, Hypothesis, length_limits
from endeavour.decoding.engine import length_penalty as penalty
from endeavour.decoding.model import Model
from endeavour.special import BOS, EOS, PAD


@torch.inference_mode()
def sample(
    model: Model,
    source: Tensor,
    *,
    num_hypotheses: int,
    temperature: float,
    top_k: int | None,
    epsilon: float,
    generator: torch.Generator,
    length_penalty: float,
    max_length_ratio: float,
    max_length_offset: int,
) -> list[list[Hypothesis]]:
    """`num_hypotheses` translations of each sentence, each drawn by itself, the one of the highest score first.

    PAD and BOS are never drawn. A translation as long as its limit is ended, at the price that the model sets on EOS.
    Log-probabilities are the model's own, whatever temperature and truncation made of them.

    Args:
        model: in evaluation mode.
        source: (batch, source) ids, rows ending in EOS, PAD on the right, on the model's device.
        temperature, top_k, epsilon: see `truncated`.
        generator: on the same device; what is drawn is a matter of its state and of the batch.
        length_penalty, max_length_ratio, max_length_offset: as of `beam_search`.
    """
    assert not model.training, "decoding with dropout: call model.eval() first"
    results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    if not results:
        return results
    device = source.device
    # Each draw is a row of its own, as if it were a beam of one: draws have no past in common.
    sentences = torch.arange(len(source), device=device).repeat_interleave(num_hypotheses)
    limits = torch.tensor(length_limits(model, source, max_length_ratio, max_length_offset), device=device)
    limits = limits[sentences]
    drawn = torch.full((len(sentences), 1), BOS, device=device)
    log_probabilities = torch.zeros(len(sentences), device=device)
    ended = torch.zeros(len(sentences), dtype=torch.bool, device=device)
    cache = model.start(model.encode(source), beam_size=1)
    cache.select(sentences)
    while len(sentences):
        logits = model.project(model.step(drawn[:, -1:], cache)).float().squeeze(1)
        probabilities = truncated(logits, temperature=temperature, top_k=top_k, epsilon=epsilon)
        tokens = torch.multinomial(probabilities, 1, generator=generator).squeeze(1)
        tokens = tokens.masked_fill(limits == drawn.shape[1] - 1, EOS).masked_fill(ended, PAD)
        prices = logits.log_softmax(dim=-1).gather(1, tokens[:, None]).squeeze(1)
        log_probabilities += prices.masked_fill(ended, 0.0)
        drawn = torch.cat([drawn, tokens[:, None]], dim=1)
        ended |= tokens == EOS
        if ended.sum() >= DONE_SHARE * len(ended):
            columns = (sentences, drawn, log_probabilities)
            for sentence, ids, log_probability in zip(*(c[ended].tolist() for c in columns), strict=True):
                results[sentence].append(_hypothesis(ids, log_probability, length_penalty))
            remaining = (~ended).nonzero().squeeze(1)
            sentences, limits, drawn, log_probabilities, ended = (
                column[remaining] for column in (sentences, limits, drawn, log_probabilities, ended)
            )
            cache.select(remaining)
    return [sorted(found, key=lambda one: (-one.score, one.ids)) for found in results]


def truncated(logits: Tensor, *, temperature: float, top_k: int | None, epsilon: float) -> Tensor:
    """Probabilities (..., vocabulary) of the tokens that may be drawn: they add up to 1, the others are 0.

    Of what is not PAD or BOS the `top_k` most probable stay (Fan et al. 2018), and of these what then has a
    probability of `epsilon` or more, or the most probable one (Hewitt et al. 2022). The logits of what stayed are
    divided by the temperature.
    """
    logits = logits.clone()
    logits[..., PAD] = logits[..., BOS] = -torch.inf
    if top_k is not None:
        kept = logits.topk(min(top_k, logits.shape[-1]))  # no more, though in bf16 many are equal
        logits = torch.full_like(logits, -torch.inf).scatter_(-1, kept.indices, kept.values)
    if epsilon:
        probabilities = logits.softmax(dim=-1)
        least = probabilities.amax(dim=-1, keepdim=True).clamp(max=epsilon)
        logits.masked_fill_(probabilities < least, -torch.inf)
    logits -= logits.amax(dim=-1, keepdim=True)  # so that nothing overflows, however low the temperature
    return (logits / temperature).softmax(dim=-1)


def _hypothesis(drawn: list[int], log_probability: float, alpha: float) -> Hypothesis:
    """Of one draw, with BOS and all that follows EOS."""
    end = drawn.index(EOS)  # the length, EOS counted and BOS not
    return Hypothesis(drawn[1:end], log_probability / penalty(end, alpha), log_probability)
