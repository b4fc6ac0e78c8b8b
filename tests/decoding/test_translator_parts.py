"""Lines to ids and back: where long ones are cut, what is searched together, what is given back; to the token."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from echo import BEAM, Echo, Letters, translator

from endeavour.decoding import translator as module
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.translator import Translation, Translator


def parts(line: str, longest: int) -> list[str]:
    """As the engine sees them."""
    engine = Echo()
    (whole,) = translator(engine, longest=longest).translate([line])
    assert whole.split() == " ".join(Letters().decode([ids[:-1] for ids in engine.calls[0]])).split()
    return Letters().decode([ids[:-1] for ids in engine.calls[0]])


@pytest.mark.parametrize("longest", [2, 3, 5, 8])
@pytest.mark.parametrize("words", [1, 2, 4, 7, 12])
def test_parts_are_as_long_as_they_may_be(longest: int, words: int) -> None:
    """Of words of one piece each as many as fit, EOS counted, and what is left at the end."""
    found = parts(" ".join("a" * words), longest)
    full, rest = divmod(words, longest - 1)
    assert [part.count("a") for part in found] == [longest - 1] * full + [rest] * bool(rest)


def test_a_line_is_cut_after_its_last_sentence_that_fits_else_before_a_word_else_anywhere() -> None:
    assert parts("a. b! cc dd", 7) == ["a. b!", "cc dd"]
    assert parts("a. b! cc dd", 12) == ["a. b! cc dd"]
    assert parts("a. bbb ccc", 8) == ["a.", "bbb ccc"], "after a sentence, though a word more would fit"
    assert parts("aa bb? cc.", 6) == ["aa bb?", "cc."], "the sentence ends where the part is full"
    assert parts("aa bbb cc", 6) == ["aa bbb", "cc"], "the word ends where the part is full"
    assert parts("aa bbbb cc", 6) == ["aa", "bbbb", "cc"]
    assert parts("a bbbbbb", 4) == ["a", "bbb", "bbb"]
    assert parts("abcdefgh", 4) == ["abc", "def", "gh"]
    assert parts("abcdef gh", 5) == ["abcd", "ef gh"]


@pytest.mark.parametrize(("engines", "own", "expected"), [(None, 9, 9), (5, 9, 5), (9, 5, 5)])
def test_the_lower_limit_counts(engines: int | None, own: int, expected: int) -> None:
    one = translator(Echo(longest=engines), longest=own)
    assert one.longest == expected
    fits, does_not = "a" * (expected - 1), "a" * expected
    assert one.whole(fits, fits)
    assert not one.whole(fits, does_not)
    assert not one.whole(does_not, fits)


def test_lines_in_parts_are_counted_and_an_empty_line_is_no_search() -> None:
    engine = Echo()
    one = translator(engine, longest=4)
    assert list(one.translate(["aaa", "", "bbbb", "cc dd ee", "  "])) == ["aaa", "", "bbb b", "cc dd ee", ""]
    assert one.in_parts == 2
    assert len(engine.calls[0]) == 6
    assert list(one.translate(["dddd"])) == ["ddd d"]
    assert one.in_parts == 3
    assert next(iter(one.translate_n_best([""]))) == [Translation("", 0.0, 0.0, ())]


class Scored(Echo):
    """One that gives the translations of the n-th source these scores."""

    def __init__(self, *scores: Sequence[float]) -> None:
        super().__init__()
        self.scores = scores

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        found = super().search(sources)
        return [
            [one._replace(score=score, log_probability=2 * score) for score in scores]
            for (one,), scores in zip(found, self.scores, strict=True)
        ]


def test_the_parts_translations_are_joined_with_their_mean_score() -> None:
    class SecondEmpty(Scored):
        def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
            first, (second,), third = super().search(sources)
            return [first, [second._replace(ids=[])], third]

    engine = SecondEmpty([-1.0], [-4.0], [-1.0])
    ((found,),) = translator(engine, longest=3).translate_n_best(["aa bb cc"])
    assert (found.text, found.score, found.log_probability) == ("aa cc", -2.0, -12.0)
    assert [len(part.target) for part in found.parts] == [2, 0, 2]
    assert [part.source for part in found.parts] == engine.calls[0]


def test_the_best_of_a_line_in_parts_are_the_best_of_all_combinations() -> None:
    scores = [-0.5, -3.0, -3.5], [-1.0], [-1.0, -1.25], [-2.0, -2.125]
    (found,) = translator(Scored(*scores), longest=3).translate_n_best(["aa bb cc dd"])
    best = sorted((sum(row) / 4 for row in itertools.product(*scores)), reverse=True)
    assert [one.score for one in found] == best[:3], "as many as the part with the most has"


def test_samples_of_a_line_in_parts_are_samples() -> None:
    """Each of a part's is used once, beside that which was drawn with it, however good."""
    drawn = replace(BEAM, sampling=True, beam_size=1, num_hypotheses=3)
    engine = Scored([-9.0, -1.0, -3.0], [-2.0, -1.0, -4.0], [-2.0, -1.0, -3.0])
    joined, alone = translator(engine, longest=3, decoding=drawn).translate_n_best(["aa bb", "cc"])
    assert [one.score for one in joined] == [-1.0, -3.5, -5.5]
    assert [one.score for one in alone] == [-1.0, -2.0, -3.0]


def read_ahead(one: Translator, lines: Iterator[str]) -> int:
    """How many lines are read before the first is given back."""
    read = 0

    def counted() -> Iterator[str]:
        nonlocal read
        for line in lines:
            read += 1
            yield line

    next(iter(one.translate(counted())))
    return read


@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_window_of_lines_is_read_and_searched_together(window: int) -> None:
    engine = Echo()
    assert read_ahead(translator(engine, window=window), itertools.repeat("a")) == window
    assert [len(call) for call in engine.calls] == [window]
    engine = Echo()
    assert list(translator(engine, window=window).translate(["a"] * 5)) == ["a"] * 5
    assert [len(call) for call in engine.calls if call] == [window] * (5 // window) + [5 % window] * bool(
        5 % window
    )


def test_a_window_ends_earlier_where_lines_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW_CHARACTERS", 10)
    for lines, expected in (
        (["aaaaa"], 2),
        (["aaaa"], 3),
        (["a" * 11], 1),
        (["a", "aaaaaaaaa"], 2),
        (["aaa"], 4),
    ):
        assert read_ahead(translator(Echo()), itertools.cycle(lines)) == expected
    engine = Echo()
    assert list(translator(engine).translate(["aaaaa"] * 5)) == ["aaaaa"] * 5
    assert [len(call) for call in engine.calls] == [2, 2, 1]
    engine = Echo()
    assert list(translator(engine).translate(["aaa"] * 8)) == ["aaa"] * 8
    assert [len(call) for call in engine.calls if call] == [4, 4]


def test_with_a_utility_the_window_is_no_larger_than_that_of_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CANDIDATES_WINDOW", 3)
    for utility, window, expected in ((None, 9, 9), ("chrf", 9, 3), ("chrf", 2, 2)):
        decoding = replace(BEAM, utility=utility, num_hypotheses=3)
        assert (
            read_ahead(translator(Echo(), window=window, decoding=decoding), itertools.repeat("a"))
            == expected
        )


@pytest.mark.parametrize(("sampling", "sharpness"), [(False, module.SHARPNESS), (True, 0.0)])
def test_candidates_count_by_what_they_were_searched_or_drawn_for(
    sampling: bool, sharpness: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[str], list[float], str]] = []

    def chosen(texts: list[str], weights: list[float], utility: str) -> list[tuple[str, float]]:
        asked.append((texts, weights, utility))
        return [(texts[-1], 7.0), (texts[0], 5.0)]

    monkeypatch.setattr(module, "most_useful", chosen)
    decoding = replace(
        BEAM, utility="bleu", num_hypotheses=3, sampling=sampling, beam_size=1 if sampling else 5
    )
    scores = [-2.0, -1.0, -3.0] if sampling else [-1.0, -2.0, -3.0]
    (found,) = translator(Scored(scores), decoding=decoding).translate_n_best(["aa"])
    ((texts, weights, utility),) = asked
    assert (texts, utility) == (["aa"] * 3, "bleu")
    assert [weight / weights[0] for weight in weights] == pytest.approx(
        [math.exp(-sharpness * number) for number in range(3)]
    )
    assert max(weights) == pytest.approx(1.0), "however low the scores are, one weight is above 0"
    assert [(one.text, one.score) for one in found] == [("aa", 7.0), ("aa", 5.0)]
    assert [one.log_probability for one in found] == [-2.0, -2.0], "of equal texts the most probable"
