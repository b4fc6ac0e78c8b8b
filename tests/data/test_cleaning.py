"""Every dropped pair is counted, once, with examples; what stays is in normal form and in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from endeavour.data.cleaning import CleaningConfig, HeldOut, LengthCleaner, TextCleaner
from endeavour.data.cleaning_report import as_markdown, cleaning_report
from endeavour.data.normalization import normalize


def config(**changes) -> CleaningConfig:
    settings = {
        "drop_duplicates": True,
        "drop_overlap": True,
        "min_tokens": 1,
        "max_tokens": 50,
        "max_ratio": 3.0,
        "ratio_from_tokens": 12,
    }
    return CleaningConfig(**(settings | changes))


def cleaner(held_out=(), **changes) -> TextCleaner:
    held = HeldOut()
    held.add(held_out)
    return TextCleaner(config(**changes), held)


def dropped(cleaning) -> dict[str, int]:
    return {step.name: step.dropped for step in cleaning.steps if step.dropped}


def test_clean_pairs_pass_untouched():
    pairs = [(f"Sentence {i}.", f"Satz {i}.") for i in range(20)]
    one = cleaner()
    assert one.clean(pairs) == pairs
    assert dropped(one) == {}


def test_characters_and_whitespace_are_put_right_and_counted():
    one = cleaner()
    assert one.clean([("A  dog\u00a0.", "Ein\x07 Hu\u0308ndchen")]) == [("A dog .", "Ein Hündchen")]
    control, form = one.steps[:2]
    assert (control.changed, form.changed) == (1, 2)
    assert control.examples == [{"before": "Ein\\x07 Hu\u0308ndchen", "after": "Ein Hu\u0308ndchen"}]


def test_empty_sides_are_dropped():
    one = cleaner()
    assert one.clean([("", "Satz"), ("Sentence", " \u200b "), ("a", "b")]) == [("a", "b")]
    assert dropped(one) == {"empty": 2}


def test_duplicates_are_found_within_and_between_batches_and_the_first_stays():
    one = cleaner()
    assert one.clean([("a", "b"), ("a", "c"), ("a ", " b")]) == [("a", "b"), ("a", "c")]
    assert one.clean([("a", "c"), ("d", "e")]) == [("d", "e")]
    assert dropped(one) == {"duplicate": 2}
    assert cleaner(drop_duplicates=False).clean([("a", "b")] * 3) == [("a", "b")] * 3


def test_the_border_between_source_and_target_counts():
    pairs = [("a b", "c"), ("a", "b c")]
    assert cleaner().clean(pairs) == pairs


def test_either_side_of_a_held_out_pair_is_an_overlap_but_languages_stay_apart():
    pairs = [("seen", "x"), ("y", "gesehen"), ("gesehen", "seen"), ("new", "neu")]
    one = cleaner([("seen", "gesehen")])
    assert one.clean(pairs) == [("gesehen", "seen"), ("new", "neu")]
    assert dropped(one) == {"overlap with validation or test": 2}
    assert cleaner([("seen", "gesehen")], drop_overlap=False).clean(pairs) == pairs


@given(
    batches=st.lists(st.lists(st.tuples(st.text("ab \x07", max_size=3), st.text("ab", max_size=2)))),
    held_out=st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=2), st.text("ab", min_size=1, max_size=2))
    ),
)
def test_cleaning_is_what_a_naive_reading_of_the_rules_gives(batches, held_out):
    one = cleaner(held_out)
    kept = [pair for batch in batches for pair in one.clean(batch)]
    expected, seen = [], set()
    for source, target in (pair for batch in batches for pair in batch):
        pair = (normalize(source), normalize(target))
        if all(pair) and pair not in seen:
            seen.add(pair)
            if pair[0] not in {s for s, _ in held_out} and pair[1] not in {t for _, t in held_out}:
                expected.append(pair)
    assert kept == expected
    assert one.read == len(kept) + sum(dropped(one).values())


def test_length_limits_are_inclusive():
    one = LengthCleaner(config(min_tokens=2, max_tokens=10))
    kept = [one.keep(("s", "t"), source, target) for source, target in [(2, 2), (1, 2), (10, 10), (10, 11)]]
    assert kept == [True, False, True, False]
    assert [step.dropped for step in one.steps] == [1, 1, 0]


def test_the_ratio_counts_either_way_and_only_for_longer_pairs():
    one = LengthCleaner(config(max_ratio=3.0, ratio_from_tokens=12))
    assert one.keep(("s", "t"), 12, 4)
    assert one.keep(("s", "t"), 11, 1)
    assert not one.keep(("s", "t"), 12, 3)
    assert not one.keep(("s", "t"), 4, 13)
    assert dropped(one) == {"length ratio above 3": 2}


def test_three_examples_of_a_step_are_kept_readable():
    one = cleaner()
    one.clean([(f"{i}" * 500, "") for i in range(10)])
    examples = one.steps[2].examples
    assert [example["source"][0] for example in examples] == ["0", "1", "2"]
    assert all(len(example["source"]) == 201 for example in examples)


def test_the_report_accounts_for_every_pair():
    one = cleaner()
    one.clean([("a", "b"), ("a", "b"), ("`", "")])
    counts = {"train": {"pairs": 1, "source_tokens": 3, "target_tokens": 2}}
    report = cleaning_report(3, 1, one.steps, counts)
    assert report["read"] - report["kept"] == sum(step["dropped"] for step in report["steps"])
    text = as_markdown(report, "toy")
    assert "| duplicate | 0 | 1 |" in text
    assert "| train | 1 | 3 | 2 |" in text
    assert "`` ` ``" in text


def test_many_pairs_cost_eight_bytes_each():
    one = cleaner()
    one.clean([(f"s{i}", f"t{i}") for i in range(5000)])
    one.clean([(f"s{i}", f"t{i}") for i in range(2500, 7500)])
    seen = one.seen.hashes
    assert seen.nbytes == 8 * 7500
    assert np.all(seen[:-1] < seen[1:])


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
        config(**change)


def test_an_infinite_ratio_drops_nothing():
    assert LengthCleaner(config(max_ratio=float("inf"))).keep(("s", "t"), 1, 50)
