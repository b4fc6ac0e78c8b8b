"""Configs of runs as the command line composes them."""

from collections.abc import Sequence

from endeavour.config import load_config
from endeavour.runs.config import RunConfig


def run_config(overrides: Sequence[str] = ()) -> RunConfig:
    """Raises `UserError` for values that describe no run."""
    return load_config("train", RunConfig, overrides)
