import unicodedata
from dataclasses import replace

import pytest

from endeavour.evaluation.rates import SLACK, OutputRates, anomalies, output_flags, output_rates

SOURCE = "the old man reads a long newspaper today"


def _one(output: str, source: str = SOURCE, reference: str = "zwei Wörter") -> OutputRates:
    return output_rates([source], [output], [reference], known_characters="abcdefghijklmnopqrstuvwxyz")


def test_output_rates_count_what_they_name() -> None:
    outputs = ["", "  ", "same line", "no no no", "a b c d a b c d a b c d", "well well done", "fine", "fine"]
    sources = ["s", "s", "same line", "s", "s", "s", "s", "s"]
    rates = output_rates(sources, outputs, ["two words"] * 8)
    assert rates.empty == 2 / 8
    assert rates.copied == 1 / 8
    assert rates.repetitive == 2 / 8
    assert rates.length_ratio == (2 + 3 + 12 + 3 + 1 + 1) / 16
    assert rates.unseen_characters is None


def test_lines_are_compared_in_their_normal_form() -> None:
    plain = ["Müller & {a b}", "eins zwei"]
    odd = [unicodedata.normalize("NFD", " M\u00fcl\u00adler\u00a0&  {a \u00a0b}"), "eins \u200b\tzwei\ufeff"]
    rates = output_rates(odd, plain, plain)
    assert (rates.copied, rates.untranslated, rates.lost_spans) == (1, 1, 0)
    assert rates == output_rates(plain, odd, odd) == output_rates(plain, plain, plain)
    assert output_flags(odd[0], plain[0]) == ["copied"]
    assert output_flags("x", "\u200b") == ["empty"]


def test_a_line_is_too_long_or_short_past_twice_the_others_words_and_some() -> None:
    words = len(SOURCE.split())
    assert _one("wort " * (2 * words + SLACK)).too_long == 0
    assert _one("wort " * (2 * words + SLACK + 1)).too_long == 1
    source = "word " * (2 * 4 + SLACK)
    assert _one("vier " * 4, source).too_short == 0
    assert _one("vier " * 4, source + "word").too_short == 1


def test_an_empty_line_is_empty_and_not_also_short() -> None:
    rates = _one("")
    assert (rates.empty, rates.too_short, rates.copied, rates.untranslated) == (1, 0, 0, 0)


def test_untranslated_words_stand_in_their_own_source_line_and_have_a_letter() -> None:
    rates = output_rates(
        ["Anna has 3 cats.", "a dog"], ["Anna hat 3 cats", "Anna hat Anna"], ["Anna hat 3 Katzen", "ein Hund"]
    )
    assert rates.untranslated == 2 / 6  # Anna and cats, of six words with a letter
    assert _one("MAN").untranslated == 0


def test_characters_are_unseen_where_no_training_line_has_them() -> None:
    assert _one("ganz normal").unseen_characters == 0
    assert _one("ganz ☃").unseen_characters == 1


def _rates(empty: float = 0.0, untranslated: float = 0.04, length_ratio: float = 1.0) -> OutputRates:
    return OutputRates(empty, 0.0, 0.0, 0.0, 0.0, untranslated, None, None, length_ratio)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (_rates(), []),
        (_rates(empty=0.002), []),  # two slips in a thousand
        (_rates(empty=0.003), ["empty"]),
        (_rates(untranslated=0.06), []),
        (_rates(untranslated=0.07), ["untranslated"]),
        (_rates(untranslated=0.0), []),
        (_rates(length_ratio=0.89), ["length_ratio"]),
        (_rates(length_ratio=1.11, empty=1.0), ["empty", "length_ratio"]),
    ],
)
def test_what_is_an_anomaly(rates: OutputRates, expected: list[str]) -> None:
    assert anomalies(rates, _rates(), [SOURCE] * 1000) == expected


@pytest.mark.parametrize("sources", [["{a}"] * 10 + ["b"] * 990, ["{a} {b} {c}"] * 1000])
def test_two_lost_spans_are_no_anomaly_and_three_are(sources: list[str]) -> None:
    spans = sum(source.count("{") for source in sources)
    for lost, expected in ((0, []), (2, []), (3, ["lost_spans"])):
        rates = replace(_rates(), lost_spans=lost / spans)
        assert anomalies(rates, replace(_rates(), lost_spans=0.0), sources) == expected


def test_the_flags_of_lines_add_up_to_the_rates() -> None:
    lines = ["", SOURCE, "no no no", "wort " * 30, "kurz", "ein alter Mann liest heute eine lange Zeitung"]
    flags = [output_flags(SOURCE, line) for line in lines]
    assert flags[-1] == []
    rates = output_rates([SOURCE] * len(lines), lines, ["zwei Wörter"] * len(lines))
    for name in ("empty", "copied", "repetitive", "too_long", "too_short"):
        count = sum(name in found for found in flags)
        assert count
        assert getattr(rates, name) == count / len(lines)
