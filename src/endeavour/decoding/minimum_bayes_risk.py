"""Minimum Bayes risk decoding: choose the candidate that is most like all others, not the most probable one.

The model's distribution spreads over many translations, and its mode need not be typical of it. Kumar & Byrne
2004, "Minimum Bayes-risk decoding for statistical machine translation": choose the candidate with the highest
expected utility, Σ probability(reference) × utility(candidate, reference), where the candidates themselves are the
references, each with its weight. A utility is a metric's sentence score, 0 to 100, as sacreBLEU computes it:

    bleu    BLEU with 13a tokenization, exponential smoothing and effective order
    chrf    chrF2 of character 6-grams, without spaces

Knows texts and weights; not models, ids or files. For n candidates there are n² scores, which sacreBLEU would compute
one by one. Here one matrix product gives all of them: the t-th occurrence of an n-gram is a feature of its own,
which a text has or lacks, so that the clipped matches of two texts are the features that both have.

sacreBLEU is imported where it is used: importing it takes a tenth of a second, and most translations need none of it.
"""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def most_useful(texts: Sequence[str], weights: Sequence[float], utility: str) -> list[tuple[str, float]]:
    """The distinct texts with their expected utilities, the highest first.

    The order of `texts` does not matter: equal utilities are sorted by weight, then alphabetically.

    Args:
        texts: the candidates, at least one.
        weights: as many as texts; they need not add up to 1, but at least one is above 0.
        utility: bleu or chrf.
    """
    merged: dict[str, float] = {}
    for text, weight in sorted(zip(texts, weights, strict=True)):
        merged[text] = merged.get(text, 0.0) + weight
    shares = np.array(list(merged.values()))
    expected = pairwise(list(merged), utility) @ (shares / shares.sum())
    # Rounded, because sums that differ only in their last bits are equal.
    ranked = sorted(zip(merged, expected.round(9).tolist(), shares.tolist(), strict=True))
    ranked.sort(key=lambda one: (-one[1], -one[2]))
    return [(text, value) for text, value, _ in ranked]


def pairwise(texts: Sequence[str], utility: str) -> Matrix:
    """(texts, texts): the utility of each row's text with each column's text as reference; 0 to 100."""
    return {"bleu": _bleu, "chrf": _chrf}[utility](texts)


def _bleu(texts: Sequence[str]) -> Matrix:
    """Papineni et al. 2002; exponential smoothing: Chen & Cherry 2014, method 3, as in sacreBLEU."""
    from sacrebleu.metrics.bleu import BLEU, MAX_NGRAM_ORDER

    tokenize = BLEU().tokenizer
    words = [tokenize(text.rstrip()).split() for text in texts]
    lengths = np.array([len(row) for row in words], np.float64)
    matches, totals = _counts(words, MAX_NGRAM_ORDER)
    present = totals > 0
    orders = present.sum(axis=0)
    missed = (matches == 0) & present[:, :, None]
    halvings = missed.cumsum(axis=0)
    counts = np.where(missed, 0.5**halvings, matches)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.where(present[:, :, None], np.log(counts / totals[:, :, None]), 0.0)
        means = logarithms.sum(axis=0) / orders[:, None]
        brevity = np.minimum(1.0 - lengths[None, :] / lengths[:, None], 0.0)
        scores = 100.0 * np.exp(means + brevity)
    return np.where(matches.any(axis=0), scores, 0.0)


def _chrf(texts: Sequence[str]) -> Matrix:
    """Popović 2015; precision and recall are means over the orders for which both texts are long enough."""
    from sacrebleu.metrics.chrf import CHRF

    matches, totals = _counts(["".join(text.split()) for text in texts], CHRF.CHAR_ORDER)
    both = (totals[:, :, None] > 0) & (totals[:, None, :] > 0)
    orders = np.maximum(both.sum(axis=0), 1)
    least = np.maximum(totals, 1.0)
    precision = (matches / least[:, :, None]).sum(axis=0) / orders
    recall = (matches / least[:, None, :]).sum(axis=0) / orders
    factor = CHRF.BETA**2
    below = factor * precision + recall
    return 100.0 * (1 + factor) * precision * recall / np.where(below > 0, below, 1.0)


def _counts(texts: Sequence[Sequence[str]], orders: int) -> tuple[Matrix, Matrix]:
    """Clipped matches (orders, texts, texts) and numbers of n-grams (orders, texts), of orders 1 to `orders`."""
    matches = np.zeros((orders, len(texts), len(texts)))
    totals = np.zeros((orders, len(texts)))
    for order in range(orders):
        rows = [_features(text, order + 1) for text in texts]
        columns: dict[Hashable, int] = {}
        places = [[columns.setdefault(feature, len(columns)) for feature in row] for row in rows]
        present = np.zeros((len(texts), len(columns)), np.float32)
        for row, where in zip(present, places, strict=True):
            row[where] = 1.0
        matches[order] = present @ present.T
        totals[order] = [len(row) for row in rows]
    return matches, totals


def _features(text: Sequence[str], order: int) -> list[Hashable]:
    """Each n-gram of the words or characters, and its repetitions with a number."""
    counts = Counter(zip(*(text[start:] for start in range(order)), strict=False))
    again = [(gram, number) for gram, count in counts.items() if count > 1 for number in range(1, count)]
    return [*counts, *again]
