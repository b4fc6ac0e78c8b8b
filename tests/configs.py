"""Configs of runs as the command line composes them."""

from collections.abc import Sequence

from endeavour.config import load_config
from endeavour.overrides import quote_literal
from endeavour.runs.config import RunConfig

TINY = ["model.width=16", "model.feed_forward=32", "model.num_heads=2"]  # some thousands of parameters
TINY += ["model.encoder_layers=1", "model.decoder_layers=1"]
QUICK = ["training=smoke", "tracking=none", "device=cpu", "evaluation.bootstrap_samples=40"]


def run_config(overrides: Sequence[str] = ()) -> RunConfig:
    """Raises `UserError` for values that describe no run."""
    return load_config("train", RunConfig, overrides)


def typed_config(*typed: str) -> RunConfig:
    """The same of words as they are typed, in which a name needs no quotes."""
    return run_config([quote_literal(override) for override in typed])
