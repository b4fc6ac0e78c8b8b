"""The config of a benchmark from the YAML files, as `endeavour bench` has it."""

from collections.abc import Sequence

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from pydantic import TypeAdapter

from endeavour.commands.bench import BenchmarkConfig
from endeavour.config import config_folder


def load_bench(overrides: Sequence[str]) -> BenchmarkConfig:
    """Raises `pydantic.ValidationError` for values that describe no benchmark."""
    with initialize_config_dir(str(config_folder()), version_base=None):
        composed = compose("bench", list(overrides))
    return TypeAdapter(BenchmarkConfig).validate_python(OmegaConf.to_container(composed, resolve=True))
