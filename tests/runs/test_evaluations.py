"""Evaluations in run folders: what they are called, which a comparison means, and the commands that make them."""

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from configs import run_config
from endeavour.commands.evaluate import EvaluateRoot
from endeavour.commands.export import ExportRoot
from endeavour.commands.play import PlayRoot
from endeavour.config import load_config
from endeavour.data.perturbations import PERTURBATIONS, copy_name
from endeavour.decoding.config import LONGEST_NAME
from endeavour.errors import UserError
from endeavour.overrides import literal, quote_literal
from endeavour.runs.command_lines import evaluate_command, export_command, play_command
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.evaluations import Evaluation, decoding_label
from endeavour.runs.run import IMPORTED, Run
from endeavour.runs.selection import find_evaluations
from endeavour.storage import write_json

WITHOUT_TEST = ["corpus=files", *(f"corpus.splits.{split}=[a.tsv]" for split in ("train", "validation"))]


def begun(root: Path, name: str, *overrides: str) -> Run:
    """A run that has final weights, as far as its names tell."""
    config = run_config([f"name={name!r}", f"output_folder={literal(str(root))}", *overrides])
    run = Run(root, name)
    run.model_folder.mkdir(parents=True)
    save_config(config, run.folder / "config.yaml")
    return run


def evaluated(run: Run, test_set: str, label: str = "beam", **decoding: Any) -> Evaluation:
    one = Evaluation(run, f"{test_set}-{label}")
    one.folder.mkdir(parents=True)
    settings = asdict(run.config.decoding) | {"name": label} | decoding
    write_json(one.folder / "scores.json", {"decoding": settings, "model": {"test_set": test_set}})
    return one


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Run, Run]:
    """a and b, evaluated on `test_unseen`, of the textbook, and on `files`, which is not."""
    found = begun(tmp_path, "a"), begun(tmp_path, "b")
    for run in found:
        evaluated(run, "test_unseen")
        evaluated(run, "files")
    return found


def find(root: Path, text: str | None, test_set: str | None = None, label: str | None = None) -> list[str]:
    return [
        str(one.folder.relative_to(root))
        for one in find_evaluations(text, test_set, label, root, alone=False)
    ]


def pasted(command: str) -> list[str]:
    """The overrides of a command that a message names, as a shell and the command line take them."""
    program, _, *overrides = shlex.split(command)
    assert program == "endeavour"
    return [quote_literal(override) for override in overrides]


# Names


def test_each_ensemble_has_a_label_of_its_own_whatever_the_order() -> None:
    decoding = load_config("train", RunConfig).decoding
    ensembles = [["b", "c"], ["c", "b"], ["b", "d"], ["b"], [], ["b+c"], ["x/y"], ["x_y"]]
    ensembles += [["x/" * 60 + "b"], ["x/" * 60 + "c"]]
    labels = [
        decoding_label(decoding, others=[Run(Path("out"), name) for name in names]) for names in ensembles
    ]
    assert labels[:2] == ["beam-with-b+c"] * 2
    assert len(set(labels)) == 9
    assert not any("/" in label for label in labels)


def test_the_longest_names_together_are_one_that_a_folder_can_have() -> None:
    name = "ü" * (LONGEST_NAME // 2)
    decoding = replace(run_config([]).decoding, name=name, engine="ctranslate2", quantization="int8_bfloat16")
    test_set = copy_name("x" * LONGEST_NAME, max(PERTURBATIONS, key=len))
    folder = f"{test_set}-{decoding_label(decoding, others=[Run(Path('out'), 'y' * 100)])}"
    assert len(folder.encode()) <= 255


# Which are meant


def test_a_test_set_of_the_corpus_comes_first_then_validation_and_copies_last(
    runs: tuple[Run, Run], tmp_path: Path
) -> None:
    for run in runs:
        evaluated(run, "validation", "greedy")
        evaluated(run, "a.typos", "greedy")
        evaluated(run, "test_unseen.typos")
        evaluated(run, "validation")
    assert find(tmp_path, "a b") == [
        "a/evaluation/test_unseen-beam",
        "b/evaluation/test_unseen-beam",
    ]
    assert find(tmp_path, "a b", label="greedy")[0] == "a/evaluation/validation-greedy"
    assert find(tmp_path, "a b", "files")[1] == "b/evaluation/files-beam"


def test_an_evaluation_may_be_named_by_its_folder(runs: tuple[Run, Run], tmp_path: Path) -> None:
    evaluated(runs[0], "files", "greedy")
    named = "a/evaluation/files-greedy"
    assert find(tmp_path, f"{named} b") == [
        named,
        "b/evaluation/files-beam",
    ]  # on its test set, whatever others there are
    assert find(tmp_path, f"a {named}", "files") == ["a/evaluation/files-beam", named]
    assert find(tmp_path, f"{named} {tmp_path}/b/evaluation/files-beam/")[1] == "b/evaluation/files-beam"
    with pytest.raises(UserError, match="has no evaluation files-mbr"):
        find(tmp_path, f"{named} a/evaluation/files-mbr")
    with pytest.raises(UserError, match="split="):
        find(tmp_path, f"{named} b/evaluation/files-beam", "files")


def test_a_label_that_ends_in_anothers_is_another(runs: tuple[Run, Run], tmp_path: Path) -> None:
    for run in runs:
        evaluated(run, "set", "my-beam")
    assert find(tmp_path, "a b", label="my-beam")[0] == "a/evaluation/set-my-beam"
    assert find(tmp_path, "a b", "files", "beam")[0] == "a/evaluation/files-beam"
    with pytest.raises(UserError, match="set-my-beam"):
        find(tmp_path, "a b", "set", "beam")


@pytest.mark.parametrize("text", [None, "", "a", "[]"])
def test_fewer_than_two_runs_are_refused(text: str | None, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="two runs or more"):
        find(tmp_path, text)


@pytest.mark.parametrize("split", [None, "files"])
@pytest.mark.parametrize("names", ["a b", "b a"])
def test_a_run_that_is_in_the_ensemble_itself_is_compared_with_that_by_its_folder(
    names: str, split: str | None, runs: tuple[Run, Run], tmp_path: Path
) -> None:
    for test_set in ("files", "test_unseen"):
        evaluated(runs[0], test_set, "beam-with-b")
    with pytest.raises(UserError, match="b is in that ensemble") as caught:
        find(tmp_path, names, split, "beam-with-b")
    _, _, said = shlex.split(str(caught.value))[-1].partition("=")
    assert said == f"a/evaluation/{split or 'SPLIT'}-beam-with-b b"
    if split:
        assert find(tmp_path, said) == ["a/evaluation/files-beam-with-b", "b/evaluation/files-beam"]


def test_a_name_that_no_folder_can_have_is_one_that_is_not_there(
    runs: tuple[Run, Run], tmp_path: Path
) -> None:
    for choice in (("x" * 300, None), ("files", "x" * 300), (None, "x" * 300)):
        with pytest.raises(UserError, match="a has no evaluation"):
            find(tmp_path, "a b", *choice)


def test_a_run_that_is_not_there(runs: tuple[Run, Run], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no run c in .*\(evaluated runs: a, b\)"):
        find(tmp_path, "a c")
    with pytest.raises(UserError, match="no run was evaluated yet"):
        find(tmp_path / "nowhere", "a c")


def test_runs_without_a_test_set_in_common(runs: tuple[Run, Run], tmp_path: Path) -> None:
    evaluated(begun(tmp_path, "c"), "news")
    with pytest.raises(UserError, match=r"c: news\).*split="):
        find(tmp_path, "a c")


# The commands


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"decoding": {}, "model": {}}'])
def test_damaged_scores_are_named_with_what_makes_them_anew(
    content: str, runs: tuple[Run, Run], tmp_path: Path
) -> None:
    one = evaluated(runs[1], "validation", "greedy")
    (one.folder / "scores.json").write_text(content, "utf-8")
    with pytest.raises(UserError, match=r"scores\.json") as caught:
        _ = Evaluation(one.run, one.folder_name).record
    assert f"delete {one.folder}, or run `" in str(caught.value)
    asked = load_config("evaluate", EvaluateRoot, pasted(str(caught.value).split("`")[1]))
    assert (asked.run, asked.decoding.name, asked.evaluation.splits) == ("b", "greedy", ["validation"])


@pytest.mark.parametrize(
    ("own", "label", "test_set", "expected"),
    [
        (["decoding.beam_size=7"], None, None, []),
        (["decoding.beam_size=7"], "beam", None, []),  # its own, whatever its settings
        (["evaluation.splits=[]"], None, None, ["evaluation.splits=[validation]"]),
        (WITHOUT_TEST, None, None, ["evaluation.splits=[validation]"]),
        ([*WITHOUT_TEST, "corpus.held_out_rare=9"], "beam", None, []),
        ([], "greedy", "validation", ["decoding=greedy", "evaluation.splits=[validation]"]),
        ([], "mine", "test_unseen", ["decoding.name=mine", "evaluation.splits=[test_unseen]"]),
        ([], "beam-ctranslate2-int8", None, ["decoding.engine=ctranslate2", "decoding.quantization=int8"]),
        ([], "beam", "news", ["+evaluation.files.news=[FILE,FILE]"]),
        (["+evaluation.files.news=[x.en,x.de]"], "beam", "news", ["+evaluation.files.news=[x.en,x.de]"]),
    ],
)
def test_the_command_that_evaluates(
    own: list[str], label: str | None, test_set: str | None, expected: list[str], tmp_path: Path
) -> None:
    run = begun(tmp_path, "a", *own)
    command = evaluate_command(run, label, test_set)
    assert shlex.split(command) == ["endeavour", "evaluate", "run=a", f"output_folder={tmp_path}", *expected]
    asked = load_config("evaluate", EvaluateRoot, pasted(command))
    assert label is None or decoding_label(asked.decoding) == label


def test_of_a_run_from_elsewhere_other_text_is_evaluated(tmp_path: Path) -> None:
    run = begun(tmp_path, "a")
    run.finish({"status": IMPORTED})
    assert evaluate_command(run).endswith(" '+evaluation.files.NAME=[FILE,FILE]'")


def test_a_command_names_folders_ensembles_and_runs_so_that_it_works_where_it_is_pasted(
    tmp_path: Path,
) -> None:
    for name in ("my run", "b/c"):
        run = begun(tmp_path / "out put", name, "data_folder='my data'", "decoding=sample")
    many = evaluate_command(Run(run.root, "my run"), "beam-with-3-runs-0123456789ab")
    assert "NAME NAME NAME" in many, "too many names for a folder's name are not kept"
    command = evaluate_command(Run(run.root, "my run"), "sample-with-b%2Fc")
    asked = load_config("evaluate", EvaluateRoot, pasted(command))
    assert (asked.run, asked.data_folder) == ('"my run" b/c', "my data")
    exported = load_config("export", ExportRoot, pasted(export_command(run, "float32")))
    assert load_config("play", PlayRoot, pasted(play_command(run))).output_folder == str(run.root)
    assert (exported.run, exported.quantization, exported.data_folder) == ("b/c", "float32", "my data")
    assert not exported.decoding.sampling  # which no export is compared by


@pytest.mark.parametrize(
    "folder",
    ["o (1)", "o, x", "o=y", "o#1 [b]", "o'z", "'o'", "a~o", "März", "007", "null", "a${seed}", "o\\"],
)
def test_a_command_works_whatever_folders_files_and_decodings_are_called(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = begun(Path(folder), "a")
    files = [f"{folder}/März.en", f"{folder}.de"]
    own = replace(
        run.config, data_folder=folder, evaluation=replace(run.config.evaluation, files={"n": files})
    )
    save_config(own, run.folder / "config.yaml")
    run.forget_config()
    asked = load_config("evaluate", EvaluateRoot, pasted(evaluate_command(run, "beam (1)", "n")))
    assert asked.evaluation.files == {"n": files}
    assert asked.decoding.name == "beam (1)"
    for one in (asked, load_config("export", ExportRoot, pasted(export_command(run, "int8")))):
        assert [one.output_folder, one.data_folder] == [folder] * 2
    assert load_config("play", PlayRoot, pasted(play_command(run))).output_folder == folder


def test_the_command_that_would_help_decodes_as_the_others_were(
    runs: tuple[Run, Run], tmp_path: Path
) -> None:
    begun(tmp_path, "c", "decoding=mbr", "decoding.length_penalty=1.3")

    def named(*choice: str | None) -> EvaluateRoot:
        with pytest.raises(UserError, match="c has no evaluation") as caught:
            find(tmp_path, "a c", *choice)
        return load_config("evaluate", EvaluateRoot, pasted(str(caught.value).split("`")[1]))

    for test_set in ("files", "test_unseen"):
        assert named(test_set).decoding == runs[0].config.decoding
    assert named().decoding == runs[0].config.decoding
    evaluated(runs[0], "files", "mine", beam_size=9)
    assert named("files", "mine").decoding == replace(runs[0].config.decoding, name="mine", beam_size=9)
