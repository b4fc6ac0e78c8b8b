"""Markup and the like: what is found, what comes back, and that both sides of a pair get the same symbols."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs import run_config
from endeavour.data.normalization import normalize
from endeavour.data.perturbations import draw_for, perturbed
from endeavour.data.protection import (
    SPAN,
    lost_spans,
    protect,
    protect_pair,
    protect_target,
    protect_training_pair,
    restore,
    symbols,
)
from endeavour.data.tokenizer import encode_pairs
from endeavour.data.tokenizer_training import train_tokenizer

SPANS = [
    "<b>",
    "</b>",
    '<a href="https://x.org/a?b=1&c">',
    "<br/>",
    "&amp;",
    "&#8211;",
    "{name}",
    "{0}",
    "{{x}}",
    "${x}",
    "%{x}",
]
SPANS += [
    "%s",
    "%d",
    "%1$s",
    "%(name)s",
    "%.2f",
    "%lu",
    "%qs",
    "%1",
    "%L2",
    "https://x.org/a_b?c=1#d",
    "www.x.org",
    "a.b@c-d.de",
]


@pytest.mark.parametrize("span", SPANS)
def test_spans_are_found_whole(span: str) -> None:
    for text in (span, f"Press {span} now.", f"({span})", f"„{span}“"):
        assert SPAN.findall(text) == [span], text


@pytest.mark.parametrize(
    "text",
    [
        "50% sure",
        "100%ig",
        "10 % s",
        "100%d",
        "%% done",
        "a < b > c",
        "AT&T",
        "R&D;",
        "if {",
        "3 @ 5",
        "The www is",
        "100% of 5%",
    ],
)
def test_other_text_has_none(text: str) -> None:
    assert SPAN.findall(text) == []


pieces = st.lists(st.sampled_from([*SPANS, "⟦1⟧", "⟦7⟧", "word", " ", ".", "%", "<", "{", "ß"]), max_size=12)


@given(pieces, st.integers(0, 9))
def test_what_is_protected_comes_back(parts: list[str], count: int) -> None:
    text = normalize(" ".join(parts))
    protected = protect(text, count)
    assert len(protected.spans) == min(count, len(SPAN.findall(text)))
    if len(protected.spans) == len(SPAN.findall(text)):  # otherwise a ⟦7⟧ that was typed may be left
        assert restore(protected.text, protected.spans, 99) == text


@given(pieces, pieces, st.integers(0, 9))
def test_what_is_protected_is_in_normal_form_if_the_pair_was(
    one: list[str], other: list[str], count: int
) -> None:
    pair = protect_pair((normalize("".join(one)), normalize("".join(other))), count)
    assert tuple(map(normalize, pair)) == pair


@given(pieces, st.randoms(use_true_random=False))
def test_a_translation_has_the_symbols_of_its_source(parts: list[str], draw: random.Random) -> None:
    spans = [part for part in parts if part in SPANS]
    source = " ".join([*spans, "word"])
    target = " ".join(["Wort", *draw.sample(spans, len(spans))])
    ours, theirs = protect_training_pair((source, target), 99)
    assert protect_pair((source, target), 99) == (ours, theirs)
    assert Counter(SPAN.findall(ours)) == Counter(SPAN.findall(theirs)) == Counter(symbols(len(spans)))
    assert restore(theirs, protect(source, 99).spans, 99) == target


def test_a_pair_with_different_spans_stays_text() -> None:
    pair = ("Open %s", "Öffne %d")
    assert protect_training_pair(pair, 9) == pair
    assert protect_pair(pair, 9) == ("Open ⟦1⟧", "Öffne %d"), "but a model reads the source so"
    assert protect_target("Öffne %d %s %s", ["%s"]) == "Öffne %d ⟦1⟧ %s"


def test_a_symbol_without_a_span_is_left_out_and_missing_spans_are_counted() -> None:
    assert restore("⟦2⟧ und ⟦1⟧⟦0⟧⟦9⟧", ["%s"], 8) == " und %s⟦0⟧⟦9⟧", "the last two are no symbols"
    assert sorted(lost_spans("<b>%s</b> %s", "<b>%s")) == ["%s", "</b>"]


SENTENCES = [f"Press <b>{word}</b> {{key}}." for word in ("one", "two", "three", "four")] * 5


def test_vocabularies_have_the_symbols_and_pairs_use_them() -> None:
    config = run_config(["tokenizer.vocabulary_size=300"]).tokenizer
    tokenizer = train_tokenizer([protect(text, 3).text for text in SENTENCES], config, symbols(3))
    assert tokenizer.placeholders == 3
    ((source,), (target,)) = encode_pairs((tokenizer, tokenizer), [("Press <b>%s", "<b> drücke %s")])
    kept = [[piece for piece in tokenizer.pieces(ids) if "⟦" in piece] for ids in (source, target)]
    assert kept == [["⟦1⟧", "⟦2⟧"], ["⟦1⟧", "⟦2⟧"]]
    bare = train_tokenizer(SENTENCES, config)
    assert bare.placeholders == 0
    assert encode_pairs((bare, tokenizer), [("<b>", "<b>")]) == (
        bare.encode(["<b>"]),
        tokenizer.encode(["<b>"]),
    )


@given(st.integers(0, 10_000))
def test_copies_with_placeholders_have_the_same_on_both_sides(seed: int) -> None:
    pair = ("Anna sees 7 dogs.", "Anna sieht 7 Hunde.")
    source, target = perturbed(pair, "placeholders", "en", draw_for(pair, "placeholders", seed))
    assert SPAN.findall(source)
    assert Counter(SPAN.findall(source)) == Counter(SPAN.findall(target))
    assert normalize(SPAN.sub("", source)).replace(" .", ".") == pair[0]
    assert normalize(SPAN.sub("", target)).replace(" .", ".") == pair[1]
