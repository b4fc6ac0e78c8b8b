"""The config of a benchmark from the YAML files, as `endeavour bench` has it."""

from collections.abc import Sequence

from endeavour.commands.bench import BenchRoot
from endeavour.config import load_config


def load_bench(overrides: Sequence[str]) -> BenchRoot:
    """Raises `UserError` for values that describe no benchmark."""
    return load_config("bench", BenchRoot, overrides)
