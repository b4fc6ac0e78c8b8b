"""Sampling: translations drawn token by token from the model's distribution; ids in, ids out.

Beam search finds the most probable translations, the same ones each time; samples vary as much as the model expects
translations to vary. That serves synthetic sources (back-translation: Edunov et al. 2018) and candidates for minimum
Bayes risk (Eikema & Aziz 2020). Knows the same about a model as `beam_search`.

Shapes: batch = sentences; draws = unfinished translations of all sentences.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from endeavour.decoding.beam_search import DONE_SHARE, STEPS_UNSEEN, NoProbabilities
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.length_penalty import length_penalty
from endeavour.decoding.model import Model
from endeavour.special import BOS, EOS, PAD


@torch.inference_mode()
def sample(
    model: Model,
    source: Tensor,
    limits: Sequence[int],
    *,
    num_hypotheses: int,
    temperature: float,
    top_k: int | None,
    epsilon: float,
    generator: torch.Generator,
    alpha: float,
) -> list[list[Hypothesis]]:
    """`num_hypotheses` translations of each sentence, drawn independently, in the order drawn.

    PAD and BOS are never drawn. A translation as long as its limit ends, with the probability of EOS there.
    Log-probabilities are those of the model before temperature and truncation.

    Args:
        model: in evaluation mode.
        source: (batch, source) ids, rows ending in EOS, PAD on the right, on the model's device.
        temperature, top_k, epsilon: see `truncated`.
        generator: on the same device; the samples depend on its state and on the batch.
        limits, alpha: see `beam_search`.
    """
    assert not model.training, "decoding with dropout: call model.eval() first"
    results: list[dict[int, Hypothesis]] = [{} for _ in range(len(source))]
    if not results:
        return []
    device = source.device
    # Each sample is a row of its own, like a beam of one, because samples share no past.
    samples = torch.arange(len(source) * num_hypotheses, device=device)
    limit = torch.tensor(limits, device=device).repeat_interleave(num_hypotheses)
    drawn = torch.full((len(samples), 1), BOS, device=device)
    log_probabilities = torch.zeros(len(samples), device=device)
    ended = torch.zeros(len(samples), dtype=torch.bool, device=device)
    cache = model.start(model.encode(source), beam_size=1)
    cache.select(samples // num_hypotheses)
    unseen = STEPS_UNSEEN.get(device.type, 1)
    while len(samples):
        logits = model.project(model.step(drawn[:, -1:], cache)).float().squeeze(1)
        probabilities = truncated(logits, temperature=temperature, top_k=top_k, epsilon=epsilon)
        # Where there are none, something is drawn, and its log-probability says so.
        probabilities.nan_to_num_(nan=1.0)
        tokens = torch.multinomial(probabilities, 1, generator=generator).squeeze(1)
        tokens = tokens.masked_fill(limit == drawn.shape[1] - 1, EOS).masked_fill(ended, PAD)
        token_log_probabilities = logits.log_softmax(dim=-1).gather(1, tokens[:, None]).squeeze(1)
        log_probabilities += token_log_probabilities.masked_fill(ended, 0.0)
        drawn = torch.cat([drawn, tokens[:, None]], dim=1)
        ended |= tokens == EOS
        generated = drawn.shape[1] - 1
        if generated % unseen and generated <= max(limits):
            continue
        if ended.sum() >= DONE_SHARE * len(ended):
            columns = (samples, drawn, log_probabilities)
            for number, ids, log_probability in zip(*(c[ended].tolist() for c in columns), strict=True):
                results[number // num_hypotheses][number] = _hypothesis(ids, log_probability, alpha)
            remaining = (~ended).nonzero().squeeze(1)
            samples, limit, drawn, log_probabilities, ended = (
                column[remaining] for column in (samples, limit, drawn, log_probabilities, ended)
            )
            cache.select(remaining)
    return [[found[number] for number in sorted(found)] for found in results]


def truncated(logits: Tensor, *, temperature: float, top_k: int | None, epsilon: float) -> Tensor:
    """Probabilities (..., vocabulary) to draw from: those of the allowed tokens add up to 1, the others are 0.

    Except for PAD and BOS, the `top_k` most probable tokens stay (Fan et al. 2018), and of these the ones with a
    probability of at least `epsilon`, or the most probable one (Hewitt et al. 2022). The logits of the remaining tokens
    are divided by the temperature.
    """
    logits = logits.clone()
    logits[..., PAD] = logits[..., BOS] = -torch.inf
    if top_k is not None:
        kept = logits.topk(min(top_k, logits.shape[-1]))  # exactly that many, although in bf16 many are equal
        logits = torch.full_like(logits, -torch.inf).scatter_(-1, kept.indices, kept.values)
    if epsilon:
        probabilities = logits.softmax(dim=-1)
        least = probabilities.amax(dim=-1, keepdim=True).clamp(max=epsilon)
        logits.masked_fill_(probabilities < least, -torch.inf)
    logits -= logits.amax(dim=-1, keepdim=True)  # so that nothing overflows, however low the temperature
    return (logits / temperature).softmax(dim=-1)


def _hypothesis(drawn: list[int], log_probability: float, alpha: float) -> Hypothesis:
    """The hypothesis of one sample, which still has BOS and what follows EOS."""
    if math.isnan(log_probability):
        raise NoProbabilities
    end = drawn.index(EOS)  # the length, counting EOS but not BOS
    return Hypothesis(drawn[1:end], log_probability / length_penalty(end, alpha), log_probability)
