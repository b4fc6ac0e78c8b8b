"""A dataset in segmentations drawn anew for each epoch. Knows ids and tokenizers; not batches.

The text of a pair stays what it is; how it is cut into subwords changes from epoch to epoch, so that a model
learns what subwords are made of and meets each sentence in many forms: BPE-dropout (Provilkov et al. 2020) or
subword regularization (Kudo 2018), see `Tokenizer.sample`.
"""

import numpy as np

from endeavour.data.dataset import ParallelDataset, RaggedArray
from endeavour.data.tokenizer import Tokenizer
from endeavour.special import EOS

SENTENCES = 10_000  # that are drawn by one seed, and whose text is in memory at a time


class SubwordSampler:
    """Draws segmentations of a whole dataset, which are then in memory: 2 bytes a token (4 above 65,536 ids), twice
    that while they are drawn. Nothing else happens meanwhile; on one core some 50,000 sentences are drawn a second.

    Args:
        data: as it was prepared.
        tokenizers: of source and target.
        noise: see `Tokenizer.sample`.
    """

    def __init__(self, data: ParallelDataset, tokenizers: tuple[Tokenizer, Tokenizer], noise: float) -> None:
        self._sides = tuple(zip((data.source, data.target), tokenizers, strict=True))
        self._noise = noise

    def draw(self, place: tuple[int, ...]) -> ParallelDataset:
        """The same pairs in segmentations that `place`, such as (seed, epoch), alone decides.

        A segmentation longer than the longest usual one of its side is passed over for the usual one, so that
        the longest pair stays the longest.
        """
        source, target = (
            _drawn(side, tokenizer, self._noise, (*place, number))
            for number, (side, tokenizer) in enumerate(self._sides)
        )
        return ParallelDataset(source, target)


def _drawn(side: RaggedArray, tokenizer: Tokenizer, noise: float, place: tuple[int, ...]) -> RaggedArray:
    longest = int(side.lengths.max())
    parts: list[np.ndarray] = []
    lengths: list[int] = []
    for start in range(0, len(side), SENTENCES):
        usual = [side[row] for row in range(start, min(start + SENTENCES, len(side)))]
        texts = tokenizer.decode([ids[:-1].tolist() for ids in usual])
        seed = int(np.random.SeedSequence((*place, start)).generate_state(1)[0])
        drawn = tokenizer.sample(texts, noise=noise, seed=seed)
        rows = [
            np.array([*new, EOS], old.dtype) if len(new) < longest else old
            for new, old in zip(drawn, usual, strict=True)
        ]
        parts.append(np.concatenate(rows))
        lengths += map(len, rows)
    return RaggedArray(np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)]))
