"""Sampling: translations drawn token by token from the model's distribution; ids in, ids out.

Beam search finds the most probable translations, the same ones each time; samples vary as much as the model expects
translations to vary. That serves synthetic sources (back-translation: Edunov et al. 2018) and candidates for minimum
Bayes risk (Eikema & Aziz 2020). Knows the same about a model as `beam_search`.

Shapes: batch = sentences; draws = unfinished translations of all sentences.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from endeavour.decoding.beam_search import DONE_SHARE, STEPS_UNSEEN, NoProbabilities
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.length_penalty import length_penalty
from endeavour.decoding.model import Model
from endeavour.special import BOS, EOS, PAD


class _Draws(NamedTuple):
    """Samples that are not finished, or not yet taken out: a row each, like a beam of one, because they share no past.

    Attributes:
        numbers: (draws,) which they are of all.
        limits: (draws,) tokens that they may have.
        ids: (draws, tokens so far), from BOS on.
        log_probabilities: (draws,) so far.
        ended: (draws,) whether they have EOS; PAD follows it.
    """

    numbers: Tensor
    limits: Tensor
    ids: Tensor
    log_probabilities: Tensor
    ended: Tensor

    def select(self, rows: Tensor) -> "_Draws":
        return _Draws(*(column[rows] for column in self))

    def extended(self, tokens: Tensor, logits: Tensor) -> "_Draws":
        """With the next tokens drawn, (draws,), which EOS or PAD replaces where a sample must end or has ended.

        Args:
            logits: (draws, vocabulary) the model's.
        """
        tokens = tokens.masked_fill(self.limits == self.ids.shape[1] - 1, EOS).masked_fill(self.ended, PAD)
        log_probabilities = logits.log_softmax(dim=-1).gather(1, tokens[:, None]).squeeze(1)
        return self._replace(
            ids=torch.cat([self.ids, tokens[:, None]], dim=1),
            log_probabilities=self.log_probabilities + log_probabilities.masked_fill(self.ended, 0.0),
            ended=self.ended | (tokens == EOS),
        )


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
    count = len(source) * num_hypotheses
    draws = _Draws(
        numbers=torch.arange(count, device=device),
        limits=torch.tensor(limits, device=device).repeat_interleave(num_hypotheses),
        ids=torch.full((count, 1), BOS, device=device),
        log_probabilities=torch.zeros(count, device=device),
        ended=torch.zeros(count, dtype=torch.bool, device=device),
    )
    cache = model.start(model.encode(source), beam_size=1)
    cache.select(draws.numbers // num_hypotheses)
    unseen = STEPS_UNSEEN.get(device.type, 1)
    while len(draws.numbers):
        logits = model.project(model.step(draws.ids[:, -1:], cache)).float().squeeze(1)
        probabilities = truncated(logits, temperature=temperature, top_k=top_k, epsilon=epsilon)
        # Where there are none, something is drawn, and its log-probability says so.
        probabilities.nan_to_num_(nan=1.0)
        draws = draws.extended(torch.multinomial(probabilities, 1, generator=generator).squeeze(1), logits)
        generated = draws.ids.shape[1] - 1
        if generated % unseen and generated <= max(limits):
            continue
        if draws.ended.sum() >= DONE_SHARE * len(draws.ended):
            done = draws.select(draws.ended.nonzero().squeeze(1))
            columns = (column.tolist() for column in (done.numbers, done.ids, done.log_probabilities))
            for number, ids, log_probability in zip(*columns, strict=True):
                results[number // num_hypotheses][number] = _hypothesis(ids, log_probability, alpha)
            remaining = (~draws.ended).nonzero().squeeze(1)
            draws = draws.select(remaining)
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
