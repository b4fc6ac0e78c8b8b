"""Compiles `kernels.c` for this machine's processor when it is first needed, and loads it.

The library lies in the user's cache folder, under a name of its own for each source, compiler and processor.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from endeavour.errors import first_line
from endeavour.storage import cache_folder

SOURCE = Path(__file__).with_name("kernels.c")
# No -ffast-math: numbers that are not finite must remain so, for updates with them are skipped.
FLAGS = ("-O3", "-march=native", "-fopenmp", "-fPIC", "-fno-math-errno", "-fno-trapping-math")
COMPILER = "ENDEAVOUR_CC"
"""The variable that names the compiler, otherwise `cc`; if it is empty there is none."""
SECONDS = 60.0  # that a compiler may take; it takes half of one


class NotBuilt(Exception):
    """Why there is no library; empty where no user could change it."""


def library() -> ctypes.CDLL:
    """The functions of `kernels.c`.

    Raises:
        NotBuilt: the system is not Linux, it has no compiler, or this one cannot do it.
    """
    if isinstance(outcome := _outcome(), NotBuilt):
        raise outcome
    return outcome


@cache
def _outcome() -> ctypes.CDLL | NotBuilt:
    """Of the one attempt of this process."""
    try:
        return _build()
    except NotBuilt as error:
        return error


def _build() -> ctypes.CDLL:
    if not sys.platform.startswith("linux"):
        raise NotBuilt
    name = os.environ.get(COMPILER, "cc")
    if not name:
        raise NotBuilt
    compiler = shutil.which(name)
    if compiler is None:
        raise NotBuilt(f"there is no C compiler, {name}; install gcc, or set {COMPILER}")
    try:
        return _load(compiler)
    except subprocess.CalledProcessError as error:
        raise NotBuilt(f"{compiler} cannot compile {SOURCE.name}: {first_line(error.stderr)}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise NotBuilt(f"{SOURCE.name} compiled by {compiler} cannot be used: {first_line(error)}") from error


def _load(compiler: str) -> ctypes.CDLL:
    """From the cache, or compiled into it; where there can be none, compiled and forgotten."""
    # The second says what -march=native stands for.
    made_by = _run(compiler, "--version") + _run(compiler, "-march=native", "-Q", "--help=target")
    content = "\n".join((SOURCE.read_text("utf-8"), *FLAGS, made_by))
    name = f"kernels-{hashlib.sha256(content.encode()).hexdigest()[:16]}.so"
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder)
    except (OSError, RuntimeError):
        folder, scratch = None, tempfile.TemporaryDirectory(prefix="endeavour-")
    with scratch as own:
        made = Path(own) / name
        if folder is not None and (folder / name).exists():
            return ctypes.CDLL(str(folder / name))
        _run(compiler, *FLAGS, "-c", str(SOURCE), "-o", f"{made}.o")
        # Linked without OpenMP's runtime: with torch's, which is loaded already, there is one pool of threads.
        _run(compiler, "-shared", f"{made}.o", "-o", str(made))
        return ctypes.CDLL(str(made if folder is None else made.replace(folder / name)))


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS).stdout
