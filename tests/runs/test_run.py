"""A run as an object: found by name, the newest one, thrown away only when asked for, once, and as a whole."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from commands import endeavour
from configs import run_config
from endeavour.errors import UserError
from endeavour.runs import provenance
from endeavour.runs.choice import joined, named_runs, select_runs
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.run import IMPORTED, Run, begun_runs, trained_runs


def finished(root: Path, name: str, age: int = 0) -> Run:
    """What the search for runs looks at: of one that was finished `age` seconds ago."""
    run = Run(root, name)
    (run.model_folder).mkdir(parents=True)
    (run.model_folder / "model.json").write_text("{}")
    run.finish({"name": name})
    moment = 2_000_000_000 - age
    os.utime(run.folder / "summary.json", (moment, moment))
    return run


def begun(tmp_path: Path) -> tuple[Run, RunConfig, RunConfig]:
    """A run with something in it, the config that continues it, and the one that throws it away."""
    typed = [f"output_folder={tmp_path / 'outputs'}", "name=run"]
    config, restart = (run_config([*typed, *more]) for more in ([], ["training.restart=true"]))
    run = Run.of(config)
    (run.checkpoint_folder / "update-00000001").mkdir(parents=True)
    save_config(config, run.folder / "config.yaml")
    return run, config, restart


def test_the_newest_run_is_the_one_that_was_finished_last(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"{tmp_path}.*output_folder="):
        select_runs(None, tmp_path)
    runs = [finished(tmp_path, name, age) for name, age in (("a", 30), ("group/b", 10), ("c", 20))]
    unfinished = finished(tmp_path, "d")
    (unfinished.folder / "summary.json").unlink()
    finished(tmp_path, ".thrown-away")  # as a restart that was killed leaves it
    assert select_runs(None, tmp_path) == [runs[1]]
    assert trained_runs(tmp_path) == [runs[0], runs[2], unfinished, runs[1]]


def test_the_newest_run_is_one_that_translates(tmp_path: Path) -> None:
    translator, restorer = finished(tmp_path, "translator", 10), finished(tmp_path, "restorer")
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
    trained = finished(tmp_path, "trained", 100)
    assert select_runs(None, tmp_path, begun=True) == [trained]


def test_a_run_that_is_not_finished_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    run, _, _ = begun(tmp_path)
    with pytest.raises(UserError, match="run is not finished: its own command continues it"):
        select_runs("run", run.root)
    with run.lock(), pytest.raises(UserError, match="run is being trained"):
        select_runs("run", run.root)


@pytest.mark.parametrize("name", ["run/model", "run/export/ctranslate2-int8", "group/.hidden", ".hidden"])
def test_a_run_is_not_trained_where_another_replaces_or_nobody_finds_it(
    name: str, tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run, _, _ = begun(tmp_path)
    assert endeavour("train", *folders, f"name={name}") == 2
    assert "choose another name=…" in capsys.readouterr().err
    assert not (run.root / name).exists()


def test_a_run_is_not_trained_where_it_would_replace_another(
    tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run, _, _ = begun(tmp_path)
    inner = Run(run.root, "group/model")
    shutil.copytree(run.folder, inner.folder)
    assert endeavour("train", *folders, "name=group") == 2
    assert f"{inner.folder} is a run" in capsys.readouterr().err
    assert inner.checkpoint_folder.is_dir()


def test_runs_are_selected_by_name(tmp_path: Path) -> None:
    a, inner, spaced = (finished(tmp_path, name) for name in ("a", "group/b", "c d"))
    assert select_runs("a", tmp_path) == [a]
    for text in (
        "group/b a 'c d'",
        "group/b,a,'c d'",
        "[group/b, a, 'c d']",
        f'{tmp_path}/group/b ./a "c d"',
    ):
        assert select_runs(text, tmp_path) == [inner, a, spaced]
    assert select_runs(joined([spaced, a]), tmp_path) == [spaced, a]


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
    finished(tmp_path / "outputs", "a")
    with pytest.raises(UserError, match=rf"(?s)^.*{named}"):
        select_runs(text, tmp_path / "outputs")


def test_runs_may_be_named_before_they_are_trained(tmp_path: Path) -> None:
    runs = named_runs("runs", ' x "a,b"  c:\\d ', tmp_path)
    assert runs == [Run(tmp_path, "x"), Run(tmp_path, "a,b"), Run(tmp_path, "c:\\d")]
    assert named_runs("runs", None, tmp_path) == []


def test_a_restart_throws_the_run_away_and_a_usual_start_does_not(tmp_path: Path) -> None:
    run, config, restart = begun(tmp_path)
    assert run.goes_on(config)
    assert not run.goes_on(restart)
    run.discard()
    assert list(run.root.iterdir()) == []
    assert not run.goes_on(config)


@pytest.mark.parametrize("trained", [True, False])
def test_runs_inside_it_are_not_thrown_away_with_a_run(tmp_path: Path, trained: bool) -> None:
    run, _, _ = begun(tmp_path)
    child = Run(run.root, "run/a/child")
    if trained:
        finished(run.root, child.name)
    else:
        child.folder.mkdir(parents=True)
        for name in ("config.yaml", "run.json"):
            (child.folder / name).touch()
    with pytest.raises(UserError, match=r"holds other runs \(a/child\)"):
        run.discard()
    assert child.folder.is_dir()
    assert run.was_begun


def test_weights_alone_are_a_run_that_other_settings_do_not_replace(tmp_path: Path) -> None:
    run, config, _ = begun(tmp_path)
    shutil.rmtree(run.checkpoint_folder)
    assert not run.goes_on(config)
    run.model_folder.mkdir()
    assert run.goes_on(config)


@pytest.mark.parametrize("count", ["TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"])
def test_a_command_that_a_scheduler_repeats_throws_nothing_away(
    count: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, config, restart = begun(tmp_path)
    monkeypatch.setenv(job := {"T": "TORCHELASTIC_RUN_ID", "S": "SLURM_JOB_ID"}[count[0]], "7")
    run.begin(config, torch.device("cpu"), [])
    monkeypatch.setenv(job, "8")
    run.begin(config, torch.device("cpu"), [])
    assert not run.goes_on(restart)
    monkeypatch.setenv(count, "1")
    assert run.goes_on(restart)
    monkeypatch.setenv(job, "9")  # whose command has not come to this run yet
    assert not run.goes_on(restart)
    assert run.goes_on(config)


def test_a_restart_that_is_interrupted_is_still_one_by_whatever_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, config, restart = begun(tmp_path)
    with pytest.raises(KeyboardInterrupt), run.restart_noted():
        raise KeyboardInterrupt
    assert not run.goes_on(config)
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert not run.goes_on(restart)
    run.discard()
    again, _, _ = begun(tmp_path)
    assert again.goes_on(restart)
    assert list(run.root.iterdir()) == [run.folder]


def test_a_restart_is_not_noted_where_there_is_no_run_or_the_user_made_a_mistake(tmp_path: Path) -> None:
    nothing = Run(tmp_path / "outputs", "run")
    with nothing.restart_noted():
        assert not nothing.root.exists()
    run, _, _ = begun(tmp_path)
    with pytest.raises(UserError), run.restart_noted():
        raise UserError("no such corpus")
    assert list(run.root.iterdir()) == [run.folder]


def test_a_folder_in_which_nothing_was_trained_is_no_run(tmp_path: Path) -> None:
    run, config, _ = begun(tmp_path)
    (run.checkpoint_folder / "update-00000001").rename(run.checkpoint_folder / ".update-00000001.partial")
    (run.folder / "mine.txt").write_text("")
    assert not run.goes_on(config)
    run.discard()
    assert (run.folder / "mine.txt").is_file()


def test_discarding_empties_a_run_folder_that_is_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "large disk" / "run"
    elsewhere.parent.mkdir()
    for _ in range(2):
        run, _, _ = begun(tmp_path)
        run.folder.rename(elsewhere)
        run.folder.symlink_to(elsewhere)
        run.discard()
        assert list(run.root.iterdir()) == [run.folder]
        assert list(elsewhere.parent.iterdir()) == [elsewhere]
        assert list(run.folder.iterdir()) == []
        run.folder.unlink()
        elsewhere.rmdir()


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


def test_a_restart_that_was_killed_leaves_nothing_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, config, _ = begun(tmp_path)

    def killed(path: Path, **_: object) -> None:
        if path.is_dir():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            run.discard()
    assert not run.folder.exists()
    assert not run.goes_on(config)
    run.discard()
    assert list(run.root.iterdir()) == []


def test_what_cannot_begin_or_be_evaluated_is_refused_before_a_restart_loses_anything(
    tmp_path: Path, folders: list[str], parallel_files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run, _, _ = begun(tmp_path)
    for wrong in (
        "corpus.splits.train=[typo.en,typo.de]",
        "evaluation.splits=[typo]",
        "+evaluation.files.news=[typo.en,typo.de]",
        "evaluation.tokenized_references=typo",
        "training.tokens_per_batch=3",
        "model.max_length=3",
    ):
        overrides = [*parallel_files, *folders, "name=run", "evaluation.tokenized_bleu=true", wrong]
        assert endeavour("train", *overrides, "model.positions=learned", "training.restart=true") == 2
        named = "typo" if "typo" in wrong else wrong.rpartition(".")[2]
        assert named in capsys.readouterr().err
        assert run.checkpoint_folder.is_dir()


def test_a_damaged_summary_is_named_with_what_to_do(tmp_path: Path) -> None:
    run = Run(tmp_path, "run")
    assert run.summary == {}
    run.folder.mkdir()
    (run.folder / "summary.json").write_text("")
    with pytest.raises(UserError, match=r"summary\.json: damaged .*\ndelete it"):
        _ = run.summary


def test_a_run_without_a_whole_vocabulary_is_named(tmp_path: Path) -> None:
    run, _, _ = begun(tmp_path)
    for name in ("source.model", "target.model"):
        (run.checkpoint_folder / "update-00000001" / name).touch()  # not as its digests say: it has none
    with pytest.raises(UserError, match=rf"{run}: .*vocabularies"):
        run.load_tokenizers()


def test_each_start_adds_what_it_takes_to_repeat_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, config, _ = begun(tmp_path)
    run = Run.of(config)
    for word, reason in (("one", None), ("two", "no compiler")):
        monkeypatch.setattr(provenance, "why_not", lambda reason=reason: reason)
        run.begin(config, torch.device("cpu"), ["endeavour", "train", word])
    starts = json.loads((run.folder / "run.json").read_text())
    assert [start["command"][-1] for start in starts] == ["one", "two"]
    assert torch.__version__.startswith(starts[0]["packages"]["torch"])  # and perhaps +cu130
    assert starts[0]["device"]["type"] == "cpu"
    assert [start["device"]["kernels"] for start in starts] == [True, False]
    assert run.config == config


def test_the_commit_is_that_of_this_code_not_of_what_it_is_installed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = [
        "git",
        "-C",
        str(tmp_path),
        "-c",
        "user.name=a",
        "-c",
        "user.email=b",
        "-c",
        "commit.gpgsign=false",
    ]
    installed = tmp_path / ".venv" / "provenance.py"
    installed.parent.mkdir()
    installed.touch()
    monkeypatch.setattr(provenance, "__file__", str(installed))
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "something else"], check=True)
    assert provenance._git_commit() is None
    subprocess.run([*git, "add", str(installed)], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "its own code"], check=True)
    assert len(provenance._git_commit() or "") == 40
    installed.write_text("# changed", "utf-8")
    assert (provenance._git_commit() or "").endswith("+changes")
