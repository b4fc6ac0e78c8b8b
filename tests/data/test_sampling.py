"""Drawn segmentations: other subwords, the same text, and a matter of their place alone."""

import numpy as np
import pytest

from endeavour.config import load_config
from endeavour.data import sampling
from endeavour.data.arrays import RaggedWriter
from endeavour.data.dataset import ParallelDataset, RaggedArray
from endeavour.data.sampling import SubwordSampler
from endeavour.data.tokenizer import Tokenizer
from endeavour.special import EOS

NOUNS = (
    "Hund",
    "Vogel",
    "Garten",
    "Bahnhof",
    "Kuchen",
    "Schrank",
    "Lehrer",
    "Fenster",
    "Nachmittag",
    "Zeitung",
)
SENTENCES = [
    f"{first} und {second} haben {number} Bäume gesehen."
    for number, (first, second) in enumerate((one, other) for one in NOUNS for other in NOUNS[:6])
]


def trained(algorithm: str) -> Tokenizer:
    overrides = [f"tokenizer.algorithm={algorithm}", "tokenizer.vocabulary_size=310"]
    return Tokenizer.train(SENTENCES, load_config(overrides).tokenizer)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return trained(request.param)


@pytest.fixture(scope="module")
def data(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> ParallelDataset:
    folder = tmp_path_factory.mktemp("arrays")
    for side, sentences in (("source", SENTENCES), ("target", SENTENCES[::-1])):
        with RaggedWriter(folder / f"train.{side}", vocabulary_size=tokenizer.vocabulary_size) as writer:
            writer.append(tokenizer.encode(sentences), end=EOS)
    return ParallelDataset.open(folder, "train")


def drawn(
    data: ParallelDataset, tokenizer: Tokenizer, place: tuple[int, ...], noise: float = 0.3
) -> list[list[int]]:
    pairs = SubwordSampler(data, (tokenizer, tokenizer), noise).draw(place)
    return [side[row].tolist() for side in (pairs.source, pairs.target) for row in range(len(pairs))]


def test_the_place_alone_decides(data: ParallelDataset, tokenizer: Tokenizer) -> None:
    first = drawn(data, tokenizer, (1, 5))
    assert first != drawn(data, tokenizer, (1, 6))
    assert first != drawn(data, tokenizer, (2, 5))
    tokenizer.encode(SENTENCES)
    assert first == drawn(data, tokenizer, (1, 5))


def test_sides_and_parts_are_drawn_apart(
    data: ParallelDataset, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One text on both sides, and once more in the second part: four draws, not one."""
    monkeypatch.setattr(sampling, "SENTENCES", len(SENTENCES) // 2)
    twice = np.r_[0 : len(data) // 2, 0 : len(data) // 2]
    ids = RaggedArray(
        np.concatenate([data.source[row] for row in twice]),
        np.concatenate([[0], np.cumsum(data.source.lengths[twice])]),
    )
    pairs = SubwordSampler(ParallelDataset(ids, ids), (tokenizer, tokenizer), 0.3).draw((1, 0))
    parts = [
        [side[row].tolist() for row in rows]
        for side in (pairs.source, pairs.target)
        for rows in np.array_split(np.arange(len(pairs)), 2)
    ]
    assert all(one != other for number, one in enumerate(parts) for other in parts[:number])


def test_the_text_stays(data: ParallelDataset, tokenizer: Tokenizer) -> None:
    rows = drawn(data, tokenizer, (1, 0))
    assert tokenizer.decode([row[:-1] for row in rows]) == SENTENCES + SENTENCES[::-1]
    assert all(row[-1] == EOS and EOS not in row[:-1] for row in rows)
    assert rows != [[*ids, EOS] for ids in tokenizer.encode(SENTENCES + SENTENCES[::-1])]


def test_none_is_longer_than_the_longest_of_its_side(data: ParallelDataset, tokenizer: Tokenizer) -> None:
    rows = drawn(data, tokenizer, (1, 0), noise=0.99)
    assert max(map(len, rows[: len(SENTENCES)])) <= data.source.lengths.max()
    assert max(map(len, rows[len(SENTENCES) :])) <= data.target.lengths.max()


def test_more_merges_left_out_make_more_tokens(data: ParallelDataset) -> None:
    bpe = trained("bpe")
    counts = [sum(map(len, bpe.sample(SENTENCES, noise=noise, seed=1))) for noise in (1e-9, 0.1, 0.5, 1.0)]
    assert counts == sorted(counts)
    assert counts[0] == sum(map(len, bpe.encode(SENTENCES)))
    assert counts[0] < counts[1]
