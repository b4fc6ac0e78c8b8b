"""Beam search, of which greedy decoding is the case beam_size=1: ids in, ids out.

Knows the model's `encode`, `start`, `step` and `project`; not text, files, batching or metrics.

The search. At each step every live hypothesis of a sentence is extended by every token, and the `beam_size`
most probable extensions are kept; those that end in EOS are finished, the others live on. So beam 1 is greedy
decoding, whatever the length penalty. PAD and BOS are never generated. A hypothesis as long as its limit can
only end, with the probability of EOS there: each score belongs to a whole sentence.

Finished hypotheses are ranked by log-probability / length penalty. A sentence is done as soon as no live hypothesis
could enter its n best even if all its further tokens were certain: nothing is lost.

A prefix that is forced (`prefix`) leaves only the tokens that fit it. `on_step` sees each step.

Shapes: batch = unfinished sentences; beam = live hypotheses per sentence; best = finished ones kept per sentence.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.length_penalty import length_penalty
from endeavour.decoding.model import Model
from endeavour.decoding.prefix import ForcedPrefix
from endeavour.errors import UserError
from endeavour.special import BOS, EOS, PAD

# Finished sentences leave the batch once they are this share of it, because removing them copies the caches.
DONE_SHARE = 0.25
# So many steps are computed before the host waits to see which sentences are done, by type of device.
STEPS_UNSEEN = {"cpu": 1, "cuda": 4}
BLOCK = 64  # scores per block in `largest`
MANY_SCORES = 2**17  # from this many on, `largest` is faster than topk


class NoProbabilities(UserError):
    """A model's probabilities are not numbers."""

    def __init__(self) -> None:
        super().__init__(
            "the model gives no probabilities (NaN): training diverged\n"
            "in a new run (name=…) lower training.learning_rate or training.clip_norm, or raise training.warmup_updates"
        )


@torch.inference_mode()
def beam_search(
    model: Model,
    source: Tensor,
    limits: Sequence[int],
    *,
    beam_size: int,
    alpha: float,
    num_hypotheses: int,
    prefix: ForcedPrefix | None = None,
    on_step: Callable[[Tensor, Tensor, Tensor], None] | None = None,
    extra: int = 0,
) -> list[list[Hypothesis]]:
    """The n best translations of each sentence, best first.

    Args:
        model: in evaluation mode.
        source: (batch, source) ids, rows ending in EOS, PAD on the right, on the model's device.
        limits: the most tokens of each translation, not counting EOS, `engine.limit_of`.
        beam_size: hypotheses alive at a time; 1 is greedy decoding.
        alpha: α ≥ 0 of the length penalty; 0 ranks by log-probability, more favours longer translations.
        num_hypotheses: at most beam_size; fewer come back only where the limits allow no more.
        prefix: what the translation of a single sentence begins with; its limit is raised where that needs more.
        on_step: is given the best extensions of each step of a single sentence, as `_State.extend` returns them. What
            it raises ends the search.
        extra: how many `on_step` is given of those that found no place in the beam.
    """
    assert 1 <= num_hypotheses <= beam_size
    assert alpha >= 0
    assert len(limits) == len(source)
    assert len(source) == 1 or (prefix is None and on_step is None)
    assert not model.training, "decoding with dropout: call model.eval() first"
    results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    if not results:
        return results
    if prefix is not None:
        limits = [max(*limits, prefix.longest_within(model.max_target_length))]
    state = _State(
        limits, prefix, beam_size=beam_size, best=num_hypotheses, alpha=alpha, device=source.device
    )
    cache = model.start(model.encode(source), beam_size=beam_size)
    unseen = 1 if on_step is not None else STEPS_UNSEEN.get(source.device.type, 1)
    while len(state.rows):
        hidden = model.step(state.sequences[:, :, -1], cache)
        extensions = state.extend(model.project(hidden), extra)
        if on_step is not None:
            on_step(*extensions)
        scores, parents, tokens = (column[:, :beam_size] for column in extensions)
        state.update(scores, parents, tokens)
        cache.reorder(parents)
        if state.generated % unseen and state.generated <= max(state.limits_met):
            continue
        done = state.done()
        if done.sum() >= DONE_SHARE * len(done):
            state.read_out(done.nonzero().squeeze(1), results)
            remaining = (~done).nonzero().squeeze(1)
            state.select(remaining)
            cache.select(remaining)
    return results


class _State:
    """The live and the finished hypotheses of all unfinished sentences."""

    def __init__(
        self,
        limits: Sequence[int],
        prefix: ForcedPrefix | None,
        *,
        beam_size: int,
        best: int,
        alpha: float,
        device: torch.device,
    ) -> None:
        batch = len(limits)
        self.prefix = prefix
        self.alpha = alpha
        self.rows = torch.arange(batch, device=device)
        """The row of each sentence in the source, (batch)."""
        self.limits = torch.tensor(limits, device=device)
        self.limits_met = frozenset(limits)
        self.largest_penalties = length_penalty(self.limits + 1, alpha)
        self.sequences = torch.full((batch, beam_size, 1), BOS, device=device)
        """Live hypotheses with BOS, (batch, beam, 1 + tokens so far)."""
        self.live = torch.full((batch, beam_size), -torch.inf, device=device)
        """Their log-probabilities; -inf where there is no hypothesis. At first there is only the empty one."""
        self.live[:, 0] = 0.0
        self.best_sequences = torch.full((batch, best, 1), PAD, device=device)
        self.best_scores = torch.full((batch, best), -torch.inf, device=device)
        self.best_log_probabilities = torch.full((batch, best), -torch.inf, device=device)

    @property
    def generated(self) -> int:
        """Number of tokens of each live hypothesis; none of them has EOS."""
        return self.sequences.shape[2] - 1

    def extend(self, logits: Tensor, extra: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """The most probable extensions of each sentence's live hypotheses.

        Args:
            logits: (batch, beam, vocabulary), of the next token.
            extra: how many are returned beyond those for which the beam has room.

        Returns:
            Log-probabilities, parents (places in the beam) and tokens, each (batch, beam + extra), the best first.
        """
        log_probabilities = logits.float().log_softmax(dim=-1)
        for never in (PAD, BOS):
            log_probabilities.select(-1, never).fill_(-torch.inf)
        if self.prefix is not None:
            if log_probabilities.isnan().any():  # of which `restrict` would make an impossible prefix
                raise NoProbabilities
            self.prefix.restrict(log_probabilities[0], self.sequences[0, :, 1:])
        # The best of all extensions are among the best extensions of each hypothesis.
        beam = min(self.live.shape[1] + extra, self.live.shape[1] * logits.shape[-1])
        scores, tokens = largest(log_probabilities, min(beam, logits.shape[-1]))
        if self.generated in self.limits_met:  # these sentences can only end
            at_limit = (self.limits == self.generated)[:, None]
            ended = log_probabilities[..., EOS].where(at_limit, scores[..., 0])
            scores.masked_fill_(at_limit[..., None], -torch.inf)
            scores[..., 0] = ended
            tokens.masked_fill_(at_limit[..., None], EOS)
        each = scores.shape[-1]
        scores = (scores + self.live[:, :, None]).flatten(1)
        if scores.shape[1] == 1:  # greedily: nothing to choose from
            return scores, torch.zeros_like(tokens[:, 0]), tokens[:, 0]
        scores, index = scores.topk(beam, dim=-1)
        return scores, index // each, tokens.flatten(1).gather(1, index)

    def update(self, log_probabilities: Tensor, parents: Tensor, tokens: Tensor) -> None:
        """Adds the extensions, (batch, beam) each: finished ones may enter the best, the others live on."""
        past = self.sequences
        if past.shape[1] > 1:
            past = past.gather(1, parents[:, :, None].expand_as(past))
        self.sequences = torch.cat([past, tokens[:, :, None]], dim=2)
        ended = tokens == EOS
        # Asking saves a CPU the rest of most steps; on a GPU the host would have to wait for the answer.
        if ended.device.type == "cpu" and not ended.any():
            self.live = log_probabilities
            return
        self.live = log_probabilities.masked_fill(ended, -torch.inf)
        ended &= log_probabilities.isfinite()
        log_probabilities = log_probabilities.masked_fill(~ended, -torch.inf)
        scores = log_probabilities / length_penalty(self.generated, self.alpha)
        missing = self.sequences.shape[2] - self.best_sequences.shape[2]
        candidates = torch.cat(
            [functional.pad(self.best_sequences, (0, missing), value=PAD), self.sequences], dim=1
        )
        self.best_scores, index = torch.cat([self.best_scores, scores], dim=1).topk(self.best_scores.shape[1])
        self.best_log_probabilities = torch.cat(
            [self.best_log_probabilities, log_probabilities], dim=1
        ).gather(1, index)
        self.best_sequences = candidates.gather(1, index[:, :, None].expand(-1, -1, candidates.shape[2]))

    def done(self) -> Tensor:
        """(batch): no live hypothesis can still enter the best.

        Log-probabilities only fall and the penalty only grows, so none ends above its present log-probability divided
        by the penalty of the longest sentence allowed.
        """
        reachable = self.live.amax(dim=1) / self.largest_penalties
        return (self.best_scores[:, -1] >= reachable) | (self.generated > self.limits)

    def read_out(self, done: Tensor, results: list[list[Hypothesis]]) -> None:
        """Writes the best hypotheses of finished sentences, whose indices are `done`, to their rows of the results."""
        columns = (self.rows, self.best_sequences, self.best_scores, self.best_log_probabilities)
        for row, *best in zip(*(column.index_select(0, done).tolist() for column in columns), strict=True):
            results[row] = [
                Hypothesis(ids[1 : ids.index(EOS)], score, log_probability)
                for ids, score, log_probability in zip(*best, strict=True)
                if score > -torch.inf
            ]
            if not results[row]:
                if self.prefix is None:
                    raise NoProbabilities
                raise UserError("prefix: no pieces of this model's vocabulary spell it")

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences only."""
        for name in (
            "rows",
            "limits",
            "largest_penalties",
            "sequences",
            "live",
            "best_sequences",
            "best_scores",
            "best_log_probabilities",
        ):
            setattr(self, name, getattr(self, name).index_select(0, sentences))


def largest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`torch.topk(scores, count, dim=-1)` except for the choice among equals, and faster on a CPU.

    The maximum of each block is computed first, which is fast; then only the scores of the `count` blocks with the
    largest maxima are compared, because the scores of other blocks are not larger.

    Args:
        scores: (..., vocabulary).
        count: at most vocabulary.

    Returns:
        The largest scores in falling order and their places, (..., count) each.
    """
    blocks = scores.shape[-1] // BLOCK
    if scores.device.type != "cpu" or scores.numel() < MANY_SCORES or blocks < count:
        return scores.topk(count, dim=-1)
    blocked = scores[..., : blocks * BLOCK].unflatten(-1, (blocks, BLOCK))
    chosen = blocked.amax(dim=-1).topk(count, dim=-1).indices
    candidates = blocked.gather(-2, chosen[..., None].expand(*chosen.shape, BLOCK)).flatten(-2)
    rest = scores[..., blocks * BLOCK :]
    found, index = torch.cat([candidates, rest], dim=-1).topk(count, dim=-1)
    from_rest = index - count * BLOCK
    block = chosen.gather(-1, (index // BLOCK).clamp_(max=count - 1))
    return found, torch.where(from_rest < 0, block * BLOCK + index % BLOCK, blocks * BLOCK + from_rest)
