"""A run as an object: found by name, the newest one, where it may lie."""

import os
import re
import shutil
from pathlib import Path

import pytest

from commands import endeavour
from configs import run_config
from endeavour.errors import UserError
from endeavour.runs.choice import joined, named_runs, select_runs
from endeavour.runs.config import save_config
from endeavour.runs.listing import begun_runs, trained_runs
from endeavour.runs.run import IMPORTED, Run
from endeavour.storage import write_json
from run_folders import begun_run, finished_run


def test_the_newest_run_is_the_one_that_was_finished_last(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"{tmp_path}.*output_folder="):
        select_runs(None, tmp_path)
    runs = [finished_run(tmp_path, name, age) for name, age in (("a", 30), ("group/b", 10), ("c", 20))]
    unfinished = finished_run(tmp_path, "d")
    (unfinished.folder / "summary.json").unlink()
    finished_run(tmp_path, ".thrown-away")  # as a restart that was killed leaves it
    assert select_runs(None, tmp_path) == [runs[1]]
    assert trained_runs(tmp_path) == [runs[0], runs[2], unfinished, runs[1]]


def test_the_newest_run_is_one_that_translates(tmp_path: Path) -> None:
    translator, restorer = finished_run(tmp_path, "translator", 10), finished_run(tmp_path, "restorer")
    save_config(run_config(["augmentation.denoising=1"]), restorer.folder / "config.yaml")
    assert select_runs(None, tmp_path) == [translator]
    shutil.rmtree(translator.folder)
    with pytest.raises(UserError, match="no finished run"):
        select_runs(None, tmp_path)
    (restorer.folder / "run.json").touch()
    assert select_runs(None, tmp_path, begun=True) == [restorer]  # it can be watched, while there is no other


def test_a_run_that_has_begun_is_selected_where_that_is_enough(tmp_path: Path) -> None:
    for name, age in (("older", 20), ("newer", 10), ("never", 0), (".thrown-away", 0)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.yaml").touch()
        os.utime(folder / "config.yaml", (2_000_000_000 - age,) * 2)
        if name != "never":
            (folder / "run.json").touch()
    assert begun_runs(tmp_path) == [Run(tmp_path, "newer"), Run(tmp_path, "older")]
    assert select_runs(None, tmp_path, begun=True) == [Run(tmp_path, "newer")]
    assert select_runs("older", tmp_path, begun=True) == [Run(tmp_path, "older")]
    with pytest.raises(UserError, match="output_folder="):
        select_runs(None, tmp_path)
    for name, begun in (("older", False), ("other", True)):
        with pytest.raises(UserError, match=f"{name} holds no trained model"):
            select_runs(name, tmp_path, begun=begun)
    trained = finished_run(tmp_path, "trained", 100)
    assert select_runs(None, tmp_path, begun=True) == [trained]


def test_a_run_that_is_not_finished_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    run, _, _ = begun_run(tmp_path)
    with pytest.raises(UserError, match="run is not finished: its own command continues it"):
        select_runs("run", run.root)
    words = [
        "train",
        "name=run",
        "corpus.splits.train=[a b.en]",
        "training.restart=true",
        "++training.restart=true",
    ]
    for unknown in ({"command": ["__main__.py", *words], "job": "17"}, {"command": ["", 1]}, {}, []):
        write_json(run.starts_file, [unknown])
        with pytest.raises(UserError, match="its own command continues it"):
            select_runs("run", run.root)
    write_json(run.starts_file, [{"command": ["/bin/endeavour", *words], "job": None}])
    continues = "`endeavour train name=run 'corpus.splits.train=[a b.en]'` continues it"
    with pytest.raises(UserError, match=re.escape(continues)):
        select_runs("run", run.root)
    with run.lock(), pytest.raises(UserError, match="run is being trained"):
        select_runs("run", run.root)


@pytest.mark.parametrize("name", ["run/model", "run/export/ctranslate2-int8", "group/.hidden", ".hidden"])
def test_a_run_is_not_trained_where_another_replaces_or_nobody_finds_it(
    name: str, tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run, _, _ = begun_run(tmp_path)
    assert endeavour("train", *folders, f"name={name}") == 2
    assert "choose another name=…" in capsys.readouterr().err
    assert not (run.root / name).exists()


def test_a_run_is_not_trained_where_it_would_replace_another(
    tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run, _, _ = begun_run(tmp_path)
    inner = Run(run.root, "group/model")
    shutil.copytree(run.folder, inner.folder)
    assert endeavour("train", *folders, "name=group") == 2
    assert f"{inner.folder} is a run" in capsys.readouterr().err
    assert inner.checkpoint_folder.is_dir()


def test_runs_are_selected_by_name(tmp_path: Path) -> None:
    a, inner, spaced = (finished_run(tmp_path, name) for name in ("a", "group/b", "c d"))
    assert select_runs("a", tmp_path) == [a]
    for text in (
        "group/b a 'c d'",
        "group/b,a,'c d'",
        "[group/b, a, 'c d']",
        f'{tmp_path}/group/b ./a "c d"',
    ):
        assert select_runs(text, tmp_path) == [inner, a, spaced]
    assert select_runs(joined([spaced, a]), tmp_path) == [spaced, a]


def test_a_run_is_named_by_its_whole_path_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("outputs", "."):
        run = finished_run(Path(folder), "group/a")
        assert select_runs(f"{tmp_path / folder}/group/a", Path(folder)) == [run]
    assert named_runs("runs", f"{tmp_path}/outputs/a b", Path("outputs")) == [
        Run(Path("outputs"), "a"),
        Run(Path("outputs"), "b"),
    ]
    whole = f"{tmp_path}/outputs/a"
    config = run_config([f"pretrained={whole}", f"teachers={whole}+{whole}2"])
    assert (config.pretrained, config.teachers) == ("a", '"a+a2"')
    with pytest.raises(UserError, match=r"below output_folder \(outputs\)"):
        select_runs(f"{tmp_path}/outputs2/a", Path("outputs"))


def test_of_many_runs_those_of_the_closest_names_are_listed(tmp_path: Path) -> None:
    names = [*(f"a{number}" for number in range(9)), "multi30k-tiny-1"]
    for name in names:
        finished_run(tmp_path, name)
    with pytest.raises(UserError, match=r"\(finished runs: multi30k-tiny-1, a\d, .* … and 2 more\)"):
        select_runs("multi30k-tny-1", tmp_path)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "run="),
        ("a nowhere", "nowhere .*finished runs: a"),
        ("../a", "output_folder"),
        ("/tmp", "output_folder"),
        (".", "output_folder"),
        ("a ./a", "a is named twice"),
        ("'a", "quote"),
    ],
)
def test_a_name_of_no_run_is_refused(text: str, named: str, tmp_path: Path) -> None:
    finished_run(tmp_path / "outputs", "a")
    with pytest.raises(UserError, match=rf"(?s)^.*{named}"):
        select_runs(text, tmp_path / "outputs")


def test_runs_may_be_named_before_they_are_trained(tmp_path: Path) -> None:
    runs = named_runs("runs", ' x "a,b"  c:\\d ', tmp_path)
    assert runs == [Run(tmp_path, "x"), Run(tmp_path, "a,b"), Run(tmp_path, "c:\\d")]
    assert named_runs("runs", None, tmp_path) == []


def test_runs_are_found_where_they_are_links_and_the_newest_was_trained_here(tmp_path: Path) -> None:
    run = Run(tmp_path / "outputs", "run")
    elsewhere = tmp_path / "large disk"
    (elsewhere / "model").mkdir(parents=True)
    (elsewhere / "model" / "model.json").touch()
    run.root.mkdir()
    run.folder.symlink_to(elsewhere)
    run.finish({"status": "max_updates"})
    shutil.copytree(elsewhere, run.root / ".old")
    imported = Run(run.root, "hf/run")
    shutil.copytree(elsewhere, imported.folder)
    imported.finish({"status": IMPORTED})
    assert trained_runs(run.root) == [imported, run]
    assert select_runs(None, run.root) == [run]


def test_a_damaged_summary_is_named_with_what_to_do(tmp_path: Path) -> None:
    run = Run(tmp_path, "run")
    assert run.summary == {}
    run.folder.mkdir()
    (run.folder / "summary.json").write_text("")
    with pytest.raises(UserError, match=r"summary\.json: damaged .*\ndelete it"):
        _ = run.summary


def test_a_run_without_a_whole_vocabulary_is_named(tmp_path: Path) -> None:
    run, _, _ = begun_run(tmp_path)
    for name in ("source.model", "target.model"):
        (run.checkpoint_folder / "update-00000001" / name).touch()  # not as its digests say: it has none
    with pytest.raises(UserError, match=rf"{run}: .*vocabularies"):
        run.load_tokenizers()
