"""Lines to ids and back: where long ones are cut, what is searched together, what is given back; to the token."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import torch
from echo import BEAM, WORD_START, Echo, Letters, translator
from reference import random_model, random_sources, search

from endeavour.decoding import translator as module
from endeavour.decoding.alignment import attention_picture
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translation, Translator
from endeavour.special import BOS, EOS


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
    """Each of a part's is used once: none stands for those that were drawn less fortunately."""
    drawn = replace(BEAM, sampling=True, beam_size=1, num_hypotheses=2)
    engine = Scored([-1.0, -9.0], [-1.0, -2.0])
    (found,) = translator(engine, longest=3, decoding=drawn).translate_n_best(["aa bb"])
    assert [one.score for one in found] == [-1.0, -5.5]


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
    (found,) = translator(Echo(3), decoding=decoding).translate_n_best(["aa"])
    ((texts, weights, utility),) = asked
    assert (texts, utility) == (["aa"] * 3, "bleu")
    assert [weight / weights[0] for weight in weights] == pytest.approx(
        [math.exp(-sharpness * number) for number in range(3)]
    )
    assert max(weights) == pytest.approx(1.0), "however low the scores are, one weight is above 0"
    assert [(one.text, one.score) for one in found] == [("aa", 7.0), ("aa", 5.0)]
    assert [one.log_probability for one in found] == [-2.0, -2.0], "of equal texts the most probable"


class Recording(PyTorchEngine):
    """Notes the shape of each batch, and gives back the length of each source."""

    def _search_batch(self, sources: Sequence[Sequence[int]], *_: object) -> list[list[Hypothesis]]:
        self.shapes = [*getattr(self, "shapes", []), (len(sources), max(map(len, sources)))]
        assert not self.model.training
        return [[Hypothesis([len(source)], 0.0, 0.0)] for source in sources]


@pytest.mark.parametrize(
    ("beam", "drawn", "budget", "shapes"),
    [
        (1, 1, 12, [(2, 6), (4, 2)]),
        (2, 1, 12, [(1, 6), (1, 6), (3, 2), (1, 2)]),
        (1, 2, 12, [(2, 6), (4, 2)]),
        (1, 3, 37, [(6, 6)]),
        (7, 1, 12, [(1, 6), (1, 6), *[(1, 2)] * 4]),
        (13, 1, 12, [(1, 6), (1, 6), *[(1, 2)] * 4]),
    ],
)
def test_batches_are_as_large_as_tokens_per_batch_allows_for_each_hypothesis(
    beam: int, drawn: int, budget: int, shapes: list[tuple[int, int]]
) -> None:
    found: list[list[tuple[int, int]]] = []
    settings = [{"beam_size": beam, "num_hypotheses": min(beam, drawn)}]
    if beam > 1:  # the same of draws
        settings.append({"beam_size": 1, "num_hypotheses": beam, "sampling": True})
    for changes in settings:
        engine = Recording(random_model(12), replace(BEAM, tokens_per_batch=budget, **changes))
        lengths = [2, 6, 2, 2, 6, 2]
        sources = [[5] * (length - 1) + [EOS] for length in lengths]
        assert [row[0].ids for row in engine.search(sources)] == [[length] for length in lengths]
        found.append(engine.shapes)
    assert found == [shapes] * len(found)


def test_batches_are_larger_on_a_gpu(device: torch.device) -> None:
    engine = Recording(random_model(12).to(device), replace(BEAM, beam_size=1, tokens_per_batch=12))
    engine.search([[5] * 5 + [EOS]] * 20)
    assert [pairs for pairs, _ in engine.shapes] == ([16, 4] if device.type == "cuda" else [2] * 10)


@pytest.mark.parametrize("training", [False, True])
def test_an_engine_leaves_the_model_in_its_mode_and_says_its_limit(training: bool) -> None:
    model = random_model(12, positions="learned", max_length=9).train(training)
    engine = PyTorchEngine(model, BEAM)
    engine.search([[5, EOS]])
    assert model.training == training
    assert engine.longest == 9
    assert PyTorchEngine(random_model(12), BEAM).longest is None


def test_an_engine_searches_with_its_settings() -> None:
    model, source = random_model(12, seed=3), random_sources(12, [6, 6, 6])
    settings = {
        "beam_size": 3,
        "length_penalty": 2.0,
        "max_length_ratio": 0.5,
        "max_length_offset": 3,
        "num_hypotheses": 2,
    }
    engine = PyTorchEngine(model, replace(BEAM, **settings))
    expected = search(model, source, limit=6, beam_size=3, alpha=2.0, num_hypotheses=2)
    assert engine.search(source.tolist()) == expected
    for key, other in (
        ("beam_size", 6),
        ("length_penalty", 0.0),
        ("max_length_ratio", 0.0),
        ("max_length_offset", 0),
        ("num_hypotheses", 1),
    ):
        assert (
            PyTorchEngine(model, replace(BEAM, **{**settings, key: other})).search(source.tolist())
            != expected
        )


DRAWS = {"sampling": True, "beam_size": 1, "num_hypotheses": 6, "length_penalty": 1.0, "max_length_offset": 4}


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.1},
        {"top_k": 1},
        {"epsilon": 0.3},
        {"seed": 2},
        {"length_penalty": 0.0},
        {"max_length_ratio": 0.0},
        {"max_length_offset": 0},
        {"num_hypotheses": 7},
    ],
)
def test_an_engine_draws_with_its_settings(change: dict[str, float]) -> None:
    model, sources = random_model(12, seed=3), [[5, 6, EOS], [7, 8, EOS]]
    drawn = PyTorchEngine(model, replace(BEAM, **DRAWS)).search(sources)
    assert drawn == PyTorchEngine(model, replace(BEAM, **DRAWS)).search(sources)
    assert PyTorchEngine(model, replace(BEAM, **{**DRAWS, **change})).search(sources) != drawn
    assert {len(row) for row in drawn} == {6}


def test_what_is_drawn_is_a_matter_of_the_sources() -> None:
    engine = PyTorchEngine(random_model(12, seed=3), replace(BEAM, **DRAWS))
    first = engine.search([[5, 6, EOS]])
    assert engine.search([[6, 5, EOS]]) != first
    assert engine.search([[5, 6, EOS]]) == first


def test_an_attention_picture_is_of_the_last_layer_the_mean_of_its_heads() -> None:
    """Row i shows where the decoder looked when it wrote target piece i."""
    model = random_model(150, seed=2, decoder_layers=3)
    tokenizers = Letters(), Letters(20)
    with torch.device("meta"):  # whatever the default is, on the model's device
        picture = attention_picture(model, tokenizers, "abc de", "fg h")  # type: ignore[arg-type]
    source, target, weights = picture
    assert source == [f"{WORD_START}a", "b", "c", f"{WORD_START}d", "e", ""]
    assert target == [f"{WORD_START}f", "g", f"{WORD_START}h", ""]
    source_ids, target_ids = (
        [*tokenizer.encode([text])[0], EOS]
        for tokenizer, text in zip(tokenizers, ("abc de", "fg h"), strict=True)
    )
    maps = model.attention_maps(torch.tensor([source_ids]), torch.tensor([[BOS, *target_ids[:-1]]]))
    assert len(maps.cross) == 3
    heads = maps.cross[2][0]
    assert heads.shape == (4, 4, 6)
    torch.testing.assert_close(torch.tensor(weights), sum(heads) / 4)
