"""A run is thrown away only when that was asked for, once, and as a whole."""

import shutil
from pathlib import Path

import pytest
import torch

from commands import endeavour
from endeavour.errors import UserError
from endeavour.runs.locks import FolderBusy
from endeavour.runs.restart import discard, goes_on, restart_noted
from endeavour.runs.run import Run
from run_folders import begun_run, finished_run


def test_a_restart_throws_the_run_away_and_a_usual_start_does_not(tmp_path: Path) -> None:
    run, config, restart = begun_run(tmp_path)
    assert goes_on(run, config)
    assert not goes_on(run, restart)
    discard(run)
    assert list(run.root.iterdir()) == []
    assert not goes_on(run, config)


@pytest.mark.parametrize("trained", [True, False])
def test_runs_inside_it_are_not_thrown_away_with_a_run(tmp_path: Path, trained: bool) -> None:
    run, _, _ = begun_run(tmp_path)
    child = Run(run.root, "run/a/child")
    if trained:
        finished_run(run.root, child.name)
    else:
        child.folder.mkdir(parents=True)
        for name in ("config.yaml", "run.json"):
            (child.folder / name).touch()
    with pytest.raises(UserError, match=r"holds other runs \(a/child\)"):
        discard(run)
    assert child.folder.is_dir()
    assert run.was_begun


def test_weights_alone_are_a_run_that_other_settings_do_not_replace(tmp_path: Path) -> None:
    run, config, _ = begun_run(tmp_path)
    shutil.rmtree(run.checkpoint_folder)
    assert not goes_on(run, config)
    run.model_folder.mkdir()
    assert goes_on(run, config)


@pytest.mark.parametrize("count", ["TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"])
def test_a_command_that_a_scheduler_repeats_throws_nothing_away(
    count: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, config, restart = begun_run(tmp_path)
    monkeypatch.setenv(job := {"T": "TORCHELASTIC_RUN_ID", "S": "SLURM_JOB_ID"}[count[0]], "7")
    run.begin(config, torch.device("cpu"), [])
    monkeypatch.setenv(job, "8")
    run.begin(config, torch.device("cpu"), [])
    assert not goes_on(run, restart)
    monkeypatch.setenv(count, "1")
    assert goes_on(run, restart)
    monkeypatch.setenv(job, "9")  # whose command has not come to this run yet
    assert not goes_on(run, restart)
    assert goes_on(run, config)


def test_a_restart_that_is_interrupted_is_still_one_by_whatever_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, config, restart = begun_run(tmp_path)
    with pytest.raises(KeyboardInterrupt), restart_noted(run):
        raise KeyboardInterrupt
    assert not goes_on(run, config)
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert not goes_on(run, restart)
    discard(run)
    again, _, _ = begun_run(tmp_path)
    assert goes_on(again, restart)
    assert set(run.root.iterdir()) == {run.folder, run.root / ".run.lock"}


def test_a_restart_is_not_noted_where_there_is_no_run_or_the_user_made_a_mistake(tmp_path: Path) -> None:
    nothing = Run(tmp_path / "outputs", "run")
    with restart_noted(nothing):
        assert not nothing.root.exists()
    run, _, _ = begun_run(tmp_path)
    with pytest.raises(UserError), restart_noted(run):
        raise UserError("no such corpus")
    assert set(run.root.iterdir()) == {run.folder, run.root / ".run.lock"}


def test_a_run_that_another_process_trains_is_not_to_be_thrown_away(tmp_path: Path) -> None:
    run, config, _ = begun_run(tmp_path)
    with run.lock(), pytest.raises(FolderBusy), restart_noted(run):
        pass
    assert goes_on(run, config)


def test_a_folder_in_which_nothing_was_trained_is_no_run(tmp_path: Path) -> None:
    run, config, _ = begun_run(tmp_path)
    (run.checkpoint_folder / "update-00000001").rename(run.checkpoint_folder / ".update-00000001.partial")
    (run.folder / "mine.txt").write_text("")
    assert not goes_on(run, config)
    discard(run)
    assert (run.folder / "mine.txt").is_file()


def test_discarding_empties_a_run_folder_that_is_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "large disk" / "run"
    elsewhere.parent.mkdir()
    for _ in range(2):
        run, _, _ = begun_run(tmp_path)
        run.folder.rename(elsewhere)
        run.folder.symlink_to(elsewhere)
        discard(run)
        assert list(run.root.iterdir()) == [run.folder]
        assert list(elsewhere.parent.iterdir()) == [elsewhere]
        assert list(run.folder.iterdir()) == []
        run.folder.unlink()
        elsewhere.rmdir()


def test_a_restart_that_was_killed_leaves_nothing_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, config, _ = begun_run(tmp_path)

    def killed(path: Path, **_: object) -> None:
        if path.is_dir():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            discard(run)
    assert not run.folder.exists()
    assert not goes_on(run, config)
    discard(run)
    assert list(run.root.iterdir()) == []


def test_what_cannot_begin_or_be_evaluated_is_refused_before_a_restart_loses_anything(
    tmp_path: Path, folders: list[str], parallel_files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run, _, _ = begun_run(tmp_path)
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
