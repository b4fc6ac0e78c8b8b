"""Runs, evaluations and logs as the page is told of them, while they change."""

import json
import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from endeavour.errors import UserError
from endeavour.evaluation.metrics import length_ratio, sentence_scores
from endeavour.playground import log_reader
from endeavour.playground.log_reader import read_log
from endeavour.playground.records import all_runs, describe_run
from endeavour.playground.systems import NotFound
from endeavour.runs.config import save_config
from endeavour.runs.run import Run
from endeavour.storage import write_atomically, write_json
from served import LINES, Served, evaluated, served, small_run


@pytest.fixture
def begun(tmp_path: Path) -> Run:
    """A run that is being trained: a config and the beginning of a log."""
    run = small_run(tmp_path, "folder/begun")
    shutil.rmtree(run.model_folder)
    (run.folder / "summary.json").unlink()
    return run


def test_runs_are_listed_with_what_the_page_shows_of_them(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run")
    one = Run(tmp_path, "run")
    evaluated(one)
    write_json(one.folder / "summary.json", {"updates": 30, "test": {"test": {"bleu": 12.3456}}})
    with served(tmp_path, "decoding.beam_size=2") as site:
        found = site.get("/api/runs").json
    (entry,) = found["runs"]
    model, weights = one.config.model, one.load_model(site.playground.systems.get(None).device)[0]
    assert found["default"] == entry["name"] == "run"
    assert (entry["direction"], entry["finished"], entry["training"]) == ("en-de", True, False)
    assert (entry["updates"], entry["bleu"]) == (30, 12.35)
    assert (
        entry["model"].items()
        <= (
            asdict(model) | {"parameters": sum(parameter.numel() for parameter in weights.parameters())}
        ).items()
    )
    assert entry["decoding"] == {"beam_size": 2, "length_penalty": 0.6}
    assert entry["examples"] == LINES["sources"]
    assert entry["evaluations"] == [
        {"folder": "test-beam", "test_set": "test", "label": "beam", "scores": {"bleu": 12.35}}
    ]


def test_a_run_in_training_is_listed_and_shown_as_such_while_it_is_locked(begun: Run) -> None:
    root = begun.root
    assert list(all_runs(root)) == []
    (begun.folder / "log.jsonl").touch()
    (run,) = all_runs(root)
    assert run == begun
    entry = describe_run(begun)
    assert (entry["finished"], entry["training"], entry["updates"], entry["bleu"]) == (
        False,
        False,
        None,
        None,
    )
    with begun.lock():
        assert describe_run(begun)["training"]
    assert not describe_run(begun)["training"]
    with begun.lock():  # to ask does not hold it
        pass


def test_nobody_finds_hidden_folders_or_those_within_a_run(begun: Run) -> None:
    (begun.folder / "log.jsonl").touch()
    for name in (
        ".folder.discarded/run",
        "folder/begun/evaluation/run",
        "folder/begun/checkpoints/run",
        "none",
    ):
        (begun.root / name).mkdir(parents=True)
        if name != "none":
            shutil.copy(begun.folder / "config.yaml", begun.root / name)
            (begun.root / name / "log.jsonl").touch()
    assert list(all_runs(begun.root)) == [begun]


def test_a_run_may_be_called_as_a_folder_within_runs_is(begun: Run) -> None:
    (begun.folder / "log.jsonl").touch()
    shutil.copytree(begun.folder, begun.root / "model")
    assert [run.name for run in all_runs(begun.root)] == [begun.name, "model"]


def test_the_bleu_of_a_run_without_a_test_set_is_that_of_its_validation(begun: Run) -> None:
    summary = {"validation": {"bleu": 30.0}, "test": {"validation_rare": {"bleu": 12.0}}}
    write_json(begun.folder / "summary.json", summary)
    assert describe_run(begun)["bleu"] == 30


def test_what_changes_in_a_run_is_seen(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run")
    one = Run(tmp_path, "run")
    assert describe_run(Run(tmp_path, "run"))["evaluations"] == []
    (one.folder / "evaluation" / "test-beam").mkdir(parents=True)  # where an evaluation begins
    assert describe_run(Run(tmp_path, "run"))["evaluations"] == []
    evaluated(one)
    assert len(describe_run(Run(tmp_path, "run"))["evaluations"]) == 1
    weights = describe_run(one)["weights"]
    shutil.rmtree(one.folder)
    small_run(tmp_path, "run", seed=1)  # as one that is trained again
    assert describe_run(one)["weights"] != weights
    (one.folder / "config.yaml").write_text("damaged")
    with pytest.raises(UserError, match=r"config\.yaml"):
        describe_run(Run(tmp_path, "run"))


NO_SCORE = '{"scores": {"bleu": {"value": NaN}}, "decoding": {}, "model": {"test_set": "test"}}'
DAMAGED = {
    "config.yaml": [b"damaged", b"", b"\xff"],
    "summary.json": [b"", b"{", b"[]", b'{"test": 5}', b'{"validation": {"bleu": NaN}}'],
    "evaluation/test-beam/scores.json": [b"{", b'{"scores": 5}', NO_SCORE.encode()],
    "evaluation/test-beam/sources.txt": [b"\xff\n"],
    "model/weights.safetensors": [b"\xff" * 9, (2).to_bytes(8, "little") + b"[]"],
}


def test_a_damaged_run_is_left_out_and_named_and_the_others_are_listed(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run")
    cases = [(file, content) for file, contents in DAMAGED.items() for content in contents]
    with served(tmp_path, "run=run") as site:
        for number, (file, content) in enumerate(cases):
            damaged = Run(tmp_path, f"damaged {number}")
            shutil.copytree(run.folder, damaged.folder)
            evaluated(damaged)
            (damaged.folder / file).write_bytes(content)
            found = site.get("/api/runs").json
            assert [entry["name"] for entry in found["runs"]] == ["run"], (file, content)
            (left_out,) = found["damaged"]
            assert str(damaged) in left_out
            assert "\n" not in left_out
            shutil.rmtree(damaged.folder)
        assert site.get("/api/runs").json["damaged"] == []


def test_an_evaluation_is_shown_line_by_line(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run")
    one = Run(tmp_path, "run")
    evaluated(one)
    with served(tmp_path) as site:
        found = site.get("/api/evaluation?run=run&folder=test-beam").json
        for folder in ("none", "..", "test-beam/", ""):
            assert site.get(f"/api/evaluation?run=run&folder={folder}").status == 404
        (one.folder / "evaluation/test-beam/hypotheses.txt").unlink()
        shutil.copy(one.folder / "evaluation/test-beam/scores.json", tmp_path / "scores.json")
        shutil.move(tmp_path / "scores.json", one.folder / "evaluation/test-beam/scores.json")
        os.utime(one.folder / "evaluation/test-beam/scores.json", ns=(0, 1))
        answer = site.get("/api/evaluation?run=run&folder=test-beam")
        assert answer.status == 400
        assert "hypotheses.txt" in answer.json["error"]
    assert [row["line"] for row in found["rows"]] == [1, 2, 3, 4]
    for column, key in (("sources", "source"), ("references", "reference"), ("hypotheses", "hypothesis")):
        assert [row[key] for row in found["rows"]] == LINES[column]
    chrf = sentence_scores(LINES["hypotheses"], LINES["references"])
    assert [row["chrf"] for row in found["rows"]] == pytest.approx(chrf, abs=0.01)
    assert found["rows"][2]["length_ratio"] == pytest.approx(4 / 3, abs=1e-3)
    assert length_ratio(["ja ja ja ja"], ["eins zwei drei"]) == 4 / 3
    assert [row["flags"] for row in found["rows"]] == [["copied"], ["empty"], ["repetitive"], []]


def test_capitals_that_a_model_cannot_write_are_not_missed_in_its_lines(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run")
    one = Run(tmp_path, "run")
    tokenizer = replace(one.config.tokenizer, lowercase=True)
    save_config(replace(one.config, tokenizer=tokenizer), one.folder / "config.yaml")
    evaluated(one)
    (one.folder / "evaluation/test-beam/hypotheses.txt").write_text("satz 7.\nja!\neins\nnein!\n", "utf-8")
    with served(tmp_path) as site:
        first, *_, last = site.get("/api/evaluation?run=run&folder=test-beam").json["rows"]
    assert (first["reference"], first["chrf"], first["flags"]) == ("Satz 7.", 100.0, ["copied"])
    assert 0 < last["chrf"] < 100


class Log:
    """The parts of a log, one by one."""

    def __init__(self, run: Run) -> None:
        self._run, self._after = run, ""

    def next(self) -> dict[str, Any]:
        part = read_log(self._run, self._after)
        self._after = part.pop("after")
        return part


def part(*lines: object, anew: bool = False, more: bool = False, ended: bool = False) -> dict[str, Any]:
    return {"anew": anew, "lines": [*lines], "more": more, "ended": ended}


def add(run: Run, *entries: object, end: str = "\n") -> None:
    with (run.folder / "log.jsonl").open("a") as file:
        file.write("\n".join(map(json.dumps, entries)) + end)


def test_a_log_is_read_as_it_grows_and_when_it_is_replaced(begun: Run) -> None:
    log = Log(begun)
    assert log.next() == part(anew=True)
    add(begun, {"update": 1}, {"update": 2})
    assert log.next() == part({"update": 1}, {"update": 2}, anew=True)
    add(begun, {"update": 3}, end="")  # half a line is none
    assert log.next() == part()
    add(begun, end=", damaged\n")
    add(begun, {"update": 4, "loss": float("nan")})
    with (begun.folder / "log.jsonl").open("a") as file:
        # Python reads it as infinity, which JSON has not.
        file.write('{"update": 5, "loss": 1e999}\n')
    assert log.next() == part(None, {"update": 4, "loss": None}, {"update": 5, "loss": None})
    write_atomically(begun.folder / "log.jsonl", '{"update": 1}\n')  # as a run that is resumed does
    assert log.next() == part({"update": 1}, anew=True)
    (begun.folder / "log.jsonl").write_text("")  # the same file, but shorter
    assert log.next() == part(anew=True)
    add(begun, {"update": 7})
    assert log.next() == part({"update": 7}, anew=True)
    with begun.lock():
        begun.model_folder.mkdir()
        begun.finish({})
        add(begun, {"update": 8})
        assert log.next() == part({"update": 8})
    add(begun, {"update": 9})
    assert log.next() == part({"update": 9}, ended=True)


def test_a_long_log_is_read_in_parts(begun: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "BLOCK", 20)
    add(begun, {"text": "longer than a block"}, {"update": 2}, {"update": 3})
    begun.model_folder.mkdir()
    begun.finish({})
    log = Log(begun)
    assert log.next() == part({"text": "longer than a block"}, anew=True, more=True)
    assert log.next() == part({"update": 2}, {"update": 3}, more=True)
    assert log.next() == part(ended=True)


def test_lines_of_a_log_that_cannot_be_read_are_told_one_by_one(begun: Run) -> None:
    damaged = [b"damaged", b"", b"\xff", b"[1]", b"[" * 100_000, b'{"text": "\\ud800"}', b'{"kind": "tr']
    (begun.folder / "log.jsonl").write_bytes(b"\n".join([*damaged, b'{"update": 1}', b""]))
    assert Log(begun).next()["lines"] == [*[None] * len(damaged), {"update": 1}]


def test_a_log_is_read_from_its_beginning_where_what_was_read_is_no_part_of_it(begun: Run) -> None:
    add(begun, {"update": 1})
    whole = read_log(begun, "")
    for strange in (
        "1",
        "1:2",
        "x:0",
        f"{2**80}:{2**80}",
        whole["after"] + "0" * 12,
        whole["after"] + "0" * 5000,
    ):
        assert read_log(begun, strange) == whole


def test_a_run_that_nobody_has_begun_has_no_log(site: Served) -> None:
    assert site.get("/api/log?run=none&after=").status == 404
    with pytest.raises(NotFound):
        site.playground.systems.get("none@5")


def test_a_run_that_is_being_trained_is_played_from_its_first_checkpoint_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = small_run(tmp_path / "elsewhere", "whole")
    run = Run(tmp_path / "outputs", "first")
    run.folder.mkdir(parents=True)
    shutil.copy(whole.folder / "config.yaml", run.folder)
    write_json(run.folder / "run.json", [])
    text = {"q": "Ja!", "source": "en", "target": "de"}
    with served(run.root) as site:
        assert "checkpoint" in capsys.readouterr().err
        assert site.get("/api/runs").json["default"] == "first"
        assert site.post("/translate", text).status == 404
        for update in (20, 100):
            shutil.copytree(whole.model_folder, run.checkpoint_folder / f"update-{update:08}")
            assert site.playground.systems.get(None).stamp
        assert site.post("/translate", text).status == 200
        newest = site.playground.systems.get(None).stamp
        assert newest[0] == (run.checkpoint_folder / "update-00000100" / "digests.json").stat().st_ino
        shutil.copytree(whole.model_folder, run.model_folder)
        assert site.playground.systems.get(None).stamp != newest, "the final weights, once they are there"
