from typing import Any

import pytest
from pydantic import ValidationError

from endeavour.evaluation.comparison import CompareConfig, Comparison, System, compare_systems
from endeavour.evaluation.words import TrainingText
from random_corpus import WORDS, corpus, outputs

NUMBERS = {"bootstrap_samples": 40, "randomization_trials": 60, "seed": 12345, "sentences": 3}
CONFIG = CompareConfig(**NUMBERS)
_, REFERENCES = corpus(1.0, sentences=40)
SOURCES = [line.replace("wort", "word") for line in REFERENCES]


def _outputs(right: float, seed: int = 4) -> list[str]:
    return outputs(REFERENCES, right, seed)


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
    texts: dict[str, Any] = {"sources": SOURCES, "references": REFERENCES, "training": _training()}
    settings = texts | {
        "title": "run0 vs. run1: test-beam",
        "config": CONFIG,
        "notes": [],
        "lowercase": False,
    }
    return compare_systems(systems, **(settings | more))


def test_a_run_compared_with_itself_differs_nowhere() -> None:
    outputs = _outputs(0.7)
    comparison = _compare(outputs, list(outputs))
    for test in comparison.tests:
        assert (test.systems[1].difference, test.systems[1].p_bootstrap) == (0, 1)
    for slices in (comparison.bleu_by_source_length, comparison.word_f1_by_frequency or []):
        assert all(one.values[0] == one.values[1] for one in slices)
    (result,) = comparison.pairwise
    assert (result.better, result.equal, result.worse) == (0, len(REFERENCES), 0)
    assert result.most_better == result.most_worse == []
    assert comparison.rates["run0"] == comparison.rates["run1"]


def test_swapping_the_runs_flips_every_difference() -> None:
    one, other = _outputs(0.6), _outputs(0.9)
    there, back = _compare(one, other), _compare(other, one)
    for test, swapped in zip(there.tests, back.tests, strict=True):
        assert test.systems[1].difference == -swapped.systems[1].difference > 0
    ours, theirs = there.pairwise[0], back.pairwise[0]
    assert (ours.better, ours.equal, ours.worse) == (theirs.worse, theirs.equal, theirs.better)
    assert [one.line for one in ours.most_better] == [one.line for one in theirs.most_worse]
    assert [part.values for part in there.bleu_by_source_length] == [
        part.values[::-1] for part in back.bleu_by_source_length
    ]


def test_the_sentences_that_differ_most_come_first_and_are_quoted_whole() -> None:
    baseline, other = list(REFERENCES), list(REFERENCES)
    other[7], other[20] = "", REFERENCES[20] + " falsch"
    baseline[3] = ""
    (result,) = _compare(baseline, other).pairwise
    assert (result.better, result.worse) == (1, 2)
    assert [one.line for one in result.most_worse] == [8, 21]
    first = result.most_worse[0]
    assert (first.source, first.reference) == (SOURCES[7], REFERENCES[7])
    assert (first.baseline, first.hypothesis, first.chrf) == (REFERENCES[7], "", 0)
    assert result.most_better[0].line == 4


def test_no_more_sentences_are_shown_than_asked_for() -> None:
    (result,) = _compare(_outputs(0.5), _outputs(0.5, seed=5)).pairwise
    assert len(result.most_better) == len(result.most_worse) == CONFIG.sentences
    assert result.better > CONFIG.sentences


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
    assert comparison.bleu_by_source_length


def test_a_sick_run_is_named_and_a_healthy_one_is_not() -> None:
    sick = ["" if row % 4 == 0 else "nein nein nein nein" for row in range(len(SOURCES))]
    comparison = _compare(list(REFERENCES), sick)
    assert comparison.anomalies["run0"] == []
    assert {"empty", "repetitive", "length_ratio"} <= set(comparison.anomalies["run1"])


@pytest.mark.parametrize(
    ("key", "value"),
    [("bootstrap_samples", 39), ("randomization_trials", 0), ("seed", 0), ("sentences", -1)],
)
def test_values_that_make_no_test_are_refused_by_name(key: str, value: int) -> None:
    with pytest.raises(ValidationError) as refusal:
        CompareConfig(**NUMBERS | {key: value})
    assert refusal.value.errors()[0]["loc"] == (key,)
