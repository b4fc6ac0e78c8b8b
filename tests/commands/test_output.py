"""The file a command writes: whole or as it was, and what was written before an error beside it."""

import errno
import gzip
import io
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from endeavour.commands import output
from endeavour.commands.output import open_output, open_standard_input
from endeavour.errors import UserError


def write(output: Path, text: str, error: Exception | None = None) -> None:
    with ExitStack() as stack:
        file = open_output(str(output), stack, [], standard_input=False)
        file.writelines(text.splitlines(keepends=True))
        if error is not None:
            raise error


def test_a_file_takes_its_place_when_all_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    write(file, "old")
    link.symlink_to(file)
    with pytest.raises(ValueError, match="in the middle"):
        write(link, "half", ValueError("in the middle"))
    assert file.read_text("utf-8") == "old"
    partial = tmp_path / ".file.partial"
    assert partial.read_text("utf-8") == "half"
    assert str(partial) in capsys.readouterr().err
    write(link, "new")
    assert file.read_text("utf-8") == "new"
    assert link.is_symlink()
    assert not partial.exists()


@pytest.mark.parametrize("mode", [0o600, 0o444])
def test_the_permissions_of_a_file_stay(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    write(file, "old")
    file.chmod(mode)
    with pytest.raises(ValueError, match="in the middle"):
        write(file, "half", ValueError("in the middle"))
    write(file, "new")
    assert file.read_text("utf-8") == "new"
    assert file.stat().st_mode & 0o777 == mode


def test_of_what_was_not_begun_nothing_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("file", "file.gz"):
        with pytest.raises(ValueError, match="at once"):
            write(tmp_path / name, "", ValueError("at once"))
    assert not list(tmp_path.iterdir())
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    "buffer", [8192, 131_072]
)  # full while lines are written, or when the file is closed
def test_on_a_full_disk_what_was_written_until_then_is_named(
    buffer: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            if self.tell():
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(bytes(data[:4096]))

    def opened(path: Path, gzipped: bool) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BufferedWriter(Full(path, "w"), buffer), "utf-8")

    monkeypatch.setattr(output, "_open", opened)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "file", "line\n" * 10_000)
    partial = tmp_path / ".file.partial"
    assert ("line\n" * 10_000).startswith(partial.read_text())
    assert str(partial) in capsys.readouterr().err


def test_what_was_written_before_sigterm_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def stopped() -> None:
        with ExitStack() as stack:
            print("line", file=open_output(str(tmp_path / "file"), stack, [], standard_input=False))
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit) as ended:
        stopped()
    assert ended.value.code == 143
    partial = tmp_path / ".file.partial"
    assert partial.read_text() == "line\n"
    assert str(partial) in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_gz_file_is_gzipped(tmp_path: Path) -> None:
    write(tmp_path / "file.GZ", "Sätze")
    assert gzip.decompress((tmp_path / "file.GZ").read_bytes()).decode() == "Sätze"


def test_a_pipe_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, "text")
    assert os.read(reading, 10) == b"text"
    os.close(reading)


def test_closed_streams_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UserError, match="standard input"):
        open_standard_input("replace")
    with ExitStack() as stack, pytest.raises(UserError, match="output="):
        open_output(None, stack, [], standard_input=False)
