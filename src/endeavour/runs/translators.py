"""Models of one run or several in memory, and what they do: translate, by whichever engine decodes, and score."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from endeavour.data.tokenizer import SIDES, Tokenizers, encode_pairs, placeholders_of, with_tag
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.engine import Engine
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.reranking import Reranker
from endeavour.decoding.scoring import token_log_probabilities
from endeavour.decoding.translator import WINDOW, Translator
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.runs.choice import named_runs, require_one_direction, require_trained, require_translators
from endeavour.runs.exports import open_export
from endeavour.runs.run import Run
from endeavour.special import EOS
from endeavour.training.precision import choose_decoding_precision


@dataclass(frozen=True)
class Loaded:
    """One run's model, or several that decode together, on a device.

    Attributes:
        first: the model of the first run.
        model: all of them; the same as `first` where there is one.
        tokenizers: of source and target, the same for all.
    """

    first: Transformer
    model: Transformer | Ensemble
    tokenizers: Tokenizers


def load_runs(runs: Sequence[Run], device: torch.device, tag: str | None) -> Loaded:
    """Loads trained runs.

    Args:
        tag: the part of the first run's corpus whose tag the sources are to begin with; None is `corpus.tag`.

    Raises:
        UserError: a run is damaged, translates in another direction than the first, or has other vocabularies; no
            part of that name has a tag.
    """
    first, *others = runs
    model, tokenizers = first.load_model(device)
    tokenizers = with_tag(tokenizers, first.source_tag(tag))
    if not others:
        return Loaded(model, model, tokenizers)
    require_one_direction(runs)
    models = [model]
    for run in others:
        other, theirs = run.load_model(device)
        require_same_vocabularies(first, tokenizers, run, theirs)
        models.append(other)
    return Loaded(model, Ensemble(models), tokenizers)


def score_pairs(
    loaded: Loaded, pairs: Sequence[tuple[str, str]], *, longest: int | None = None
) -> list[list[float] | None]:
    """The log-probability (natural) of each token of each translation, EOS included, given its source.

    Args:
        pairs: sources and translations.
        longest: the most tokens that either side may have, EOS included; the model's positions apply too.

    Returns:
        None for a pair that is too long.
    """
    encoded, targets = encode_pairs(loaded.tokenizers, pairs)
    sources = [[*ids, EOS] for ids in encoded]
    limits = [limit for limit in (longest, loaded.model.max_target_length) if limit is not None]
    lengths = [max(len(source), len(target) + 1) for source, target in zip(sources, targets, strict=True)]
    rows = [row for row, length in enumerate(lengths) if all(length <= limit for limit in limits)]
    found = token_log_probabilities(
        loaded.model,
        [sources[row] for row in rows],
        [targets[row] for row in rows],
        device=loaded.model.device,
    )
    results: list[list[float] | None] = [None] * len(pairs)
    for row, values in zip(rows, found, strict=True):
        results[row] = values
    return results


def require_same_vocabularies(run: Run, tokenizers: Tokenizers, other: Run, theirs: Tokenizers) -> None:
    """Raises `UserError` where the models of two runs cannot decode together."""
    for side, ours, its in zip(SIDES, tokenizers, theirs, strict=True):
        if ours.digest != its.digest:
            raise UserError(
                f"{other} has another {side} vocabulary than {run}: only models over the same tokenizers decode "
                "together"
            )


def open_translator(
    runs: Sequence[Run], loaded: Loaded, decoding: DecodingConfig, window: int = WINDOW
) -> Translator:
    """A translator by `loaded`, the models of `runs`, or by the first run's export.

    Raises:
        UserError: see `open_export` and `backward_runs`; those have other placeholders.
    """
    device = loaded.model.device
    if decoding.engine == "ctranslate2":
        usable = str(device) if device.type == "cuda" else "cpu"  # CTranslate2 knows no other
        return open_export(runs, decoding, usable, window)
    engine: Engine = PyTorchEngine(loaded.model, decoding)
    if backward := backward_runs(runs[0], decoding):
        other = load_runs(backward, device, None)
        if placeholders_of(other.tokenizers) != placeholders_of(loaded.tokenizers):
            raise UserError(
                f"decoding.backward={backward[0].name} has another number of tokenizer.placeholders than {runs[0]}: "
                "name a run with as many"
            )
        engine = Reranker(engine, loaded.tokenizers, partial(score_pairs, other), decoding.backward_weight)
    return Translator(
        engine,
        loaded.tokenizers,
        window,
        decoding=decoding,
        language=runs[0].source_language,
    )


def backward_runs(run: Run, decoding: DecodingConfig) -> list[Run]:
    """Those that `decoding.backward` names, beside `run`.

    Raises:
        UserError: one is not there, or does not translate in the other direction.
    """
    if decoding.backward is None:
        return []
    named = named_runs("decoding.backward", decoding.backward, run.root)
    if not named:
        raise UserError(
            "decoding.backward names no run: name one of the other direction, decoding.backward=NAME"
        )
    for one in named:
        require_trained(one, "name another with decoding.backward=…, or train it first")
        if one.config.direction == run.config.direction:
            raise UserError(
                f"decoding.backward={one.name} translates {one.config.direction}, as {run.name} does: a run of the "
                "other direction is needed"
            )
    require_translators(named)
    return named


def resolve_decoding(decoding: DecodingConfig, model: Transformer) -> DecodingConfig:
    """`decoding` with its precision chosen for this model where it computes, if it is `auto`."""
    if decoding.precision != "auto" or decoding.engine != "pytorch":  # an export has a quantization instead
        return decoding
    chosen = choose_decoding_precision(
        model.device,
        width=model.config.width,
        feed_forward=model.config.feed_forward,
        vocabulary=len(model.output_weight),
        rows=max(1, decoding.tokens_per_batch // 32),
    )
    return replace(decoding, precision=chosen.name)
