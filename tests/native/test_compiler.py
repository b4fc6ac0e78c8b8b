"""The kernels are compiled once, and where they cannot be, one line says why."""

import gc
import os
import stat
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from endeavour.model import attention
from endeavour.native import compiler, functions
from kernels import needs_kernels

pytestmark = needs_kernels


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A process that has not asked for the kernels yet, on a machine that has none."""
    monkeypatch.setenv("ENDEAVOUR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(compiler.COMPILER, raising=False)
    compiler.library_or_reason.cache_clear()
    yield
    compiler.library_or_reason.cache_clear()


def script(path: Path, content: str) -> Path:
    path.write_text(f"#!/bin/sh\n{content}\n", "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def calls(log: Path) -> list[str]:
    return [line for line in log.read_text("utf-8").splitlines() if " -c " in line]


def test_a_library_that_is_there_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv(compiler.COMPILER, str(script(tmp_path / "cc", f'echo " $@ " >> {log}\nexec cc "$@"')))
    for _ in range(2):
        compiler.library_or_reason.cache_clear()
        assert functions.why_not() is None
    assert len(calls(log)) == 1
    (found,) = (tmp_path / "cache").iterdir()
    assert found.suffix == ".so"
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-O2"))
    compiler.library_or_reason.cache_clear()
    assert functions.why_not() is None
    assert len(calls(log)) == 2, "what it was made by is part of its name"


def test_without_a_cache_it_is_compiled_and_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ENDEAVOUR_CACHE", str(tmp_path / "file"))
    assert functions.why_not() is None
    assert (tmp_path / "file").is_file()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no C compiler, {cc}; install gcc, or set ENDEAVOUR_CC"),
        (
            "echo 'what is -march?' >&2; echo and more >&2; exit 1",
            "{cc} cannot compile the kernels: what is -march?",
        ),
        (
            "echo 'In file included from a.c:1:' >&2; echo 'b.h:2: error: no room' >&2; exit 1",
            "{cc} cannot compile the kernels: b.h:2: error: no room",
        ),
        ("printf '\\377\\n' >&2; exit 1", "{cc} cannot compile the kernels: \ufffd"),
        (
            'for last; do :; done; [ "$1" != -shared ] || echo no > "$last"',
            "the kernels compiled by {cc} cannot be used: ",
        ),
    ],
)
def test_what_fails_is_said_in_one_line_and_tried_once(
    content: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cc"
    if content is not None:
        script(path, content)
    monkeypatch.setenv(compiler.COMPILER, str(path))
    reason = functions.why_not()
    assert reason is not None
    assert reason.startswith(said.format(cc=path))
    assert "\n" not in reason
    slower = attention.prepare_kernels(attention.torch.device("cpu"))
    assert slower == f"training takes longer than it could: {reason}"
    monkeypatch.setattr(compiler, "_load", None)
    assert functions.why_not() == reason
    assert not functions.takes(attention.torch.zeros(1))


def test_who_wants_no_kernels_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiler.COMPILER, "")
    assert functions.why_not() == ""
    assert attention.prepare_kernels(attention.torch.device("cpu")) is None
    assert not functions.takes(attention.torch.zeros(1))


def test_a_damaged_library_is_made_anew(tmp_path: Path) -> None:
    assert functions.why_not() is None
    (found,) = (tmp_path / "cache").iterdir()
    whole = found.read_bytes()
    found.unlink()  # not written over, as it is mapped
    found.write_bytes(whole[:100])
    compiler.library_or_reason.cache_clear()
    assert functions.why_not() is None
    assert found.read_bytes() == whole


def test_nothing_is_kept_of_who_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiler.COMPILER, "")

    def ask() -> weakref.ref[attention.torch.Tensor]:
        tensor = attention.torch.zeros(3)
        assert not functions.takes(tensor)
        return weakref.ref(tensor)

    references = [ask(), ask()]
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.parametrize(("system", "machine"), [("darwin", "x86_64"), ("linux", "aarch64")])
def test_elsewhere_there_are_none_and_nothing_is_said(
    system: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler.sys, "platform", system)
    monkeypatch.setattr(compiler.platform, "machine", lambda: machine)
    assert functions.why_not() == ""


def test_a_processor_for_which_they_are_too_slow_has_none_and_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = [flag for flag in compiler.FLAGS if not flag.startswith("-march")]
    monkeypatch.setattr(compiler, "FLAGS", (*flags, "-march=x86-64"))
    assert functions.why_not() == ""


def test_a_compiler_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "SECONDS", 0.2)
    monkeypatch.setenv(compiler.COMPILER, str(script(tmp_path / "cc", "exec sleep 60")))
    assert "timed out" in (functions.why_not() or "")


def test_the_threads_are_torchs() -> None:
    """Two OpenMP runtimes would have two pools of threads, which wait for work side by side."""
    program = """if True:
        from endeavour.native import functions
        assert functions.why_not() is None
        print(open("/proc/self/maps").read())
    """
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    libraries = {line.split()[-1] for line in ran.stdout.splitlines() if "/" in line}
    runtimes = {
        Path(name).name
        for name in libraries
        if any(part in name for part in ("libgomp", "libomp", "libiomp"))
    }
    assert len(runtimes) == 1
    assert "/kernels-" in ran.stdout
