"""The translator over a real tokenizer: a line out for each line in, and the choice of least risk."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
import torch
from echo import Echo
from hypothesis import given, settings
from hypothesis import strategies as st

from configs import run_config
from endeavour.data.protection import symbols
from endeavour.data.tokenizer import Tokenizers
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translator
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from untrained import SENTENCES, TINIEST, small_tokenizers, untrained_model

SHORT = ["decoding.beam_size=2", "decoding.max_length_ratio=0", "decoding.max_length_offset=3"]
CONFIG = run_config([*TINIEST, *SHORT])

LINES = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.text(st.characters(), max_size=10),  # lone surrogates too
        st.text("\x00\u202e\u200b\ufeff\r\x0b\u2028\u0308 ", max_size=8),
        st.integers(1, 60).map(lambda count: "Worte wie diese. " * count),
    ),
    max_size=6,
)


@cache
def vocabularies() -> Tokenizers:
    return small_tokenizers(CONFIG)


@cache
def model() -> Transformer:
    return untrained_model(CONFIG, vocabularies())


def translator(**changes: int) -> Translator:
    return Translator(
        PyTorchEngine(model(), CONFIG.decoding), vocabularies(), decoding=CONFIG.decoding, **changes
    )


@settings(max_examples=50)
@given(LINES, st.integers(1, 4), st.integers(2, 40))
def test_one_line_for_each_line(lines: list[str], window: int, longest: int) -> None:
    found = list(translator(window=window, longest=longest).translate(lines))
    assert len(found) == len(lines)
    assert all(len((text + "x").splitlines()) == 1 for text in found)


@settings(max_examples=30)
@given(st.integers(2, 30), st.lists(st.sampled_from(["Satz", "hat", "Ja!", "x" * 50, "7."]), max_size=60))
def test_parts_are_the_whole_and_none_is_too_long(longest: int, words: list[str]) -> None:
    (ids,) = vocabularies()[0].encode([" ".join(words)])
    parts = translator(longest=longest)._parts(ids)
    assert [number for part in parts for number in part] == ids
    assert all(len(part) < longest for part in parts)


class Repeating:
    """An engine that finds the same for every source."""

    longest: int | None = None

    def __init__(self, found: dict[str, float]) -> None:
        self.sources = 0
        self.found = [
            Hypothesis(ids, value, value)
            for ids, value in zip(vocabularies()[0].encode(list(found)), found.values(), strict=True)
        ]

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        self.sources += len(sources)
        return [self.found for _ in sources]


PROBABLE, LIKE = "Nein, das ist anders.", "Satz 7 hat Worte wie 49."
FOUND = {PROBABLE: -1.0, LIKE: -1.1, "Satz 7 hat Worte wie 4.": -1.2, "Satz 7 hatte Worte wie 49.": -1.2}
CERTAIN = {**FOUND, PROBABLE: -0.01, LIKE: -9.0}
CANDIDATES = replace(CONFIG.decoding, beam_size=4, num_hypotheses=4)


@pytest.mark.parametrize("utility", ["bleu", "chrf"])
def test_with_a_utility_the_line_most_like_the_others_comes_first(utility: str) -> None:
    def lines(**changes: object) -> list[str]:
        decoding = replace(CANDIDATES, **changes)
        chooser = Translator(Repeating(FOUND), vocabularies(), decoding=decoding, longest=20)
        return list(chooser.translate(["Ja!", "", " ".join(["Satz 7 hat Worte wie 49."] * 2)]))

    assert lines() == [PROBABLE, "", f"{PROBABLE} {PROBABLE}"]
    assert lines(utility=utility) == [LIKE, "", f"{LIKE} {LIKE}"]


@pytest.mark.parametrize(
    ("found", "sampling", "best"),
    [(FOUND, False, LIKE), (CERTAIN, False, PROBABLE), (CERTAIN, True, LIKE)],
    ids=["alike", "by their scores", "drawn, as often as drawn"],
)
def test_how_much_candidates_count(found: dict[str, float], sampling: bool, best: str) -> None:
    drawn = {"beam_size": 1, "sampling": True} if sampling else {}
    decoding = replace(CANDIDATES, utility="chrf", **drawn)
    chooser = Translator(Repeating(found), vocabularies(), decoding=decoding)
    (ranked,) = chooser.translate_n_best(["Ja!"])
    assert ranked[0].text == best
    assert len(ranked) == 4
    assert all(0 < translation.score <= 100 for translation in ranked)


def test_a_batch_that_does_not_fit_into_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(PyTorchEngine, "_search_batch", full)
    with pytest.raises(UserError, match=r"decoding\.tokens_per_b"):
        list(translator().translate(["Worte wie diese."]))


@pytest.mark.parametrize("longest", [6, 100])
def test_spans_come_back_of_symbols_in_every_part_of_a_line(longest: int) -> None:
    count = 5
    marked = train_tokenizer(SENTENCES, CONFIG.tokenizer, symbols(count))
    engine = Echo()
    line = "Satz <b>7</b> hat {0} Worte %s wie a@b.de Ja!"
    both = Translator(engine, (marked, marked), longest=longest, decoding=CONFIG.decoding)
    assert list(both.translate([line, "", "Ja!"])) == [line, "", "Ja!"]
    pieces = [
        piece.strip("\u2581") for batch in engine.calls for ids in batch for piece in marked.pieces(ids)
    ]
    assert [piece for piece in pieces if "⟦" in piece] == symbols(count)
    one = Translator(engine, (marked, vocabularies()[1]), decoding=CONFIG.decoding)
    (other,) = one.translate([line])  # where one side lacks them, it is text
    assert "⟦" not in other
