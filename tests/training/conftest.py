"""A vocabulary and a split of random ids that the tests of training share."""

import numpy as np
import pytest

from configs import run_config
from endeavour.data.dataset import ParallelDataset, flat, save_rows
from endeavour.data.tokenizer import Tokenizer

VOCABULARY = 300


@pytest.fixture(scope="package")
def tokenizer() -> Tokenizer:
    config = run_config([f"tokenizer.vocabulary_size={VOCABULARY}"]).tokenizer
    return Tokenizer.train([f"Satz {number} hat Worte wie {number * 7}" for number in range(300)], config)


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> ParallelDataset:
    """120 pairs of two to eight tokens and EOS."""
    folder = tmp_path_factory.mktemp("arrays")
    random = np.random.default_rng(0)
    for side in ("source", "target"):
        rows = [random.integers(4, VOCABULARY, random.integers(2, 9)).tolist() for _ in range(120)]
        save_rows(folder / f"train.{side}", [flat(rows, vocabulary_size=VOCABULARY)])
    return ParallelDataset.open(folder, "train")
