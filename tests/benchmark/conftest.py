"""A prepared corpus and tasks on it, for all tests of the benchmark."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from bench_config import load_bench

from endeavour.benchmark.task import Task
from endeavour.data.preparing import prepare_data
from endeavour.pipeline.data import recipe_of

VOCABULARY = 300
TINY = (
    "bench=smoke",
    "model.width=16",
    "model.feed_forward=32",
    "model.encoder_layers=2",
    "model.decoder_layers=1",
    "model.num_heads=2",
)


@pytest.fixture(scope="session")
def prepared(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = load_bench([*parallel_files, f"tokenizer.vocabulary_size={VOCABULARY}"])
    return prepare_data(recipe_of(config), tmp_path_factory.mktemp("data")).folder


@pytest.fixture
def make_task(prepared: Path) -> Callable[..., Task]:
    """Makes a task of a few updates, by overrides of the config, for a model of a few thousand parameters."""

    def make(*overrides: str, updates: int = 3) -> Task:
        config = load_bench([*TINY, *overrides])
        return Task(
            settings=config.bench,
            model=config.model,
            decoding=config.decoding,
            vocabularies=(VOCABULARY, VOCABULARY),
            data=prepared,
            device=torch.device("cpu"),
            seed=1,
        ).with_rows(updates)

    return make
