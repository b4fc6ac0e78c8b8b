"""What the steps for crawled text drop and what they leave, on pairs that a reader can judge."""

import re
import sys
from dataclasses import replace

import eldc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noise import cleaned
from pydantic import ValidationError

from configs import run_config
from endeavour.data.agreement import numbers_agree, symbols_agree
from endeavour.data.cleaning import CleaningConfig, HeldOut, TextCleaner
from endeavour.data.duplicates import NearHashes, SeenHashes
from endeavour.data.languages import LanguageCheck
from endeavour.data.surface import Side, is_broken, letter_runs, markup_share, overlap, repetition
from endeavour.errors import UserError
from endeavour.textbook.generate import textbook_splits

CLEAN = [
    ("The meeting begins at 3:30 pm on May 5, 2019.", "Die Sitzung beginnt am 05.05.2019 um 15:30 Uhr."),
    ("Angela Merkel visited Barack Obama in Berlin.", "Angela Merkel besuchte Barack Obama in Berlin."),
    ("About 12,500 people (15%) live there.", "Etwa 12.500 Menschen (15 Prozent) leben dort."),
    ("Yes, please!", "Ja, bitte!"),
    ("Write to info@example.org to know more.", "Wer mehr wissen will, schreibt an info@example.org."),
    ("A man with a hat talks to a man with a scarf.", "Ein Mann mit Hut spricht mit einem Mann mit Schal."),
]  # fmt: skip
DIRTY = {
    "markup": ("Home | News | Contact | About us", "Start | Neues | Kontakt | Über uns"),
    "broken characters": ("A door for the room.", "Eine TÃ¼r fÃ¼r das Zimmer."),
    "repetition": ("He said bla bla bla bla bla.", "Er sagte bla bla bla bla bla."),
    "untranslated": ("The garden is behind the house.", "The garden ist hinter the house."),
    "numbers differ": ("The train leaves at 8:15.", "Der Zug fährt um 9:40 ab."),
    "symbols differ": ("It costs 20 € less.", "Es kostet 20 weniger."),
    "wrong language": ("The garden lies behind the old house.", "Le jardin se trouve derrière la vieille maison."),
    "near-duplicate": ("- ABOUT 13,500 PEOPLE (15%) LIVE THERE", "- ETWA 13.500 MENSCHEN (15 %) LEBEN DORT"),
}  # fmt: skip


def crawled(*overrides: str) -> CleaningConfig:
    return run_config(["cleaning=crawled", *overrides]).cleaning


def clean(config: CleaningConfig, pairs, languages=("en", "de"), size=100):
    cleaner = TextCleaner(config, HeldOut(), languages)
    kept = [
        pair for start in range(0, len(pairs), size) for pair in cleaned(cleaner, pairs[start : start + size])
    ]
    return kept, {step.name: step.dropped for step in cleaner.steps if step.dropped}


def test_each_step_drops_its_pair_and_none_a_good_one() -> None:
    kept, dropped = clean(crawled(), [*CLEAN, *DIRTY.values()])
    assert kept == CLEAN
    assert dropped == dict.fromkeys(DIRTY, 1)


def test_the_direction_changes_nothing() -> None:
    pairs = [(german, english) for english, german in [*CLEAN, *DIRTY.values()]]
    kept, dropped = clean(crawled(), pairs, ("de", "en"))
    assert kept == [(german, english) for english, german in CLEAN]
    assert dropped == dict.fromkeys(DIRTY, 1)


def test_a_step_that_is_switched_off_drops_nothing_and_needs_no_package(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "eldc", None)
    monkeypatch.setitem(sys.modules, "rensa", None)
    config = crawled()
    assert config.crawled is not None
    off = replace(
        config.crawled,
        **dict.fromkeys(("max_markup", "max_repetition", "max_copied", "language_margin", "near_duplicates")),
        drop_broken=False,
        match_numbers=False,
        match_symbols=False,
    )
    pairs = [*CLEAN, *DIRTY.values()]
    assert clean(replace(config, crawled=off), pairs) == (pairs, {})
    for key in ("language_margin", "near_duplicates"):
        with pytest.raises(UserError, match=r"\[filter\]|pip install eldc"):
            clean(replace(config, crawled=replace(off, **{key: 0.9})), pairs)


def test_the_textbook_is_clean() -> None:
    pairs = [*textbook_splits(seed=5, train_pairs=2000)["train"]]
    kept, dropped = clean(crawled("cleaning.crawled.near_duplicates=null"), pairs)
    assert len(kept) > 0.99 * len(pairs), dropped


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("1,000,000 people", "1.000.000 Menschen"),
        ("10,000 people", "10 000 Menschen"),
        ("3.5 litres", "3,5 Liter"),
        ("5/3/2005", "3.5.2005"),
        ("May 3, 2005", "03.05.2005"),
        ("at 3 pm", "um 15 Uhr"),
        ("at 11:45 a.m.", "um 11.45 Uhr"),
        ("Open 9am-5pm", "Geöffnet von 9 bis 17 Uhr"),
        ("at 12:15 am", "um 0:15 Uhr"),
        ("at 3 pm", "um fünfzehn Uhr"),
        ("three p.m.", "15 Uhr"),
        ("at 12 am", "um 0 Uhr"),
        ("I am 20 years old.", "Ich bin zwanzig Jahre alt."),
        ("There were 14 people on Monday.", "Am Montag waren vierzehn Leute da."),
        ("100 people", "hundert Menschen"),
        ("a thousand", "1000"),
        ("100% sure", "hundertprozentig sicher"),
        ("2 million dollars", "2.000.000 Dollar"),
        ("1.5 million", "1.500.000"),
        ("two thousand", "2.000"),
        ("twenty-one cats", "21 Katzen"),
        ("the 21st time", "zum einundzwanzigsten Mal"),
        ("a 3-year-old", "eine Dreijährige"),
        ("the fortieth day", "der 40. Tag"),
        ("in the 1990s", "in den 1990er Jahren"),
        ("Henry VIII", "Heinrich der 8."),
        ("half a loaf", "1/2 Brot"),
        ("1 dog", "ein Hund"),
        ("5.00", "5"),
        ("seven cats", "acht Katzen"),  # in words on both sides: not compared
    ],
)
def test_numbers_agree_however_they_are_written(english, german) -> None:
    assert numbers_agree(english, german)


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("8 cats", "9 Katzen"),
        ("100 cats", "10 Katzen"),
        ("twenty cats", "30 Katzen"),
        ("in 1998", "im letzten Jahr"),
        ("at 3 pm", "um 16 Uhr"),
        ("on 13 May", "am 1. Mai"),
        ("I am 15 years old.", "Ich bin 3 Jahre alt."),
        ("1,000 people", "1,5 Leute"),
        ("2 million", "3.000.000"),
        ("3 hundred", "hundert"),
        ("5 programs", "17 Programme"),
        ("tennis", "10 Spiele"),
    ],
)
def test_numbers_that_differ_are_noticed_on_either_side(english, german) -> None:
    assert not numbers_agree(english, german)


def test_a_symbol_may_be_named_on_the_other_side() -> None:
    assert symbols_agree("5% of $3", "5 Prozent von 3 Dollar")
    assert symbols_agree("20 degrees", "20 °C")
    assert symbols_agree("100% sure", "hundertprozentig sicher")
    assert not symbols_agree("20 people", "20 °C")
    assert not symbols_agree("€5", "$5")


def test_shares_of_a_line() -> None:
    assert markup_share('<a href="x y">Read more</a> &nbsp; now') == pytest.approx(3 / 6)
    assert markup_share("See www.example.org or a/b.html for - that") == pytest.approx(3 / 7)
    assert markup_share("Plain, good words; and 1,000 more!") == 0
    assert markup_share("- Yes.") == 0
    assert repetition(Side.of("aaaaaaaa bb")) == pytest.approx(8 / 11)
    assert repetition(Side.of("ha ha ha ha")) == pytest.approx(2 / 3)
    assert repetition(Side.of("1 2 1 2 1 2")) == pytest.approx(3 / 5)
    assert repetition(Side.of("10000000 one two three four")) == 0
    assert repetition(Side.of(".")) == 0
    assert overlap(Side.of("The dog and the cat see Rex"), Side.of("Der Hund and the Rex")) == pytest.approx(
        2 / 5
    )
    assert overlap(Side.of("Rex in Paris"), Side.of("Rex in Paris bei Max")) == 0
    assert overlap(Side.of("Rex in Paris"), Side.of("REX IN PARIS")) == 1
    assert overlap(Side.of("12"), Side.of("12")) == 1


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_every_text_has_shares_and_agrees_with_itself(one, other) -> None:
    side = Side.of(one)
    assert all(
        0 <= share <= 1 for share in (markup_share(one), repetition(side), overlap(side, Side.of(other)))
    )
    assert numbers_agree(one, one)
    assert symbols_agree(one, one)


SIGNS = [*"aB1é.,:/\\-–#+*»·{|=_~[]<>&;@ ÃÂâ€%$°§©\ufffd„", "www", "http", ".com", ".PHP"]


@given(st.lists(st.sampled_from(SIGNS) | st.characters()).map("".join))
def test_a_side_without_signs_has_nothing_that_they_are_looked_for_by(line: str) -> None:
    assert Side.of(line).may_have_signs or (
        markup_share(line) == 0 and not is_broken(line) and symbols_agree(line, "")
    )


def test_ordinary_punctuation_is_no_sign() -> None:
    assert not Side.of("Good words; and 'more' of them, as 1,000!").may_have_signs
    assert not Side.of("Good words; and „more“ of them, as 1,000!").may_have_signs  # „ is not in Latin-1


def test_a_line_is_judged_by_its_language_if_it_is_long_enough() -> None:
    check = LanguageCheck(0.1, from_letters=12)
    german, english = "Der Hund schläft unter dem Tisch.", "The dog sleeps under the table."
    assert not check.differs(german, "de")
    assert not check.differs(english, "en")
    assert check.differs(german, "en")
    assert check.differs(english, "de")
    assert check.differs("Der Hund schläft und sleeps under the table.", "de")
    assert not check.differs("Ja, gerne.", "en")
    assert not LanguageCheck(0.1, from_letters=100).differs(german, "en")
    assert not LanguageCheck(1.0, from_letters=1).differs(german, "en")


@given(
    st.lists(
        st.sampled_from(
            ["le", "chat", "der", "Hund", "the", "dog", "una", "casa", "gern", "often", "æble", "łza"]
        ),
        min_size=2,
    )
)
def test_the_language_that_is_asked_for_first_is_that_of_the_highest_score(words) -> None:
    LanguageCheck(0.1, from_letters=1)  # sets up eldc
    scores = eldc.detect_details(text := " ".join(words)).scores
    found = eldc.detect_mt(text)
    assert found == "und" or scores[found] == max(scores.values())


@given(st.text() | st.text(st.characters(max_codepoint=255)))
def test_words_are_those_that_a_regular_expression_finds(text) -> None:
    assert letter_runs(text) == re.findall(r"[^\W\d_]+", text)
    side = Side.of(text)
    assert side.words == re.findall(r"\w+", text.casefold())
    assert side.letter_words == re.findall(r"[^\W\d_]+", text.casefold())
    assert side.may_have_digits or not re.search(r"\d", text)


def test_near_duplicates_share_their_words_whatever_their_dress_and_numbers() -> None:
    hashes, seen = NearHashes(0.85), SeenHashes()

    def near(pairs):
        return hashes([(Side.of(source), Side.of(target)) for source, target in pairs])

    pairs = [
        ("The three old men sat down beside the river.", "Die drei alten Männer setzten sich an den Fluss."),
        ("THE THREE OLD MEN SAT DOWN BESIDE THE RIVER!", "– Die drei alten Männer setzten sich an den Fluss"),
        (
            "(7) The three old men sat down beside the river",
            "(8) Die drei alten Männer setzten sich an den Fluss",
        ),
        ("The two young men sat down beside the lake.", "Die zwei jungen Männer setzten sich an den See."),
        ("Die drei alten Männer setzten sich an den Fluss.", "The three old men sat down beside the river."),
        ("12", "12"),
        ("13", "13"),
        ("12", "12"),
    ]
    assert seen.drops(near(pairs)).tolist() == [False, True, True, False, False, False, False, True]
    assert seen.drops(near([pairs[3], ("A new line.", "Eine neue Zeile.")])).tolist() == [True, False]


@given(st.lists(st.tuples(*[st.sampled_from(["a b c", "A b, c", "d", "1", "d e f g"])] * 2), max_size=12))
def test_what_is_near_does_not_depend_on_batches(pairs) -> None:
    near, at_once, one_by_one = NearHashes(0.8), SeenHashes(), SeenHashes()
    sides = [(Side.of(source), Side.of(target)) for source, target in pairs]
    assert at_once.drops(near(sides)).tolist() == [
        drop for pair in sides for drop in one_by_one.drops(near([pair])).tolist()
    ]
    assert set(at_once.take_new().tolist()) == set(one_by_one.take_new().tolist())


@pytest.mark.parametrize(
    "override", ["max_copied=1.5", "language_margin=-1", "language_from_letters=0", "near_duplicates=1"]
)
def test_impossible_limits_are_named(override) -> None:
    with pytest.raises((ValidationError, UserError), match=override.partition("=")[0]):
        crawled(f"cleaning.crawled.{override}")
