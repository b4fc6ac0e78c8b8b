"""COMET as `comet-score --to_json` writes it: read for the translations beside it, and for no others."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from endeavour.errors import UserError
from endeavour.evaluation.comet import COMET_FILE, comet_command, comet_score, comet_signature, read_comet

SOURCES = ["  the old dog ", "a tree", "today"]
HYPOTHESES = ["der alte Hund", "", " ein Tag "]
REFERENCES = ["ein alter Hund", " ein Baum", "heute"]
READ = ["der alte Hund", "", "ein Tag"]  # stripped, as comet-score reads hypotheses.txt
SCORES = [0.875, -0.25, 0.5]


def segments(mt: list[str] = READ, scores: list[float] = SCORES, **more: str) -> list[dict[str, Any]]:
    """What comet-score 2.2 writes of one file of translations."""
    return [
        {"src": source.strip(), "mt": line, "ref": reference.strip(), "COMET": score} | more
        for source, line, reference, score in zip(SOURCES, mt, REFERENCES, scores, strict=True)
    ]


def write(folder: Path, systems: object) -> None:
    (folder / COMET_FILE).write_text(json.dumps(systems, ensure_ascii=False, indent=4), "utf-8")


def test_the_scores_are_those_of_the_translations_whatever_the_file_calls_them(tmp_path: Path) -> None:
    assert read_comet(tmp_path, SOURCES, HYPOTHESES, REFERENCES) is None
    others = segments(["x", "y", "z"], [0.1, 0.2, 0.3])
    write(tmp_path, {"other.txt": others, "some/where/hypotheses.txt": segments()})
    comet = read_comet(tmp_path, SOURCES, HYPOTHESES, REFERENCES)
    assert comet is not None
    assert comet.sentences == [87.5, -25, 50]
    assert comet.references
    score = comet_score(comet, bootstrap_samples=100, seed=1)
    assert score.value == pytest.approx(np.mean(comet.sentences))
    assert score.low < score.value < score.high
    assert score.signature.startswith(f"bs:100|seed:1|nrefs:1|{COMET_FILE}:")
    assert comet_score(comet, bootstrap_samples=100, seed=1) == score


def test_without_references_it_is_another_score(tmp_path: Path) -> None:
    without = [{key: value for key, value in one.items() if key != "ref"} for one in segments()]
    write(tmp_path, {"hypotheses.txt": without})
    comet = read_comet(tmp_path, SOURCES, HYPOTHESES, REFERENCES)
    assert comet is not None
    assert not comet.references
    assert comet_signature([comet, comet]).startswith("nrefs:0|")


@pytest.mark.parametrize(
    "systems",
    [
        {"hypotheses.txt": segments(["der alte Hund", "", "ein anderer Tag"])},
        {"hypotheses.txt": segments(src="other")},
        {"hypotheses.txt": segments(ref="other")},
        {"hypotheses.txt": [*segments()[:2], {"src": "today", "mt": "ein Tag", "COMET": 0.5}]},
        {"hypotheses.txt": segments()[:2]},
        {},
    ],
)
def test_scores_of_other_lines_are_refused(systems: object, tmp_path: Path) -> None:
    write(tmp_path, systems)
    with pytest.raises(UserError, match=f"{COMET_FILE}: scores of other.*comet-score -s"):
        read_comet(tmp_path, SOURCES, HYPOTHESES, REFERENCES)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '{"hypotheses.txt": 3}',
        '{"hypotheses.txt": [{"src": "a"}]}',
        json.dumps({"x": segments(scores=[0.5, float("nan"), 0.5])}),
        json.dumps({"x": segments(COMET="0.5")}),
    ],
)
def test_a_file_that_is_not_comets_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / COMET_FILE).write_text(text, "utf-8")
    with pytest.raises(UserError, match=f"{COMET_FILE}: not what `comet-score --to_json` writes"):
        read_comet(tmp_path, SOURCES, HYPOTHESES, REFERENCES)


def test_the_command_names_the_files_of_the_folder() -> None:
    words = shlex.split(comet_command(Path("a run/evaluation/test-beam")))
    assert words[:3] == ["comet-score", "-s", "a run/evaluation/test-beam/sources.txt"]
    assert words[3:7] == [
        "-t", "a run/evaluation/test-beam/hypotheses.txt", "-r", "a run/evaluation/test-beam/references.txt",
    ]  # fmt: skip
    assert words[-2:] == ["--to_json", f"a run/evaluation/test-beam/{COMET_FILE}"]
