"""Translations drawn at random, token by token, with the probabilities that the model gives them: ids in, ids out.

What beam search finds is the most probable, and the same each time; what is drawn here is as various as the model
thinks translations are. That is wanted for synthetic sources (back-translation: Edunov et al. 2018) and for candidates
of minimum Bayes risk (Eikema & Aziz 2020). Knows the same of a model as `beam_search`.

Shapes: batch = sentences in work; draws = translations of one sentence.
"""

import torch
from torch import Tensor

from endeavour.decoding.beam_search import DONE_SHARE, Hypothesis, length_limits
from endeavour.decoding.config import SamplingConfig
from endeavour.decoding.model import Model
from endeavour.special import BOS, EOS, PAD


@torch.inference_mode()
def sample(
    model: Model,
    source: Tensor,
    *,
    num_hypotheses: int,
    sampling: SamplingConfig,
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
        generator: on the same device; what is drawn is a matter of its state and of the batch.
        length_penalty, max_length_ratio, max_length_offset: as of `beam_search`.
    """
    assert not model.training, "decoding with dropout: call model.eval() first"
    results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    if not results:
        return results
    device, shape = source.device, (len(source), num_hypotheses)
    limits = torch.tensor(length_limits(model, source, max_length_ratio, max_length_offset), device=device)
    rows = torch.arange(len(source), device=device)
    drawn = torch.full((*shape, 1), BOS, device=device)
    log_probabilities = torch.zeros(shape, device=device)
    ended = torch.zeros(shape, dtype=torch.bool, device=device)
    cache = model.start(model.encode(source), beam_size=num_hypotheses)
    while len(rows):
        logits = model.project(model.step(drawn[:, :, -1], cache)).float()
        tokens = _draw(logits, sampling, generator)
        at_limit = (limits == drawn.shape[2] - 1)[:, None]
        tokens = tokens.masked_fill(at_limit, EOS).masked_fill(ended, PAD)
        price = logits.log_softmax(dim=-1).gather(2, tokens[:, :, None]).squeeze(2)
        log_probabilities += price.masked_fill(ended, 0.0)
        drawn = torch.cat([drawn, tokens[:, :, None]], dim=2)
        ended |= tokens == EOS
        done = ended.all(dim=1)
        if done.sum() >= DONE_SHARE * len(done):
            finished = (column[done].tolist() for column in (rows, drawn, log_probabilities))
            for row, ids, prices in zip(*finished, strict=True):
                results[row] = _ranked(ids, prices, length_penalty)
            remaining = (~done).nonzero().squeeze(1)
            rows, limits, drawn, log_probabilities, ended = (
                column.index_select(0, remaining)
                for column in (rows, limits, drawn, log_probabilities, ended)
            )
            cache.select(remaining)
    return results


def truncated(logits: Tensor, sampling: SamplingConfig) -> Tensor:
    """Probabilities (..., vocabulary) of the tokens that may be drawn: they add up to 1, the others are 0.

    First the logits are divided by the temperature; then the `top_k` most probable stay (Fan et al. 2018), and of
    these what has a probability of `epsilon` or more (Hewitt et al. 2022), or the most probable one.
    """
    logits = logits / sampling.temperature
    logits[..., PAD] = logits[..., BOS] = -torch.inf
    if sampling.top_k is not None:
        least = logits.topk(min(sampling.top_k, logits.shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    probabilities = logits.softmax(dim=-1)
    if sampling.epsilon:
        least = probabilities.amax(dim=-1, keepdim=True).clamp(max=sampling.epsilon)
        probabilities = probabilities.masked_fill(probabilities < least, 0.0)
        probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    return probabilities


def _draw(logits: Tensor, sampling: SamplingConfig, generator: torch.Generator) -> Tensor:
    """One token each: (batch, draws, vocabulary) → (batch, draws)."""
    probabilities = truncated(logits, sampling)
    return torch.multinomial(probabilities.flatten(0, 1), 1, generator=generator).view(
        probabilities.shape[:2]
    )


def _ranked(drawn: list[list[int]], log_probabilities: list[float], alpha: float) -> list[Hypothesis]:
    """The draws of one sentence, with BOS and all that follows EOS, as hypotheses."""
    found: list[Hypothesis] = []
    for ids, log_probability in zip(drawn, log_probabilities, strict=True):
        end = ids.index(EOS)
        score = log_probability / ((5.0 + end) / 6.0) ** alpha  # end is the length, EOS counted and BOS not
        found.append(Hypothesis(ids[1:end], score, log_probability))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)
