"""Candidates ranked by a model of the other direction: the formula, what is asked of it, and what is too long."""

from collections.abc import Sequence
from typing import Any

import pytest
from echo import Letters

from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.reranking import Reranker
from endeavour.special import EOS

LETTERS = Letters()
FOUND = [("ein hund", -1.0), ("der hund", -1.2), ("ein", -1.3)]


class Found:
    """An engine with the same hypotheses for each source."""

    longest = 17

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        texts = [text for text, _ in FOUND]
        row = [
            Hypothesis(ids, score, -5.0) for ids, (_, score) in zip(LETTERS.encode(texts), FOUND, strict=True)
        ]
        return [row for _ in sources]


def texts(hypotheses: list[Hypothesis]) -> list[str]:
    return LETTERS.decode([one.ids for one in hypotheses])


def reranker(
    values: dict[str, list[float] | None], weight: float, asked: list[Any] | None = None
) -> Reranker:
    def score_sources(pairs: Sequence[tuple[str, str]]) -> list[list[float] | None]:
        if asked is not None:
            asked.extend(pairs)
        return [values[translation] for translation, _ in pairs]

    tagged = Letters()
    tagged.tag = (7,)
    return Reranker(Found(), (tagged, LETTERS), score_sources, weight)  # type: ignore[arg-type]


VALUES: dict[str, list[float] | None] = {"ein hund": [-4.0, -8.0], "der hund": [-2.0, -1.0], "ein": [-9.0]}
SOURCE = [7, *LETTERS.encode(["a dog"])[0], EOS]


@pytest.mark.parametrize(("weight", "best"), [(0.0, "ein hund"), (0.01, "ein hund"), (1.0, "der hund")])
def test_the_source_counts_by_its_weight(weight: float, best: str) -> None:
    (ranked,) = reranker(VALUES, weight).search([SOURCE])
    assert texts(ranked)[0] == best
    expected = [(score + weight * sum(VALUES[text] or []) / len(SOURCE), text) for text, score in FOUND]
    assert [
        (pytest.approx(one.score), text) for one, text in zip(ranked, texts(ranked), strict=True)
    ] == sorted(expected, reverse=True)
    assert {one.log_probability for one in ranked} == {-5.0}


def test_each_candidate_is_asked_about_with_its_source_without_the_tag() -> None:
    asked: list[tuple[str, str]] = []
    found = reranker(VALUES, 1.0, asked).search([SOURCE, [7, *LETTERS.encode(["cat"])[0], EOS]])
    assert asked == [(text, source) for source in ("a dog", "cat") for text, _ in FOUND]
    assert len(found) == 2


def test_where_one_is_too_long_all_stay_as_they_are() -> None:
    (ranked,) = reranker(VALUES | {"ein": None}, 1.0).search([SOURCE])
    assert [(one.score, text) for one, text in zip(ranked, texts(ranked), strict=True)] == [
        (score, text) for text, score in FOUND
    ]
    assert reranker(VALUES, 1.0).longest == Found.longest
