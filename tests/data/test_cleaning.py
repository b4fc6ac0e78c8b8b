"""Every dropped pair is counted, once, with examples; what stays is in normal form and in order."""

import unicodedata
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noise import cleaned
from pydantic import ValidationError

from configs import run_config
from endeavour.data.cleaning import (
    HeldOut,
    LengthCleaner,
    Step,
    TextCleaner,
    restore_steps,
)
from endeavour.data.cleaning_report import as_markdown
from endeavour.data.duplicates import SeenHashes, pair_hashes
from endeavour.data.normalization import SPACE_MARK, normalize, remove_control_characters

CONFIG = replace(run_config().cleaning, max_tokens=50, max_ratio=2.5)


def cleaner(held_out=(), **changes) -> TextCleaner:
    held = HeldOut()
    held.add(held_out)
    return TextCleaner(replace(CONFIG, **changes), held, ("en", "de"))


def dropped(cleaning) -> dict[str, int]:
    return {step.name: step.dropped for step in cleaning.steps if step.dropped}


def test_every_step_has_a_name_a_count_and_its_first_three_pairs():
    one = cleaner([("held", "x")])
    pairs = [("a", "b"), ("a", "b"), ("", "c"), ("held", "d"), ("e\x07", "f  g"), *[("a", "b")] * 3]
    assert cleaned(one, pairs) == [("a", "b"), ("e", "f g")]
    assert [asdict(step) for step in one.steps] == [
        {"name": name, "changed": changed, "dropped": dropped, "examples": examples}
        for name, changed, dropped, examples in (
            ("control characters", 1, 0, [{"before": "e\\x07", "after": "e"}]),
            ("unicode and whitespace", 1, 0, [{"before": "f  g", "after": "f g"}]),
            ("empty", 0, 1, [{"source": "", "target": "c"}]),
            ("overlap with validation or test", 0, 1, [{"source": "held", "target": "d"}]),
            ("duplicate", 0, 4, [{"source": "a", "target": "b"}] * 3),
        )
    ]
    assert one.read == 8
    other = cleaner()
    restore_steps(other.steps, [asdict(step) for step in one.steps])
    assert other.steps == one.steps


def test_a_step_that_is_switched_off_drops_nothing():
    assert cleaned(cleaner(drop_duplicates=False), [("a", "b")] * 3) == [("a", "b")] * 3
    pairs = [("seen", "x"), ("y", "gesehen")]
    assert cleaned(cleaner([("seen", "gesehen")], drop_overlap=False), pairs) == pairs


@given(
    batches=st.lists(st.lists(st.tuples(st.text("ab \x07", max_size=3), st.text("ab", max_size=2)))),
    held_out=st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=2), st.text("ab", min_size=1, max_size=2))
    ),
)
def test_cleaning_is_what_a_naive_reading_of_the_rules_gives(batches, held_out):
    """A duplicate may be in an earlier batch; either side can overlap, but the languages stay apart."""
    one = cleaner(held_out)
    kept = [pair for batch in batches for pair in cleaned(one, batch)]
    expected, seen = [], set()
    for source, target in (pair for batch in batches for pair in batch):
        pair = (normalize(source), normalize(target))
        if all(pair) and pair not in seen:
            seen.add(pair)
            if pair[0] not in {s for s, _ in held_out} and pair[1] not in {t for _, t in held_out}:
                expected.append(pair)
    assert kept == expected
    assert one.read == len(kept) + sum(dropped(one).values())


@given(st.lists(st.lists(st.tuples(*[st.sampled_from(["a", "b", "a b", "ab"])] * 2), max_size=6), max_size=4))
def test_a_pair_was_seen_if_it_came_before(batches):
    """The border between source and target counts; of each pair one hash is told."""
    seen = SeenHashes()
    before = set()
    for batch in batches:
        for pair, answer in zip(batch, seen.drops(pair_hashes(batch)), strict=True):
            assert answer == (pair in before)
            before.add(pair)
    new = seen.take_new()
    assert (new.dtype, len(new), len(set(new.tolist()))) == (np.uint64, len(before), len(before))
    assert len(seen.take_new()) == 0


# Many that differ only in what is kept beside the sorted 32 bits, and in the shelf, and in what is not kept.
_near_equal = st.builds(
    lambda *parts: sum(parts), *[st.sampled_from([0, 1 << bit, 3 << bit]) for bit in (62, 58, 26, 25, 18, 0)]
)


@given(st.lists(st.lists(_near_equal | st.integers(0, 2**64 - 1), max_size=30), max_size=8))
def test_of_a_hash_the_first_46_bits_are_remembered(batches):
    seen, before = SeenHashes(), set()
    for batch in batches:
        first = {}
        for number, one in enumerate(batch):
            first.setdefault(one, number)
        expected = [one >> 18 in before or first[one] < number for number, one in enumerate(batch)]
        assert seen.add(np.array(batch, np.uint64)).tolist() == expected
        before.update(one >> 18 for one in batch)


def test_lengths_are_named_by_their_limits_which_are_inclusive():
    """The ratio counts either way, and only where the longer side has twelve tokens."""
    lengths = LengthCleaner(replace(CONFIG, min_tokens=3, max_tokens=40))
    kept = [(3, 3), (40, 40), (40, 16), (11, 3), (12, 5)]
    assert all(lengths.keep(("s", "t"), *pair) for pair in kept)
    too_long = [(2, 9), (9, 2), (41, 41), (3, 41), (40, 15), (15, 40), (12, 4)]
    assert not any(lengths.keep(("s", "t"), *pair) for pair in too_long)
    assert [(step.name, step.dropped) for step in lengths.steps] == [
        ("fewer than 3 tokens", 2),
        ("more than 40 tokens", 2),
        ("length ratio above 2.5", 3),
    ]
    assert LengthCleaner(replace(CONFIG, max_ratio=float("inf"))).keep(("s", "t"), 1, 50)


def test_what_an_example_shows_is_cut_after_200_characters():
    one = cleaner()
    cleaned(one, [("a" * 200, ""), ("a" * 201, ""), ("é\u202e", "")])
    assert [example["source"] for example in one.steps[2].examples] == ["a" * 200, "a" * 200 + "…", "é"]
    assert one.steps[0].examples[0]["before"] == "é\\u202e"


def test_the_report_shows_every_count_and_any_text():
    one = cleaner()
    cleaned(one, [("a", "b"), ("a", "b"), ("`", "")])
    splits = {"train": {"pairs": 1, "source_tokens": 3, "target_tokens": 2}}
    steps = [asdict(step) for step in one.steps]
    text = as_markdown({"read": 3, "kept": 1, "steps": steps, "splits": splits}, "toy")
    for line in ("| duplicate | 0 | 1 |", "| train | 1 | 3 | 2 |", "`` ` ``"):
        assert line in text


@pytest.mark.parametrize(
    "change",
    [
        {"min_tokens": 0},
        {"max_tokens": 0},
        {"max_ratio": 0.5},
        {"max_ratio": float("nan")},
        {"ratio_from_tokens": -1},
    ],
)
def test_impossible_limits_are_named(change):
    with pytest.raises(ValidationError, match=next(iter(change))):
        replace(CONFIG, **change)


# What is taken out by its meaning, as against the ranges that the module lists.
INVISIBLE = {chr(number) for number in (0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF)}
DIRECTIONS = {chr(number) for number in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def test_control_characters_are_those_of_unicode_but_for_whitespace():
    for character in map(chr, range(0x30000)):
        control = unicodedata.category(character) in ("Cc", "Cs") and not character.isspace()
        left = "" if control or character in INVISIBLE | DIRECTIONS else character
        assert remove_control_characters(f"a{character}b") == f"a{left}b", hex(ord(character))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        ("  a \t b\u00a0\u2003c\r\n", "a b c"),
        ("u\u0308ber", "über"),
        ("a\x00b\x07c\ufeffd\u200be\u00adf", "abcdef"),
        ("\ud800lone", "lone"),
        ("A \u202edog\u2069", "A dog"),
        ("A\u2028dog", "A dog"),
        ("\u2581a\u2581\u2581b", "a b"),
        ("½ … ﬁ", "½ … ﬁ"),
        ("u\u200b\u0308", "ü"),
        ("👩\u200d🔧 ❤\ufe0f", "👩\u200d🔧 ❤\ufe0f"),
    ],
)
def test_the_documented_normal_form(text, normal):
    assert normalize(text) == normal


@given(text=st.text(max_size=60) | st.text("a1 \u2581\u0308ü\u00a0\u200b\u0343\t", max_size=9))
@settings(max_examples=300)
def test_the_normal_form_is_its_own_normal_form(text):
    normal = normalize(text)
    assert normalize(normal) == normal
    assert unicodedata.is_normalized("NFC", normal)
    assert normal == " ".join(normal.replace(SPACE_MARK, " ").split())
    assert normal == remove_control_characters(normal)


def test_a_step_counts_each_change() -> None:
    step = Step("some step")
    for number in range(3):
        step.change(f"before {number}", f"after {number}")
    assert step.changed == 3
