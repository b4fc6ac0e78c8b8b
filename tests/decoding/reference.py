"""Random models and sentences, and a slow and simple search, that the tests of this folder share."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from configs import run_config
from endeavour.decoding.beam_search import beam_search
from endeavour.decoding.engine import Hypothesis, limit_of
from endeavour.decoding.model import Model
from endeavour.decoding.sampling import sample
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS, PAD
from random_models import drawn, tiny

# Source and target ids, of one forward pass over all of them, to logits.
Logits = Callable[[Tensor, Tensor], Tensor]


def random_model(vocabulary: int, *, seed: int = 0, **changes: object) -> Transformer:
    """A random model that is neither sure nor indifferent, and ends sentences after a few tokens."""
    small = {"width": 16, "encoder_layers": 1, "decoder_layers": 2, "feed_forward": 32}
    config = replace(tiny(), **{**small, **changes})
    return drawn(config, (vocabulary, vocabulary), alpha=0.3, seed=seed)


def random_sources(vocabulary: int, lengths: list[int]) -> Tensor:
    generator = torch.Generator().manual_seed(7)
    rows = torch.full((len(lengths), max(lengths) + 1), PAD)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(EOS + 1, vocabulary, (length,), generator=generator, device="cpu")
        row[length] = EOS
    return rows


def limits_of(model: Model, source: Tensor, *, ratio: float = 1.5, offset: int = 2) -> list[int]:
    decoding = replace(run_config().decoding, max_length_ratio=ratio, max_length_offset=offset)
    lengths = ((source != PAD) & (source != EOS)).sum(dim=1).tolist()
    return [limit_of(decoding, length, positions=model.max_target_length) for length in lengths]


def search(
    model: Model, source: Tensor, *, limit: int | None = None, **changes: object
) -> list[list[Hypothesis]]:
    """`beam_search`; each translation has at most `limit` tokens, otherwise by the length of its source."""
    limits = limits_of(model, source) if limit is None else [limit] * len(source)
    settings: dict[str, object] = {"beam_size": 4, "alpha": 0.6, "num_hypotheses": 1, **changes}
    return beam_search(model, source, limits, **settings)  # type: ignore[arg-type]


def draw(
    model: Model,
    source: Tensor,
    count: int = 1,
    *,
    seed: int = 1,
    limit: int | None = None,
    **changes: object,
) -> list[list[Hypothesis]]:
    """`sample`, with the limits of `search`, and by default from the model's own distribution."""
    limits = limits_of(model, source) if limit is None else [limit] * len(source)
    settings: dict[str, object] = {"temperature": 1.0, "top_k": None, "epsilon": 0.0, "alpha": 0.0, **changes}
    settings.setdefault("generator", torch.Generator("cpu").manual_seed(seed))
    return sample(model, source, limits, num_hypotheses=count, **settings)  # type: ignore[arg-type]


def log_probability_of(model: Logits, source: Tensor, ids: list[int]) -> float:
    """Of the ids and EOS, by one uncached forward pass; `source` is (1, length)."""
    with torch.no_grad():
        log_probabilities = model(source, torch.tensor([[BOS, *ids]])).log_softmax(dim=-1)[0]
    return log_probabilities.gather(1, torch.tensor([*ids, EOS])[:, None]).sum().item()


def score_of(log_probability: float, ids: list[int], alpha: float) -> float:
    return log_probability / ((5 + len(ids) + 1) / 6) ** alpha


def simple_search(
    model: Logits, source: Tensor, beam: int, limit: int, alpha: float, prefix: Sequence[int] = ()
) -> list[Hypothesis]:
    """The search of the module's docstring for one sentence: no cache, no batch, no early stop."""
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[Hypothesis] = []
    for length in range(limit + 1):
        extensions: list[tuple[float, list[int], int]] = []
        for before, ids in live:
            with torch.no_grad():
                logits = model(source, torch.tensor([[BOS, *ids]]))[0, -1]
            for token, value in enumerate(logits.log_softmax(dim=-1).tolist()):
                if length < len(prefix) and token != prefix[length]:
                    continue
                if token == EOS or (token not in (PAD, BOS) and length < limit):
                    extensions.append((before + value, ids, token))
        extensions = sorted(extensions, reverse=True)[:beam]
        ended = [(value, ids) for value, ids, token in extensions if token == EOS]
        finished += [Hypothesis(ids, score_of(value, ids, alpha), value) for value, ids in ended]
        live = [(value, [*ids, token]) for value, ids, token in extensions if token != EOS]
    return sorted(finished, key=lambda hypothesis: -hypothesis.score)


def assert_same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [hypothesis.ids for hypothesis in found] == [hypothesis.ids for hypothesis in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.score == pytest.approx(theirs.score, rel=1e-4, abs=1e-4)
        assert ours.log_probability == pytest.approx(theirs.log_probability, rel=1e-4, abs=1e-4)
