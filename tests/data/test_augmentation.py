"""Altered copies of training pairs: how many there are, where they stand, and what they leave as it was."""

import json
from dataclasses import replace
from math import sqrt

from building import CLEANING, TEST, TOKENIZER, TRAIN, pairs_of, prepared, rates, rows, text_of, write

from commands import endeavour
from endeavour.data import build
from endeavour.data.normalization import normalize
from endeavour.data.prepared import PreparedData
from endeavour.data.tokenizer_training import train_tokenizer


def copies(data: PreparedData) -> dict[str, tuple[int, int]]:
    """As the report has them: added, and not added."""
    report = json.loads((data.folder / "report.json").read_text("utf-8"))
    return {step["name"]: (step["changed"], step["dropped"]) for step in report["copies"]}


def test_rates_of_zero_are_no_augmentation(settings):
    plain = prepared(**settings)
    assert prepared(**settings, augmentation=rates(seed=2)).folder == plain.folder
    assert "copies" not in json.loads((plain.folder / "report.json").read_text("utf-8"))


def test_copies_follow_their_pair_and_are_no_part_of_the_text(settings):
    data = prepared(**settings, augmentation=rates(upper_case=1.0, no_final_punctuation=1.0))
    genuine = [(normalize(source), normalize(target)) for source, target in TRAIN]
    assert text_of(data) == genuine
    expected = [
        copy
        for source, target in genuine
        for copy in (
            (source, target),
            (source.upper(), target.upper()),
            (source.rstrip("."), target.rstrip(".")),
        )
    ]
    assert pairs_of(data) == expected
    assert data.splits["train"]["pairs"] == 3 * len(TRAIN)
    assert copies(data) == {"upper_case": (len(TRAIN), 0), "no_final_punctuation": (len(TRAIN), 0)}
    report = json.loads((data.folder / "report.json").read_text("utf-8"))
    assert (report["read"], report["kept"]) == (len(TRAIN), len(TRAIN))
    shown = (data.folder / "report.md").read_text("utf-8")
    assert f"| upper_case | {len(TRAIN)} | 0 |" in shown
    assert f"`{genuine[0][0]}` → `{genuine[0][0].upper()}` → `{genuine[0][1].upper()}`" in shown


def test_a_rate_is_a_share_and_the_seed_draws_it(settings):
    first = prepared(**settings, augmentation=rates(title_case=0.3, typos=0.3))
    for added, dropped in copies(first).values():
        assert dropped == 0
        assert abs(added - 0.3 * len(TRAIN)) < 3 * sqrt(0.21 * len(TRAIN))
    assert data_rows(first) == len(TRAIN) + sum(added for added, _ in copies(first).values())
    other = prepared(**settings, augmentation=rates(title_case=0.3, typos=0.3, seed=2))
    assert pairs_of(other) != pairs_of(first)
    assert text_of(other) == text_of(first)
    # A perturbation draws for itself: what another one does is no matter.
    alone = prepared(**settings, augmentation=rates(typos=0.3))
    assert set(pairs_of(alone)) < set(pairs_of(first))


def data_rows(data: PreparedData) -> int:
    return data.splits["train"]["pairs"]


def test_copies_that_are_too_long_or_a_test_sentence_are_not_added(settings, tmp_path):
    pairs = [
        *TRAIN,
        ("A test", "Noch einer."),
        ("so many tiny words", "so viele kleine Worte"),
        ("1 2.", "1 2"),
    ]
    held_out = ("A TEST", "ganz anders")
    settings["corpus"] = write(tmp_path / "raw", train=pairs, test=[*TEST, held_out])
    # In capitals, which the vocabulary does not know so well, the words are more tokens.
    longest = max(max(map(len, rows(prepared(**settings), "train", side))) for side in ("source", "target"))
    settings["cleaning"] = replace(CLEANING, max_tokens=longest - 1)
    vocabulary = prepared(**settings).load_tokenizers()
    data = prepared(**settings, tokenizers=vocabulary, augmentation=rates(upper_case=1.0))
    assert len(text_of(data)) == len(pairs)
    (added, dropped) = copies(data)["upper_case"]
    assert added + dropped == len(pairs) - 1  # of digits alone there is none
    assert dropped > 1
    assert all(source != "A TEST" for source, _ in pairs_of(data))
    assert max(map(len, rows(data, "train", "source"))) <= longest
    kept = prepared(
        **settings | {"cleaning": replace(settings["cleaning"], drop_overlap=False)},
        tokenizers=vocabulary,
        augmentation=rates(upper_case=1.0),
    )
    assert ("A TEST", "NOCH EINER.") in pairs_of(kept)


def test_capitals_alone_alter_nothing_for_a_vocabulary_that_lowercases(settings):
    settings["tokenizer"] = replace(TOKENIZER, lowercase=True, vocabulary_size=320)
    data = prepared(**settings, augmentation=rates(upper_case=1.0, title_case=1.0, no_final_punctuation=1.0))
    assert copies(data) == {
        "upper_case": (0, 0),
        "title_case": (0, 0),
        "no_final_punctuation": (len(TRAIN), 0),
    }


def test_the_vocabulary_is_learnt_from_copies_too_and_from_no_more_text_than_asked(settings, monkeypatch):
    seen = []
    monkeypatch.setattr(
        build,
        "train_tokenizer",
        lambda texts, *rest: train_tokenizer((seen.append(text) or text for text in texts), *rest),
    )
    few = replace(TOKENIZER, max_sentences=60, vocabulary_size=320)
    prepared(**(settings | {"tokenizer": few}), augmentation=rates(upper_case=1.0))
    stride = -(-2 * len(TRAIN) // 60)
    drawn = [tuple(map(normalize, pair)) for pair in TRAIN[::stride]]
    assert seen == [
        text
        for pair in drawn
        for source, target in (pair, tuple(map(str.upper, pair)))
        for text in (source, target)
    ]
    assert len(seen) <= 2 * 60


def test_umlauts_are_for_german_sources(parallel_files, folders, tmp_path, capsys):
    chosen = [*parallel_files, *folders, "augmentation=robust", "augmentation.no_umlauts=0.5"]
    assert endeavour("prepare", *chosen) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "augmentation.no_umlauts" in said
    assert endeavour("prepare", *chosen, "direction=de-en") == 0
    (report,) = tmp_path.glob("data/prepared/[!.]*/report.md")
    assert "| no_umlauts |" in report.read_text("utf-8")
