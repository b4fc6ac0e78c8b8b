"""Configs of runs as the command line composes them."""

from collections.abc import Sequence

from endeavour.config import load_config, quote_literal
from endeavour.runs.config import RunConfig


def run_config(overrides: Sequence[str] = ()) -> RunConfig:
    """Raises `UserError` for values that describe no run."""
    return load_config("train", RunConfig, overrides)


def typed_config(*typed: str) -> RunConfig:
    """The same of words as they are typed, in which a name needs no quotes."""
    return run_config([quote_literal(override) for override in typed])
