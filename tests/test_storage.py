"""Folders that are whole or not there, and whose every byte is known."""

import errno
import io
import os
import sys
from pathlib import Path
from threading import Thread

import pytest
from filelock import Timeout

from endeavour.errors import UserError
from endeavour.storage import (
    atomic_folder,
    file_lock,
    publish,
    read_lines,
    user_path,
    verify,
    waiting_lock,
    write_errors,
    write_json,
)
from waiting import until


def save(folder: Path, content: bytes = b"content") -> None:
    with atomic_folder(folder) as partial:
        (partial / "file").write_bytes(content)
        (partial / "inner").mkdir()
        (partial / "inner" / "file").write_bytes(content)


def test_an_interrupted_write_leaves_what_was_there(tmp_path: Path) -> None:
    save(tmp_path / "folder", b"old")

    def write_half() -> None:
        with atomic_folder(tmp_path / "folder") as partial:
            (partial / "file").write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    verify(tmp_path / "folder")
    assert (tmp_path / "folder" / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_new_folder_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    save(tmp_path / "folder", b"old")
    (tmp_path / "folder" / "other").write_bytes(b"")
    save(tmp_path / "folder", b"new")
    verify(tmp_path / "folder")
    assert (tmp_path / "folder" / "file").read_bytes() == b"new"
    assert not (tmp_path / "folder" / "other").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_that_was_filled_by_several_processes_is_published(tmp_path: Path) -> None:
    partial = tmp_path / "partial"
    partial.mkdir()
    (partial / "file").write_bytes(b"content")
    publish(partial, tmp_path / "folder")
    verify(tmp_path / "folder")
    assert not partial.exists()


@pytest.mark.parametrize("name", ["file", "inner/file", "digests.json"])
def test_a_flipped_bit_or_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    save(tmp_path / "folder")
    content = bytearray((tmp_path / "folder" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "folder" / name).write_bytes(content)
    # A flipped digest is found at the file that it stands for.
    with pytest.raises(UserError, match=rf"{'file' if name == 'digests.json' else name}: .*; do this"):
        verify(tmp_path / "folder", remedy="do this")
    (tmp_path / "folder" / name).unlink()
    with pytest.raises(UserError, match=name):
        verify(tmp_path / "folder")


def test_whatever_takes_its_name_is_on_the_disk_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, named = set[int](), list[str]()
    fsync, rename, replace = os.fsync, Path.rename, Path.replace

    def synced_file(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def check(path: Path, target: Path) -> None:
        assert {each.stat().st_ino for each in (path, *path.rglob("*"))} <= synced
        named.append(target.name)

    monkeypatch.setattr(os, "fsync", synced_file)
    monkeypatch.setattr(Path, "rename", lambda path, target: (check(path, target), rename(path, target))[1])
    monkeypatch.setattr(Path, "replace", lambda path, target: (check(path, target), replace(path, target))[1])
    save(tmp_path / "folder")
    write_json(tmp_path / "file.json", {"ä": 1})
    assert named == ["folder", "file.json"]
    assert (tmp_path / "file.json").read_text("utf-8") == '{\n  "ä": 1\n}\n'
    assert tmp_path.stat().st_ino in synced


def test_lines_come_back_exactly(tmp_path: Path) -> None:
    lines = ["\ufeffone\r", "", "two\u2028three ", "four"]
    (tmp_path / "file").write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert read_lines(tmp_path / "file") == lines
    with pytest.raises(UserError, match="other"):
        read_lines(tmp_path / "other")


def test_an_error_of_the_disk_names_folder_and_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match=r"file/folder.*output_folder"):  # noqa: SIM117
        with write_errors(tmp_path / "file" / "folder", "output_folder"):
            (tmp_path / "file" / "folder").mkdir(parents=True)


@pytest.mark.parametrize(
    ("number", "other_place"),
    [(errno.ENOSPC, False), (errno.ENAMETOOLONG, False), (errno.EFBIG, False), (errno.EACCES, True)],
)
def test_no_other_place_is_advised_where_room_a_limit_or_a_shorter_name_helps(
    number: int, other_place: bool
) -> None:
    with pytest.raises(UserError) as error, write_errors(Path("run"), "output_folder"):
        raise OSError(number, os.strerror(number))
    assert ("output_folder=" in str(error.value)) == other_place
    with pytest.raises(UserError) as error, write_errors(Path("run")):  # which lies nowhere else
        raise OSError(number, os.strerror(number))
    assert "another" not in str(error.value)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that lets nobody make files")
def test_a_lock_that_cannot_be_made_is_not_waited_for() -> None:
    with pytest.raises(FileNotFoundError):
        file_lock(Path("/proc/.f.lock")).acquire(timeout=1)


def test_a_lock_that_is_held_is_waited_for(tmp_path: Path) -> None:
    held, waiting = file_lock(tmp_path / "lock"), file_lock(tmp_path / "lock")
    with held, pytest.raises(Timeout):
        waiting.acquire(timeout=0.2)
    with waiting:
        assert waiting.is_locked


@pytest.mark.parametrize("content", [b"one\ntwo", "ä\n".encode("latin-1")])
def test_lines_that_were_altered_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match="file: "):
        read_lines(tmp_path / "file")


def test_who_waits_for_a_lock_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()  # capsys loses what a thread writes while it is read
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr("endeavour.storage.GLANCE", 0.0)
    with waiting_lock(tmp_path / "lock", "preparing it"):
        assert told.getvalue() == ""
        waiting = Thread(target=_take, args=(tmp_path / "lock",))
        waiting.start()
        until(lambda: "preparing it" in told.getvalue())
        assert waiting.is_alive()
    waiting.join()
    with file_lock(tmp_path / "lock").acquire(timeout=0):
        pass


def _take(path: Path) -> None:
    with waiting_lock(path, "preparing it"):
        pass


def test_a_tilde_is_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert user_path("~/a") == tmp_path / "a"
    assert user_path("a~b/~c") == Path("a~b/~c")
    with pytest.raises(UserError, match="~nobody-of-that-name"):
        user_path("~nobody-of-that-name/a")
