"""`decoding.backward`: a run of the other direction chooses among the hypotheses of one."""

import json
import shlex
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
from tiny_runs import make_runs

import endeavour as package
from commands import endeavour
from endeavour.commands.export import _scored
from endeavour.errors import UserError
from endeavour.runs.command_lines import evaluate_command
from endeavour.runs.run import Run
from endeavour.runs.translators import backward_runs
from endeavour.storage import write_json

LINES = ["the old dog sleeps", "", "a man and a tree"]
WEIGHT = 2.0
RERANKED = ["decoding=reranked", "decoding.max_length_ratio=1"]


@pytest.fixture(scope="module")
def outputs(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("reranked"), parallel_files) / "outputs"


def score(forward: float, backward: float, source: str, run: package.TrainedRun) -> float:
    (ids,) = run.loaded.tokenizers[0].encode([source])
    return forward + WEIGHT * backward / (len(ids) + 1)


def test_the_candidate_that_the_source_follows_from_is_the_translation(outputs: Path) -> None:
    search = {
        "output_folder": outputs,
        "device": "cpu",
        "beam_size": 5,
        "num_hypotheses": 5,
        "max_length_ratio": 1.0,
    }
    run, back = package.load("a", **search), package.load("back", **search)
    reranked = package.load("a", **search, backward="back", backward_weight=WEIGHT)
    for line in filter(None, LINES):
        (found,) = run.translate_n_best([line])
        expected = sorted(
            (score(one.score, back.score(one.text, line), line, run) for one in found), reverse=True
        )
        (ranked,) = reranked.translate_n_best([line])
        assert [one.score for one in ranked] == pytest.approx(expected, rel=1e-4)
        assert {one.text for one in ranked} == {one.text for one in found}


def test_one_line_is_written_for_each_line(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.en").write_text("\n".join([*LINES, ""]), "utf-8")
    typed = ["run=a", f"output_folder={outputs}", f"input={tmp_path / 'in.en'}", *RERANKED]
    assert endeavour("translate", *typed, "decoding.backward=back") == 0
    written = capsys.readouterr().out.splitlines()
    assert len(written) == len(LINES)
    assert written[1] == ""
    assert not any("\t" in line for line in written)


def test_an_evaluation_notes_which_weights_chose(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = shutil.copytree(outputs, tmp_path / "outputs")
    typed = [
        "run=a",
        f"output_folder={copied}",
        f"data_folder={outputs.parent}/data",
        "device=cpu",
        *RERANKED,
    ]
    assert endeavour("evaluate", *typed, "decoding.backward=back", "evaluation.splits=[validation]") == 0
    record = json.loads((copied / "a" / "evaluation" / "validation-reranked" / "scores.json").read_text())
    digests = json.loads((copied / "back" / "model" / "digests.json").read_text())
    assert record["model"]["backward_weights_sha256"] == {"back": digests["weights.safetensors"]}
    assert record["decoding"]["backward"] == "back"
    # No scores of these weights alone, so no model card shows them.
    run = Run(copied, "a")
    assert not [one for one in _scored(run) if one.label == "reranked"]
    record["model"]["backward_weights_sha256"]["back"] = "earlier"
    write_json(copied / "a" / "evaluation" / "validation-reranked" / "scores.json", record)
    assert endeavour("compare", "runs=a/evaluation/validation-reranked a", f"output_folder={copied}") == 2
    assert "was trained anew" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("decoding.backward=b", "translates en-de, as a does"),
        ("decoding.backward=nobody", "name another with decoding.backward="),
        ("decoding.beam_size=16", "decoding.backward names no run"),
    ],
)
def test_what_cannot_choose_is_refused(
    name: str, said: str, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("translate", "run=a", f"output_folder={outputs}", "text=a dog", *RERANKED, name) == 2
    assert said in capsys.readouterr().err


def test_the_command_that_makes_it_again_names_the_runs_as_they_are_typed(outputs: Path) -> None:
    run = Run(outputs, "a")
    wanted = {**asdict(run.config.decoding), "name": "reranked", "backward": 'back "back 2"'}
    command = shlex.split(evaluate_command(run, "reranked", "validation", wanted))
    assert 'decoding.backward=back "back 2"' in command
    assert "decoding.backward=NAME" in evaluate_command(run, "reranked", "validation")


def test_a_path_names_it_too(outputs: Path) -> None:
    run = package.load("a", output_folder=outputs, num_hypotheses=2, beam_size=2, backward=[Path("back")])
    assert backward_runs(run.runs[0], run.decoding) == [Run(outputs, "back")]


def test_a_run_with_other_placeholders_is_refused(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be asked about symbols that it never read."""
    counts = iter([9, 0])
    monkeypatch.setattr("endeavour.runs.translators.placeholders_of", lambda _: next(counts))
    run = package.load(
        "a", output_folder=outputs, device="cpu", num_hypotheses=2, beam_size=2, backward="back"
    )
    with pytest.raises(UserError, match=r"tokenizer\.placeholders"):
        run.translate("a dog")


def test_an_export_is_not_compared_by_it(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert endeavour("export", "run=a", f"output_folder={outputs}", *RERANKED) == 2
    assert "another run chooses" in capsys.readouterr().err


def test_a_run_is_not_trained_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert endeavour("train", "decoding=reranked", "decoding.backward=back") == 2
    assert "train without it" in capsys.readouterr().err
