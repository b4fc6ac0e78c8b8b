"""What cleaning writes down of what it does, and the normal form character by character."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endeavour.data.cleaning import (
    CleaningConfig,
    HeldOut,
    LengthCleaner,
    SeenPairs,
    TextCleaner,
    restore_steps,
)
from endeavour.data.normalization import normalize, remove_control_characters


def config(**changes: object) -> CleaningConfig:
    values: dict[str, object] = {
        **{"drop_duplicates": True, "drop_overlap": True, "min_tokens": 1, "max_tokens": 50},
        **{"max_ratio": 2.5, "ratio_from_tokens": 12},
        **changes,
    }
    return CleaningConfig(**values)  # type: ignore[arg-type]


def test_every_step_has_a_name_a_count_and_its_first_three_pairs() -> None:
    held_out = HeldOut()
    held_out.add([("held", "x")])
    cleaner = TextCleaner(config(), held_out)
    pairs = [("a", "b"), ("a", "b"), ("", "c"), ("held", "d"), ("e\x07", "f  g"), *[("a", "b")] * 3]
    assert cleaner.clean(pairs) == [("a", "b"), ("e", "f g")]
    assert [(step.name, step.changed, step.dropped) for step in cleaner.steps] == [
        ("control characters", 1, 0),
        ("unicode and whitespace", 1, 0),
        ("empty", 0, 1),
        ("duplicate", 0, 4),
        ("overlap with validation or test", 0, 1),
    ]
    assert [step.examples for step in cleaner.steps] == [
        [{"before": "e\\x07", "after": "e"}],
        [{"before": "f  g", "after": "f g"}],
        [{"source": "", "target": "c"}],
        [{"source": "a", "target": "b"}] * 3,
        [{"source": "held", "target": "d"}],
    ]
    assert cleaner.read == 8


def test_lengths_are_named_by_their_limits() -> None:
    lengths = LengthCleaner(config(min_tokens=3, max_tokens=40))
    assert [step.name for step in lengths.steps] == [
        "fewer than 3 tokens",
        "more than 40 tokens",
        "length ratio above 2.5",
    ]
    kept = [(3, 3), (40, 40), (40, 16), (11, 3), (12, 5)]
    dropped = [(2, 9), (9, 2), (41, 41), (3, 41), (40, 15), (15, 40), (12, 4)]
    assert all(lengths.keep(("s", "t"), *pair) for pair in kept)
    assert not any(lengths.keep(("s", "t"), *pair) for pair in dropped)
    assert [step.dropped for step in lengths.steps] == [2, 2, 3]


def test_what_an_example_shows_is_cut_after_200_characters() -> None:
    cleaner = TextCleaner(config(), HeldOut())
    cleaner.clean([("a" * 200, ""), ("a" * 201, ""), ("é\u202e", "")])
    assert [example["source"] for example in cleaner.steps[2].examples] == ["a" * 200, "a" * 200 + "…", "é"]
    assert cleaner.steps[0].examples[0]["before"] == "é\\u202e"


def test_steps_come_back_as_they_were_saved() -> None:
    saved, other = (TextCleaner(config(), HeldOut()) for _ in range(2))
    saved.clean([("a\x07", "b"), ("a", "b")])
    restore_steps(other.steps, [vars(step) for step in saved.steps])
    assert other.steps == saved.steps


@given(st.lists(st.lists(st.tuples(*[st.sampled_from(["a", "b", "a b", "ab"])] * 2), max_size=6), max_size=4))
def test_a_pair_was_seen_if_it_came_before(batches: list[list[tuple[str, str]]]) -> None:
    seen = SeenPairs()
    before: set[tuple[str, str]] = set()
    for batch in batches:
        for pair, answer in zip(batch, seen.add(batch), strict=True):
            assert answer is (pair in before)
            before.add(pair)
    assert seen.hashes.dtype == np.uint64
    assert len(seen.hashes) == len(before)
    assert np.all(seen.hashes[:-1] < seen.hashes[1:])


# What is taken out by its meaning, as against the ranges that the module lists.
INVISIBLE = {chr(number) for number in (0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF)}
DIRECTIONS = {chr(number) for number in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def test_control_characters_are_those_of_unicode_but_for_whitespace() -> None:
    for number in range(0x30000):
        character = chr(number)
        control = unicodedata.category(character) in ("Cc", "Cs") and not character.isspace()
        gone = control or character in INVISIBLE | DIRECTIONS
        assert remove_control_characters(f"a{character}b") == ("ab" if gone else f"a{character}b"), hex(
            number
        )


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        ("  a \t b\u00a0\u2003c\r\n", "a b c"),
        ("u\u0308", "ü"),
        ("\u2581a\u2581\u2581b", "a b"),
        ("½ … ﬁ", "½ … ﬁ"),
        ("a\u200bb", "ab"),
        ("u\u200b\u0308", "ü"),
        ("👩\u200d🔧 ❤\ufe0f", "👩\u200d🔧 ❤\ufe0f"),
    ],
)
def test_the_normal_form(text: str, normal: str) -> None:
    assert normalize(text) == normal
    assert normalize(normal) == normal
