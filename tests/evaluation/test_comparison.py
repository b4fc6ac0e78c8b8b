import dataclasses
import random
from typing import Any

import pytest
from endeavour.evaluation.compare import CompareConfig, Comparison, System, compare_systems
from endeavour.evaluation.compare_page import as_html, as_markdown, word_diff
from endeavour.evaluation.compare_tables import figure_tables, screen_table, strange_line
from html_page import Page
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from endeavour.errors import UserError
from endeavour.evaluation.words import TrainingText

CONFIG = CompareConfig(bootstrap_samples=40, randomization_trials=60, seed=12345, sentences=3)
WORDS = [f"wort{number}" for number in range(200)]


def _corpus(sentences: int = 40) -> tuple[list[str], list[str]]:
    draw = random.Random(3)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(3, 15))) for _ in range(sentences)]
    return [line.replace("wort", "word") for line in references], references


SOURCES, REFERENCES = _corpus()


def _outputs(right: float, seed: int = 4) -> list[str]:
    draw = random.Random(seed)
    return [
        " ".join(word if draw.random() < right else "falsch" for word in line.split()) for line in REFERENCES
    ]


def _training() -> TrainingText:
    training = TrainingText()
    training.add([(word.replace("wort", "word"), word) for word in WORDS[:100] for _ in range(6)])
    training.add([("false", "falsch")])
    return training


def _compare(*outputs: list[str], **more: Any) -> Comparison:
    systems = [
        System(f"run{number}", lines, {"decoding.name": "beam", "model.run": f"run{number}"})
        for number, lines in enumerate(outputs)
    ]
    settings: dict[str, Any] = {"sources": SOURCES, "references": REFERENCES, "training": _training()}
    return compare_systems(systems, title="run0 vs. run1: test-beam", config=CONFIG, **(settings | more))


def test_a_run_compared_with_itself_differs_nowhere() -> None:
    outputs = _outputs(0.7)
    comparison = _compare(outputs, list(outputs))
    for test in comparison.tests:
        assert (test.systems[1].difference, test.systems[1].p_bootstrap) == (0, 1)
    for slices in (comparison.bleu_by_source_length, comparison.word_f1_by_frequency or []):
        assert all(one.values[0] == one.values[1] for one in slices)
    (contest,) = comparison.contests
    assert (contest.better, contest.equal, contest.worse) == (0, len(REFERENCES), 0)
    assert contest.most_better == contest.most_worse == []
    assert comparison.rates["run0"] == comparison.rates["run1"]


def test_swapping_the_runs_flips_every_difference() -> None:
    one, other = _outputs(0.6), _outputs(0.9)
    there, back = _compare(one, other), _compare(other, one)
    for test, swapped in zip(there.tests, back.tests, strict=True):
        assert test.systems[1].difference == -swapped.systems[1].difference > 0
    ours, theirs = there.contests[0], back.contests[0]
    assert (ours.better, ours.equal, ours.worse) == (theirs.worse, theirs.equal, theirs.better)
    assert [one.line for one in ours.most_better] == [one.line for one in theirs.most_worse]
    assert [part.values for part in there.bleu_by_source_length] == [
        part.values[::-1] for part in back.bleu_by_source_length
    ]


def test_the_sentences_that_differ_most_come_first_and_are_quoted_whole() -> None:
    baseline, other = list(REFERENCES), list(REFERENCES)
    other[7], other[20] = "", REFERENCES[20] + " falsch"
    baseline[3] = ""
    (contest,) = _compare(baseline, other).contests
    assert (contest.better, contest.worse) == (1, 2)
    assert [one.line for one in contest.most_worse] == [8, 21]
    first = contest.most_worse[0]
    assert (first.source, first.reference) == (SOURCES[7], REFERENCES[7])
    assert (first.baseline, first.hypothesis, first.chrf) == (REFERENCES[7], "", 0)
    assert contest.most_better[0].line == 4


def test_no_more_sentences_are_shown_than_asked_for() -> None:
    (contest,) = _compare(_outputs(0.5), _outputs(0.5, seed=5)).contests
    assert len(contest.most_better) == len(contest.most_worse) == CONFIG.sentences
    assert contest.better > CONFIG.sentences


def test_every_slice_parts_the_test_set() -> None:
    comparison = _compare(_outputs(0.6), _outputs(0.9), _outputs(0.7))
    words = sum(len(line.split()) for line in REFERENCES)
    for slices, total in (
        (comparison.bleu_by_source_length, len(SOURCES)),
        (comparison.bleu_by_rarest_source_word, len(SOURCES)),
        (comparison.word_f1_by_frequency, words),
    ):
        assert slices is not None
        assert sum(part.count for part in slices) == total
        assert all(len(part.values) == 3 for part in slices)
    assert [part.label for part in comparison.word_f1_by_frequency or []] == ["0", "5–99"]


def test_without_the_training_text_the_rest_stands() -> None:
    comparison = _compare(_outputs(0.6), _outputs(0.9), training=None)
    assert comparison.bleu_by_rarest_source_word is None
    assert comparison.word_f1_by_frequency is None
    assert comparison.rates["run0"].unseen_characters is None
    titles = [figures.title for figures in figure_tables(comparison)]
    assert titles == ["Scores", "BLEU by source length", "Sentences", "Outputs"]


def test_a_sick_run_is_named_and_a_healthy_one_is_not() -> None:
    sick = ["" if row % 4 == 0 else "nein nein nein nein" for row in range(len(SOURCES))]
    comparison = _compare(list(REFERENCES), sick)
    assert comparison.strange_rates["run0"] == []
    assert {"empty", "repetitive", "length_ratio"} <= set(comparison.strange_rates["run1"])
    assert "run1: empty lines 25.0% (references 0.0%)" in strange_line(comparison)
    assert "run0" not in strange_line(comparison)
    assert strange_line(_compare(list(REFERENCES), list(REFERENCES))) == "Out of the ordinary: nothing."


def test_both_reports_tell_all_figures_signatures_sentences_and_settings() -> None:
    comparison = _compare(_outputs(0.6), _outputs(0.9), notes=["A note."])
    page = Page(as_html(comparison)).text
    markdown = as_markdown(comparison).replace("\\", "")
    for text in (page, markdown):
        for figures in figure_tables(comparison):
            assert figures.title in text
            assert figures.note in text
            for row in figures.rows:
                assert all(cell in text for cell in row)
        for test in comparison.tests:
            assert test.bootstrap_signature in text
            assert test.randomization_signature in text
        for part in (
            "run0 vs. run1: test-beam",
            "40 sentences",
            "A note.",
            "decoding.name",
            "Baseline: run0",
        ):
            assert part in text
    (contest,) = comparison.contests
    for one in (*contest.most_better, *contest.most_worse):
        assert all(line in markdown for line in (one.source, one.reference, one.baseline, one.hypothesis))
        assert one.reference in page


def test_a_system_may_be_called_as_what_stands_beside_it() -> None:
    systems = [System("reference", _outputs(0.6), {}), System("source", _outputs(0.9), {})]
    comparison = compare_systems(
        systems, title="t", sources=SOURCES, references=REFERENCES, training=_training(), config=CONFIG
    )
    page = Page(as_html(comparison)).text
    (contest,) = comparison.contests
    for one in (*contest.most_better, *contest.most_worse):
        assert one.source in page
        assert one.reference in page


def test_the_page_is_self_contained_and_text_is_never_obeyed() -> None:
    nasty = "<script>alert(1)</script> | *bold* &amp; '\" <!--"
    outputs = [nasty, *_outputs(0.8)[1:]]
    systems = [System(nasty, outputs, {nasty: nasty}), System("b", [*_outputs(0.6)], {})]
    comparison = compare_systems(
        systems, title=nasty, sources=SOURCES, references=REFERENCES, training=_training(), config=CONFIG
    )
    text = as_html(comparison)
    page = Page(text)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not {"src", "href"} & set(page.attributes)
    assert "url(" not in text
    assert page.text.count(nasty) >= 3


def test_tables_fit_the_terminal_with_every_cell() -> None:
    comparison = _compare(_outputs(0.6), _outputs(0.9))
    console = Console(width=120)
    with console.capture() as capture:
        for figures in figure_tables(comparison):
            console.print(screen_table(figures))
    printed = capture.get()
    for part in ("p bootstrap", "p randomisation", "run1", "empty lines", "6–10"):
        assert part in printed


lines = st.text("ab c", max_size=20)


@given(lines, lines)
def test_a_word_diff_loses_no_word_of_either_line(one: str, other: str) -> None:
    pieces = word_diff(one, other)
    assert " ".join(text for _, text, _ in pieces if text).split() == one.split()
    assert " ".join(text for _, _, text in pieces if text).split() == other.split()
    assert all((left == right) for same, left, right in pieces if same)


def test_a_word_diff_marks_what_differs() -> None:
    assert word_diff("ein alter Hund schläft", "ein Hund schläft tief") == [
        (True, "ein", "ein"),
        (False, "alter", ""),
        (True, "Hund schläft", "Hund schläft"),
        (False, "", "tief"),
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [("bootstrap_samples", 39), ("randomization_trials", 0), ("seed", 0), ("sentences", -1)],
)
def test_values_that_make_no_test_are_refused_by_name(key: str, value: int) -> None:
    with pytest.raises(UserError, match=f"compare.{key}={value}"):
        dataclasses.replace(CONFIG, **{key: value}).check()
    CONFIG.check()
