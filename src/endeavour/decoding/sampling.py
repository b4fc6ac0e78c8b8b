"""Translations drawn from the model's own distribution: ids in, ids out.

Knows the model's `encode`, `start`, `step` and `project`; not text, files, batching or scores.

Ancestral sampling: each token is drawn with the probability that the model gives it after those before it.
Epsilon sampling (Hewitt et al. 2022, "Truncation sampling as language model desmoothing", section 4.1) first
strikes out the tokens that are less probable than ε, all but the most probable one, for a model spreads some
mass over the whole vocabulary, and a long sentence would nearly always hold a slip. PAD and BOS are never drawn;
a sample as long as its limit ends there. The log-probability that comes back is the model's own, nothing struck
out, of all ids and EOS: the same measure as a beam search's.

The random numbers of a sentence are a function of the seed and the source's ids alone. So its samples are the
same alone, in any batch and in any order, up to rounding: a sum taken in another order can move the border
between two tokens by some 1e-7, and so, as rarely, a draw from one to the other.

Shapes: batch = sentences; rows = samples in work, each a sentence of its own to the model.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from endeavour.decoding.beam_search import DONE_SHARE, Hypothesis, length_limits
from endeavour.decoding.config import check_samples
from endeavour.decoding.engine import length_penalty as penalty_of
from endeavour.decoding.model import Model
from endeavour.special import BOS, EOS, PAD


@torch.inference_mode()
def sample(
    model: Model,
    source: Tensor,
    *,
    num_samples: int,
    epsilon: float,
    seed: int,
    length_penalty: float,
    max_length_ratio: float,
    max_length_offset: int,
) -> list[list[Hypothesis]]:
    """So many translations of each sentence, drawn independently of each other; those drawn twice stand twice.

    Args:
        model: in evaluation mode.
        source: (batch, source) ids, rows ending in EOS, PAD on the right, on the model's device.
        epsilon: tokens below this probability are not drawn; 0 is plain ancestral sampling.
        seed: not negative.
        length_penalty, max_length_ratio, max_length_offset: as in `beam_search`.

    Returns:
        For each sentence its samples, the highest score first.
    Raises:
        UserError: for numbers with which nothing can be drawn.
    """
    check_samples(num_samples, epsilon)
    assert not model.training, "decoding with dropout: call model.eval() first"
    if not len(source):
        return []
    limits = length_limits(model, source, max_length_ratio, max_length_offset)
    found = _draw(model, source, limits, num_samples=num_samples, epsilon=epsilon, seed=seed)
    samples = [
        Hypothesis(ids, log_probability / penalty_of(len(ids) + 1, length_penalty), log_probability)
        for ids, log_probability in found
    ]
    return [
        sorted(samples[start : start + num_samples], key=lambda one: -one.score)
        for start in range(0, len(samples), num_samples)
    ]


def _draw(
    model: Model, source: Tensor, limits: list[int], *, num_samples: int, epsilon: float, seed: int
) -> list[tuple[list[int], float]]:
    """Ids without BOS and EOS and their log-probability, of `num_samples` rows for each sentence in turn."""
    device = source.device
    numbers = _random_numbers(source, limits, num_samples, seed).to(device)
    count = len(limits) * num_samples
    rows = torch.arange(count, device=device)
    """Which sample each row in work is."""
    results: list[tuple[list[int], float]] = [([], 0.0)] * count
    most = torch.tensor(limits, device=device).repeat_interleave(num_samples)
    sequences = torch.full((count, 1), BOS, device=device)
    sums = torch.zeros(count, device=device)
    # Samples never change places, so each is a row: those of a beam would all have to wait for the longest.
    cache = model.start(model.encode(source), beam_size=1)
    cache.select(torch.arange(len(limits), device=device).repeat_interleave(num_samples))
    while len(rows):
        step = sequences.shape[1] - 1
        logits = model.project(model.step(sequences[:, -1:], cache)).squeeze(1)
        log_probabilities = logits.float().log_softmax(dim=-1)
        tokens = _choose(log_probabilities.exp(), numbers[rows, step], epsilon)
        # What already ended stays as it is until it leaves.
        ended = (sequences[:, -1] == EOS) | (sequences[:, -1] == PAD)
        tokens = tokens.masked_fill(most == step, EOS).masked_fill(ended, PAD)
        new = log_probabilities.gather(1, tokens[:, None]).squeeze(1)
        sums = sums + new.masked_fill(ended, 0.0)
        sequences = torch.cat([sequences, tokens[:, None]], dim=1)
        done = ended | (tokens == EOS)
        if done.sum() < DONE_SHARE * len(done):
            continue
        leaving = (rows[done].tolist(), sequences[done].tolist(), sums[done].tolist())
        for row, ids, log_probability in zip(*leaving, strict=True):
            results[row] = (ids[1 : ids.index(EOS)], log_probability)
        remaining = (~done).nonzero().squeeze(1)
        rows, most, sequences, sums = (part[remaining] for part in (rows, most, sequences, sums))
        cache.select(remaining)
    return results


def _random_numbers(source: Tensor, limits: Sequence[int], num_samples: int, seed: int) -> Tensor:
    """(batch × samples, longest limit + 1), from 0 to below 1: one for each token that may have to be drawn."""
    numbers = np.zeros((len(limits), num_samples, max(limits) + 1), np.float32)
    for row, limit, ids in zip(numbers, limits, source.tolist(), strict=True):
        generator = np.random.default_rng((seed, *(number for number in ids if number != PAD)))
        row[:, : limit + 1] = generator.random((num_samples, limit + 1), np.float32)
    return torch.from_numpy(numbers).flatten(0, 1)


def _choose(probabilities: Tensor, numbers: Tensor, epsilon: float) -> Tensor:
    """The token of each row at which the sum of its probabilities passes its random number.

    Args:
        probabilities: (rows, vocabulary), adding up to 1; altered.
        numbers: (rows), from 0 to below 1.
    """
    probabilities[:, [PAD, BOS]] = 0.0
    best = probabilities.argmax(dim=-1)
    probabilities.masked_fill_(probabilities < epsilon, 0.0)
    sums = probabilities.cumsum(dim=-1)
    passed = torch.searchsorted(sums, (numbers * sums[:, -1])[:, None], right=True)
    tokens = passed.clamp_(max=sums.shape[1] - 1)
    # Where all were struck out, or where rounding led past the last that was not, the most probable one.
    possible = probabilities.gather(1, tokens) > 0
    return torch.where(possible, tokens, best[:, None]).squeeze(1)
