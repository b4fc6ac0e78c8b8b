"""An evaluation and a comparison of invented sentences."""

from typing import Any

import random_corpus
from endeavour.evaluation import metrics
from endeavour.evaluation.comparison import CompareConfig, Comparison, System, compare_systems
from endeavour.evaluation.result import EvaluationResult
from endeavour.evaluation.words import TrainingText

CONFIG = CompareConfig(bootstrap_samples=40, randomization_trials=60, seed=12345, sentences=3)


def corpus(sentences: int) -> dict[str, list[str]]:
    numbers = range(1, sentences + 1)
    return {
        "sources": [" ".join(["word"] * (number % 12 + 1)) + f" {number}" for number in numbers],
        "hypotheses": [f"wort {number} " + "ja " * (number % 3) + "ist gut ." for number in numbers],
        "references": [f"Wort {number} " + "ja " * (number % 5) + "ist gut." for number in numbers],
    }


def evaluation(lines: dict[str, list[str]] | None = None, **more: Any) -> EvaluationResult:
    lines = lines or corpus(40)
    settings: dict[str, Any] = {
        "title": "tiny-textbook: test, beam",
        "scores": metrics.score_corpus(
            lines["hypotheses"], lines["references"], bootstrap_samples=40, seed=1
        ),
        "decoding": {"name": "beam", "beam_size": 4},
        "model": {"digest": "c0ffee", "config": {"width": 64}},
        "bootstrap_samples": 40,
        "seed": 1,
    }
    return EvaluationResult(**lines, **(settings | more))


def comparison(*names: str, first: str = "falsch", **more: Any) -> Comparison:
    """Systems that get more and more words right; `first` is what the first one says to the first sentence."""
    lines = corpus(40)
    outputs = [
        random_corpus.outputs(lines["references"], 0.6 + 0.3 * number / len(names), seed=number)
        for number in range(len(names))
    ]
    outputs[0][0] = first
    systems = [
        System(name, lines, {"decoding.name": "beam", "model.run": name})
        for name, lines in zip(names, outputs, strict=True)
    ]
    training = TrainingText()
    training.add([("word", "ja ist gut")] * 6)
    texts: dict[str, Any] = {key: lines[key] for key in ("sources", "references")}
    settings = texts | {"title": "a comparison", "training": training, "config": CONFIG}
    return compare_systems(systems, **(settings | {"notes": [], "lowercase": False} | more))
