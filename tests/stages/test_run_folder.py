"""Throwing a run away: only when asked for, once, and as a whole."""

from pathlib import Path

import pytest

from endeavour.config import load_config, save_config
from endeavour.stages.run_folder import find_earlier


def begun(folders: list[str], parallel_files: list[str]) -> tuple[Path, list[str]]:
    """A run folder with something in it, and the overrides that name it."""
    overrides = [*parallel_files, *folders, "name=run"]
    folder = load_config(overrides).run_folder
    (folder / "checkpoints").mkdir(parents=True)
    save_config(load_config(overrides), folder / "config.yaml")
    return folder, [*overrides, "training.restart=true"]


def test_a_restart_throws_the_run_away(folders: list[str], parallel_files: list[str]) -> None:
    folder, overrides = begun(folders, parallel_files)
    assert find_earlier(load_config(overrides)) is None
    assert list(folder.parent.iterdir()) == []


@pytest.mark.parametrize("count", ["TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"])
def test_a_command_that_a_scheduler_repeats_does_not(
    count: str, folders: list[str], parallel_files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, overrides = begun(folders, parallel_files)
    monkeypatch.setenv(count, "1")
    assert find_earlier(load_config(overrides)) is None  # goes on with it
    assert (folder / "checkpoints").is_dir()


def test_a_restart_that_was_killed_leaves_nothing_to_resume(
    folders: list[str], parallel_files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, overrides = begun(folders, parallel_files)

    def killed(path: Path, **_: object) -> None:
        if path.is_dir():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            find_earlier(load_config(overrides))
    assert not folder.exists()
    assert find_earlier(load_config(overrides)) is None
    assert list(folder.parent.iterdir()) == []
