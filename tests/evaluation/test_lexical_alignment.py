"""Which token translates which, from pairs of ids alone."""

import random

import pytest

from endeavour.evaluation.lexical_alignment import learn_lexicon, partners

# Brown et al.'s idea in small: only one of the explanations fits all pairs.
HOUSE, BOOK, A, THE = 1, 2, 3, 4
HAUS, BUCH, EIN, DAS = 11, 12, 13, 14
PAIRS = [([THE, HOUSE], [DAS, HAUS]), ([THE, BOOK], [DAS, BUCH]), ([A, BOOK], [EIN, BUCH])]


def test_pairs_explain_each_other() -> None:
    table = learn_lexicon(PAIRS, iterations=20)
    for source, target in ((HOUSE, HAUS), (BOOK, BUCH), (THE, DAS), (A, EIN)):
        assert max(table[source], key=table[source].__getitem__) == target
        assert sum(table[source].values()) == pytest.approx(1)


def test_partners_are_found_whatever_the_order() -> None:
    table = learn_lexicon(PAIRS)
    assert partners(table, [BOOK, THE], [DAS, BUCH]) == [1, 0]


def test_likelihood_never_falls() -> None:
    draw = random.Random(0)
    pairs = [
        (words, [word + 100 for word in words] + draw.choices(range(200, 204), k=2))
        for words in (draw.sample(range(30), 5) for _ in range(60))
    ]

    def likelihood(iterations: int) -> float:
        table = learn_lexicon(pairs, iterations)
        product = 1.0
        for source, target in pairs[:20]:
            for token in target:
                product *= sum(table[word].get(token, 0.0) for word in (None, *source)) / (len(source) + 1)
        return product

    values = [likelihood(iterations) for iterations in (1, 2, 4, 8)]
    assert values == sorted(values)


def test_tokens_that_occur_everywhere_have_no_partner() -> None:
    """A token in every target is explained best by what is in every pair: no source token."""
    draw = random.Random(1)
    pairs = [
        (words, [*(word + 100 for word in words), 99])
        for words in (draw.sample(range(40), 4) for _ in range(200))
    ]
    table = learn_lexicon(pairs)
    source, target = pairs[0]
    assert partners(table, source, target) == [0, 1, 2, 3, None]


def test_unknown_tokens_and_empty_sentences_have_none() -> None:
    table = learn_lexicon(PAIRS)
    assert partners(table, [THE], [99]) == [None]
    assert partners(table, [], [DAS]) == [None]
    assert partners(table, [THE], []) == []
