"""What engines share: ranking by our penalty, batches of one length."""

import pytest

from endeavour.decoding.engine import batches_of_one_length, rank


def test_ranked_by_our_penalty_cut_ones_only_where_none_ended_and_none_twice() -> None:
    found = [
        ([7], -2.0, True),
        ([7, 8, 9, 7, 8], -2.4, True),  # / (11 / 6) beats / (7 / 6)
        ([7, 7], -0.1, False),
        ([7], -2.0, True),
    ]
    ranked = rank(found, alpha=1.0, best=5)
    assert [hypothesis.ids for hypothesis in ranked] == [[7, 8, 9, 7, 8], [7]]
    assert ranked[0].score == pytest.approx(-2.4 / (11 / 6))
    assert ranked[0].log_probability == -2.4
    assert [hypothesis.ids for hypothesis in rank(found, alpha=0.0, best=1)] == [[7]]
    cut = [(ids, log_probability, False) for ids, log_probability, _ in found]
    assert [hypothesis.ids for hypothesis in rank(cut, alpha=0.0, best=2)] == [[7, 7], [7]]


def test_batches_hold_every_row_once_each_of_one_length_the_longest_first() -> None:
    lengths = [3, 9, 3, 5, 3, 9, 3]
    batches = batches_of_one_length([[1] * length for length in lengths], 9)
    assert sorted(row for batch in batches for row in batch) == list(range(7))
    assert [lengths[batch[0]] for batch in batches] == [9, 9, 5, 3, 3]
    assert all(len({lengths[row] for row in batch}) == 1 for batch in batches)
