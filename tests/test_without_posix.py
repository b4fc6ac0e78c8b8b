"""What only POSIX has is used where it is there, and needed nowhere: it is taken away, and everything works."""

import errno
import os
import signal
import sys
from pathlib import Path

import pytest
import sacrebleu  # noqa: F401  # its portalocker asks the system's name, and imports fcntl on this one

from commands import endeavour
from endeavour.benchmark import process
from endeavour.errors import UserError
from endeavour.runs.locks import is_held, lock_folder
from endeavour.runs.run import Run
from endeavour.storage import atomic_folder, flush, verify
from endeavour.training.signals import StopSignal

MODULES = ("fcntl", "resource")
OF_OS = ("fork", "geteuid", "getpgid", "setsid", "sched_getaffinity", "O_DIRECTORY", "getloadavg")
OF_SIGNAL = ("SIGUSR1", "SIGUSR2", "SIGKILL", "SIGHUP", "SIGALRM", "pthread_sigmask")


@pytest.fixture
def no_posix(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: names that are not there, folders that cannot be opened."""
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, None)
    for module, names in ((os, OF_OS), (signal, OF_SIGNAL)):
        for name in names:
            monkeypatch.delattr(module, name, raising=False)
    monkeypatch.setattr(os, "process_cpu_count", os.cpu_count, raising=False)  # asks sched_getaffinity here
    open_file = os.open

    def open_no_folder(path: str, *arguments: int, dir_fd: int | None = None) -> int:
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return open_file(path, *arguments, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_no_folder)
    monkeypatch.setattr("shutil._use_fd_functions", False)


@pytest.mark.usefixtures("no_posix")
def test_a_run_is_trained_evaluated_compared_and_translates(
    parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    short = ["decoding=greedy", "training.max_updates=2", "training.validate_every=2", "name=run"]
    assert endeavour("train", *parallel_files, *folders, *short) == 0
    run = tmp_path / "outputs" / "run"
    other = run / "evaluation" / "test-greedy" / "hypotheses.txt"
    few = ["bootstrap_samples=40", "randomization_trials=50"]
    assert endeavour("compare", *folders[:2], "runs=run", f"systems={other}", *few) == 0
    assert endeavour("translate", folders[1], "run=run", "text=the old dog") == 0
    assert (run / "summary.json").is_file()


@pytest.mark.usefixtures("no_posix")
def test_a_stop_is_noted_by_the_signals_that_there_are() -> None:
    with StopSignal() as stop:
        signal.raise_signal(signal.SIGTERM)
    assert stop.number == signal.SIGTERM


@pytest.mark.usefixtures("no_posix")
def test_a_run_in_training_is_told_from_others(tmp_path: Path) -> None:
    run = Run(tmp_path, "run")
    assert not run.is_locked
    with run.lock():
        assert run.is_locked
        with pytest.raises(UserError, match="another process"):
            lock_folder(run.folder, "trained")
    assert not run.is_locked
    assert not is_held(tmp_path / "other")
    assert not (tmp_path / ".other.lock").exists()


@pytest.mark.usefixtures("no_posix")
def test_peak_memory_is_unknown_where_no_system_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    is_file = Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda path: "proc" not in path.parts and is_file(path))
    assert process.peak_memory() is None


@pytest.mark.parametrize("refusal", ["open", "fsync"])
@pytest.mark.parametrize("code", [errno.EACCES, errno.EINVAL, errno.EIO])
def test_folders_are_flushed_where_that_exists_and_other_errors_are_told(
    refusal: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = getattr(os, refusal)

    def refuse(file: str | int, *arguments: int) -> int | None:
        if (Path(f"/proc/self/fd/{file}") if isinstance(file, int) else Path(file)).is_dir():
            raise OSError(code, os.strerror(code))
        return usual(file, *arguments)

    monkeypatch.setattr(os, refusal, refuse)
    if code == errno.EIO:
        with pytest.raises(OSError, match=os.strerror(code)):
            flush(tmp_path)
        return
    with atomic_folder(tmp_path / "folder") as partial:
        (partial / "file").write_bytes(b"content")
    verify(tmp_path / "folder")


def test_a_file_that_does_not_reach_the_disk_is_an_error_whatever_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"content")

    def refuse(_: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Invalid argument"):
        flush(tmp_path / "file")
