"""Sentences of a line: nothing lost, abbreviations and numbers whole, and one line out for one line in."""

from dataclasses import replace
from unittest.mock import Mock

import pytest
from echo import BEAM, Echo, translator
from hypothesis import example, given
from hypothesis import strategies as st

from endeavour.decoding import sentences as module
from endeavour.decoding.sentences import split_sentences

ENGLISH = [
    ["Dr. Smith arrived at 5 p.m. on Monday.", "He was late."],
    ["Mr. and Mrs. Brown live in St. Louis.", "They moved there in Jan. 2019."],
    ['"Where are you going?" she asked.', '"Home," he said.'],
    ['He said: "I am tired. I want to sleep."', "Then he left."],
    ["The U.S. economy grew by 2.5 percent.", "Prices fell."],
    ["Is it true?!", "Yes.", "It is."],
    ["J. R. R. Tolkien wrote it.", "I read it twice."],
    ["We met at 10 a.m.", "The train left at noon."],
    ["1. Open the box."],
    ["The file is called main.py.", "Open it."],
    ["He was born in 1945.", "Then came peace."],
]
GERMAN = [
    ["Dr. Müller kam am 3. Mai um 17 Uhr an.", "Er war zu spät."],
    ["Das gilt z. B. für Hunde, Katzen usw. und auch für Vögel.", "Mehr nicht."],
    ["„Wohin gehst du?“, fragte sie.", "„Nach Hause“, sagte er."],
    ["Er sagte: „Ich bin müde. Ich will schlafen.“", "Dann ging er."],
    ["Siehe Abb. 3 und S. 17 ff. im Buch.", "Nr. 7 fehlt."],
    ["Der 2. Weltkrieg endete 1945.", "Danach kam der Frieden."],
    ["Er kam im 19. Jh. nach Wien.", "Dort blieb er."],
    ["Prof. Dr. h. c. Meier hielt den Vortrag.", "Alle klatschten."],
    ["Sie kommt am 24.12. zu uns.", "Wir freuen uns."],
]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [*(("en", row) for row in ENGLISH), *(("de", row) for row in GERMAN)],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_line_is_cut_between_its_sentences_alone(language: str, sentences: list[str]) -> None:
    found = split_sentences("  ".join(sentences) + "\t", language)
    assert found == [*((sentence, "  ") for sentence in sentences[:-1]), (sentences[-1], "\t")]


@pytest.mark.parametrize(("language", "rows"), [("en", ENGLISH), ("de", GERMAN)])
@pytest.mark.parametrize("at_once", [95, 211])
def test_a_line_that_is_read_in_parts_has_the_same_sentences(
    monkeypatch: pytest.MonkeyPatch, at_once: int, language: str, rows: list[list[str]]
) -> None:
    line = " ".join(sentence for row in [*rows, *rows] for sentence in row)
    whole = split_sentences(line, language)
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    assert split_sentences(line, language) == whole
    assert len(line) > 2 * at_once


def test_a_sentence_is_not_cut_within_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 10)
    found = [text for text, _ in split_sentences("Unfortunately nobody knows. It rains.", "en")]
    assert found == ["Unfortunately nobody knows.", "It rains."]


def test_opening_marks_are_not_read_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """sentencex would take seconds, in which no other thread of the server runs."""
    segment = Mock(wraps=module.sentencex.segment)
    monkeypatch.setattr(module.sentencex, "segment", segment)
    assert split_sentences("„" * 20_000, "de") == [("„" * 20_000, "")]
    assert max(len(call.args[1]) for call in segment.call_args_list) <= 4_000


@given(st.text('Ab.!?„“"1 \t\u00a0\u2028ß😀\ud800', max_size=30), st.sampled_from(["en", "de"]))
@example("Vitamin C\u00a0. He sees.", "en")
@example("Vitamin C\u202f. Er sieht.", "de")
@example("A lone \ud800 surrogate.", "en")
def test_the_sentences_and_their_spaces_are_the_line(line: str, language: str) -> None:
    found = split_sentences(line, language)
    assert "".join(sentence + space for sentence, space in found) == line
    assert all(space.isspace() or not space for _, space in found)
    assert all(space for _, space in found[:-1])
    if len(found) > 1:
        assert found[-1][0]


def test_a_line_of_many_numbers_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    number = Mock(wraps=module._NUMBER)
    monkeypatch.setattr(module, "_NUMBER", number)
    line = "1. " * 100
    assert split_sentences(line, "en") == [(line.rstrip(), " ")]
    places = [call.args[1:] for call in number.search.call_args_list]
    assert places == [(start, start + 3) for start in range(0, len(line) - 3, 3)]


def test_sentences_are_translated_one_by_one_and_their_spaces_stay() -> None:
    engine = Echo()
    one = translator(engine, decoding=replace(BEAM, split_sentences=True), language="en", longest=6)
    lines = ["aa. Bb?  Cc!", "", " Dd.\tee. ", "Mr. Ff.", "Gg. Abcdefgh ij. Klmnop."]
    assert list(one.translate(lines)) == [
        "aa. bb?  cc!",
        "",
        "dd.\tee.",
        "mr. ff.",
        "gg. abcde fgh ij. klmno p.",
    ]
    assert [len(call) for call in engine.calls] == [13]
    assert one.in_parts == 2, "lines, of which the second has two sentences that are cut"
    whole = translator(Echo(), longest=60)
    assert list(whole.translate(lines[:1])) == ["aa. bb? cc!"]
