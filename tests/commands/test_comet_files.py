"""COMET from a file beside an evaluation: in its report, without translating again, and in comparisons."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import make_runs

from commands import endeavour, places, write_lines
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.evaluation.comet import COMET_FILE, LABEL

ENGLISH = [
    # With characters at which some programs end a line.
    f"{line} {number}"
    for number, line in enumerate(["the\rold dog", "a man.\x0c\rHe\u2028sees a tree", "today"] * 4)
]
GERMAN = [f"{line} {number}" for number, line in enumerate(["der alte\rHund", "ein Mann", "heute"] * 4)]


@pytest.fixture
def asked(parallel_files: list[str], tmp_path: Path) -> list[str]:
    make_runs(tmp_path, parallel_files)
    for language, lines in (("en", ENGLISH), ("de", GERMAN)):
        write_lines(tmp_path / f"news.{language}", lines)
    return places(tmp_path)


def score(folder: Path, scores: list[float]) -> None:
    """What `comet-score` writes of an evaluation's files."""
    columns: list[list[str]] = []
    for name in ("sources", "hypotheses", "references"):
        text = (folder / f"{name}.txt").read_text("utf-8")  # in which \r ends a line, too
        assert text.split("\n") == [*text.splitlines(), ""]
        columns.append([line.strip() for line in text.splitlines()])
    rows = zip(*columns, scores, strict=True)
    segments = [{"src": s, "mt": t, "ref": r, "COMET": one} for s, t, r, one in rows]
    (folder / COMET_FILE).write_text(
        json.dumps({str(folder / "hypotheses.txt"): segments}, indent=4), "utf-8"
    )


def test_comet_is_reported_without_translating_again_and_tested_where_all_have_it(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate = [
        "evaluate",
        *asked,
        "device=cpu",
        "evaluation.num_pictures=0",
        "decoding.split_sentences=true",
    ]
    evaluate.append(f"+evaluation.files.news=[{tmp_path}/news.en,{tmp_path}/news.de]")
    a, b = (tmp_path / "outputs" / name / "evaluation" / "news-greedy" for name in "ab")
    for run in "ab":
        assert endeavour(*evaluate, f"run={run}") == 0
    before = (a / "hypotheses.txt").read_bytes()
    plain = json.loads((a / "scores.json").read_text("utf-8"))
    score(a, [0.5] * 12)

    again = [*evaluate, "evaluation.reuse_translations=true"]
    with monkeypatch.context() as patch:
        patch.setattr(PyTorchEngine, "search", lambda *_: pytest.fail("translated"))
        assert endeavour(*again, "run=a") == 0
    record: dict[str, Any] = json.loads((a / "scores.json").read_text("utf-8"))
    comet = record["scores"].pop("comet")
    assert record == plain
    assert (comet["name"], comet["value"]) == (LABEL, 50)
    assert (a / "hypotheses.txt").read_bytes() == before
    assert LABEL in capsys.readouterr().out
    assert f"| {LABEL} | 50.00 |" in (a / "report.md").read_text("utf-8")

    compare = ["compare", *asked, "runs=a b", "bootstrap_samples=40", "randomization_trials=50"]
    written = tmp_path / "outputs" / "comparisons" / "a-vs-b" / "news-greedy"
    assert endeavour(*compare) == 0
    compared = json.loads((written / "comparison.json").read_text("utf-8"))
    assert [test["metric"] for test in compared["tests"]] == ["BLEU", "chrF2"]
    assert any(note.endswith(f": a (with references), b (no {COMET_FILE}).") for note in compared["notes"])

    score(b, [0.75 + row / 100 for row in range(12)])
    assert endeavour(*compare) == 0
    compared = json.loads((written / "comparison.json").read_text("utf-8"))
    test = compared["tests"][-1]
    assert test["metric"] == LABEL
    assert test["systems"][1]["difference"] == pytest.approx(30.5)
    assert test["systems"][1]["p_bootstrap"] < 0.05
    assert "comet-score" in (written / "report.md").read_text("utf-8")

    # Scores of other translations are not taken for those of these.
    (b / COMET_FILE).write_bytes((a / COMET_FILE).read_bytes())
    capsys.readouterr()
    assert endeavour(*compare) == 2
    assert f"{b / COMET_FILE}: scores of other" in capsys.readouterr().err
    assert endeavour(*evaluate, "run=b") == 0
    assert f"{b / COMET_FILE}: scores of other" in capsys.readouterr().err
    assert "comet" not in json.loads((b / "scores.json").read_text("utf-8"))["scores"]


def test_translations_of_another_model_are_not_reused(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate = ["evaluate", *asked, "device=cpu", "evaluation.num_pictures=0"]
    evaluate.append(f"+evaluation.files.news=[{tmp_path}/news.en,{tmp_path}/news.de]")
    assert endeavour(*evaluate, "run=a", "evaluation.reuse_translations=true") == 0  # of none they are made
    outputs = tmp_path / "outputs"
    made = (outputs / "a" / "evaluation" / "news-greedy" / "hypotheses.txt").read_bytes()
    (outputs / "a" / "model").rename(outputs / "model")
    (outputs / "b" / "model").rename(outputs / "a" / "model")
    assert endeavour(*evaluate, "run=a", "evaluation.reuse_translations=true") == 0
    assert "of another model" in capsys.readouterr().err
    assert (outputs / "a" / "evaluation" / "news-greedy" / "hypotheses.txt").read_bytes() != made
