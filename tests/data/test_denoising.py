"""Masked sentences in place of pairs: what is hidden, what is left, and which text they are made of."""

from dataclasses import replace
from itertools import pairwise

import pytest
from building import DIRTY, TEST, TRAIN, pairs_of, prepared, rates, text_of, write
from hypothesis import given
from hypothesis import strategies as st

from configs import run_config
from endeavour.data.denoising import MASK, MASKED, denoising_pairs
from endeavour.data.normalization import normalize
from endeavour.errors import UserError

words = st.text(st.characters(categories=["L"]), min_size=1)
sentences = st.lists(words, max_size=40).map(" ".join)


@given(sentences, st.integers(0, 9))
def test_three_words_of_ten_are_hidden_and_each_span_of_them_is_one_mask(text: str, seed: int) -> None:
    ((masked, whole),) = denoising_pairs([(text, text)], 1, seed)[:1]
    assert whole == text
    shown, genuine = masked.split(), text.split()
    assert (MASK, MASK) not in pairwise(shown)
    left = [word for word in shown if word != MASK]
    remaining = iter(genuine)
    assert all(word in remaining for word in left)  # in their order
    assert len(genuine) - len(left) == (max(1, round(MASKED * len(genuine))) if genuine else 0)


def test_copies_are_of_both_sides_and_differ_by_their_number_and_the_seed() -> None:
    pair = tuple(" ".join(f"{letter}{number}" for number in range(40)) for letter in "sz")
    copies = denoising_pairs([pair], 3, seed=1)
    assert [whole for _, whole in copies] == [pair[0]] * 3 + [pair[1]] * 3
    assert len({masked.replace("z", "s") for masked, _ in copies}) == 6
    assert denoising_pairs([pair], 3, seed=1) == copies
    assert denoising_pairs([("other", "anderes"), pair], 3, seed=1)[2:] == copies
    assert set(denoising_pairs([pair], 3, seed=2)).isdisjoint(copies)
    assert denoising_pairs([("one", "eins")], 4, seed=1) == [(MASK, "one"), (MASK, "eins")]


def test_spans_have_three_words_on_average() -> None:
    text = " ".join(map(str, range(1000)))
    copies = denoising_pairs([(text, "")], 20, seed=1)[:20]
    # Spans of a Poisson distribution without 0 have 3.16 words. Some touch, which makes one of two.
    assert 3.1 < 300 / (sum(masked.split().count(MASK) for masked, _ in copies) / len(copies)) < 5


def test_all_splits_are_masked_and_the_vocabulary_is_that_of_the_text(settings) -> None:
    plain = prepared(**settings)
    data = prepared(**settings, augmentation=rates(denoising=2))
    genuine = [(normalize(source), normalize(target)) for source, target in TRAIN]
    assert text_of(data) == pairs_of(data) == denoising_pairs(genuine, 2, seed=1)
    for side in ("source", "target"):
        assert (data.folder / f"{side}.model").read_bytes() == (plain.folder / f"{side}.model").read_bytes()
    masked = denoising_pairs([(normalize(source), normalize(target)) for source, target in TEST], 1, seed=1)
    assert list(zip(data.lines("test", "source"), data.lines("test", "target"), strict=True)) == masked
    report = (data.folder / "report.md").read_text("utf-8")
    assert f"| masked copies, in place of the pairs | {len(pairs_of(data))} |" in report
    assert "Validation and test were masked" in report
    assert "Validation and test were not cleaned" in (plain.folder / "report.md").read_text("utf-8")
    assert prepared(**settings, augmentation=rates(denoising=2, seed=2)).folder != data.folder


def test_pairs_are_counted_as_they_were_before_they_were_masked(settings, tmp_path) -> None:
    settings["corpus"] = replace(write(tmp_path / "dirty", train=DIRTY), held_out_rare=20)
    data = prepared(**settings, augmentation=rates(denoising=2))
    kept = len(TRAIN) + 1 - 20  # of these the one that is too long is dropped only when it is masked
    assert (data.report["read"], data.report["kept"]) == (len(DIRTY), kept)


def test_the_pairs_with_the_rarest_words_are_not_in_the_text(settings) -> None:
    settings["corpus"] = replace(settings["corpus"], held_out_rare=20)
    held = prepared(**settings)
    data = prepared(**settings, augmentation=rates(denoising=1))
    texts = {whole for _, whole in pairs_of(data)}
    assert texts == {text for pair in pairs_of(held) for text in pair}
    rare = [data.lines("validation_rare", side) for side in ("source", "target")]
    genuine = zip(*(held.lines("validation_rare", side) for side in ("source", "target")), strict=True)
    assert list(zip(*rare, strict=True)) == denoising_pairs(list(genuine), 1, seed=1)
    assert texts.isdisjoint(rare[1])


@pytest.mark.parametrize("settings", [["tokenizer.joint=false", "model.tie=decoder"], ["teachers=2"]])
def test_one_vocabulary_and_no_teachers(settings: list[str]) -> None:
    with pytest.raises(UserError, match=r"augmentation\.denoising"):
        run_config(["augmentation.denoising=1", *settings])
