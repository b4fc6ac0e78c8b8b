"""What an evaluation's result makes of its lines."""

import pytest

from endeavour.evaluation.result import EvaluationResult, Example, pick_examples


def _examples(scores: list[float]) -> list[Example]:
    return [Example(line, "a", "b", "c", score) for line, score in enumerate(scores, 1)]


@pytest.mark.parametrize("sentences", [1, 2, 3, 5, 40])
def test_no_line_is_shown_twice_and_best_are_no_worse_than_worst(sentences: int) -> None:
    examples = _examples([float(number * 7 % 11) for number in range(sentences)])
    chosen = pick_examples(examples, seed=1)
    assert list(chosen) == ["best", "worst", "random"]
    shown = [example for part in chosen.values() for example in part]
    assert len({example.line for example in shown}) == len(shown) >= min(sentences, 3)
    assert all(example == examples[example.line - 1] for example in shown)
    others = [example.chrf for part in ("worst", "random") for example in chosen[part]]
    assert min(best.chrf for best in chosen["best"]) >= max(others, default=0)
    assert [example.line for example in chosen["random"]] == sorted(one.line for one in chosen["random"])


def test_of_equal_translations_the_longer_is_shown_first() -> None:
    sources = ["a", "a b c", "a b", "x", "y", "z"]
    examples = [
        Example(1, source, "", "", score)
        for source, score in zip(sources, [100.0] * 3 + [1.0, 2.0, 3.0], strict=True)
    ]
    assert [one.source for one in pick_examples(examples, seed=1)["best"]] == ["a b c", "a b"]


def test_parts_of_what_has_no_capitals_are_judged_without_them() -> None:
    references = ["Der Hund sieht den Baum"] * 3
    result = EvaluationResult(
        title="t",
        sources=["a b"] * 3,
        hypotheses=[line.lower() for line in references],
        references=references,
        scores={},
        lowercase=True,
        labels={"domain": ["talk", "news", "talk"]},
        decoding={},
        model={},
        bootstrap_samples=40,
        seed=1,
    )
    assert [bucket.bleu for bucket in result.buckets] == pytest.approx([100])
    assert [(one.label, one.bleu) for one in result.bleu_by_label["domain"]] == [
        ("talk", pytest.approx(100)),
        ("news", pytest.approx(100)),
    ]
    assert result.bleu_key == "bleu_lowercased"


def test_names_are_copied_from_the_source_whatever_their_capitals() -> None:
    outputs = ["anna geht nach paris", "anna"]
    references = ["Anna geht nach Paris", "Anna"]
    result = EvaluationResult(
        title="t",
        sources=["Anna goes to Paris", "Anna"],
        hypotheses=outputs,
        references=references,
        scores={},
        lowercase=True,
        decoding={},
        model={},
        bootstrap_samples=40,
        seed=1,
    )
    assert result.rates["outputs"] == result.rates["references"]
    assert (result.rates["outputs"].copied, result.rates["outputs"].untranslated) == (1 / 2, 3 / 5)
