"""A vocabulary and a split of random ids that the tests of training share."""

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starting import VOCABULARY

from configs import run_config
from endeavour.data.dataset import ParallelDataset, flat, save_rows
from endeavour.data.tokenizer import Tokenizer
from endeavour.data.tokenizer_training import train_tokenizer


@pytest.fixture(scope="package")
def tokenizer() -> Tokenizer:
    config = run_config([f"tokenizer.vocabulary_size={VOCABULARY}"]).tokenizer
    return train_tokenizer([f"Satz {number} hat Worte wie {number * 7}" for number in range(300)], config)


def random_pairs(folder: Path, pairs: int, first: int | None = None) -> ParallelDataset:
    """Of two to eight tokens and EOS; the first pair of `first` tokens."""
    random = np.random.default_rng(0)
    for side in ("source", "target"):
        rows = [random.integers(4, VOCABULARY, random.integers(2, 9)).tolist() for _ in range(pairs)]
        if first is not None:
            rows[0] = random.integers(4, VOCABULARY, first).tolist()
        save_rows(folder / f"train.{side}", [flat(rows, vocabulary_size=VOCABULARY)])
    return ParallelDataset.open(folder, "train")


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> ParallelDataset:
    return random_pairs(tmp_path_factory.mktemp("arrays"), 120)


@pytest.fixture(scope="package")
def uneven_data(tmp_path_factory: pytest.TempPathFactory) -> ParallelDataset:
    """One pair fills a batch alone, so that some process has nothing to predict."""
    return random_pairs(tmp_path_factory.mktemp("arrays"), 70, first=60)


@pytest.fixture
def not_under_nohup() -> Iterator[None]:
    """As started from a terminal: whoever starts the tests under nohup has hangups ignored."""
    usual = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, usual)
