"""Compiles the kernels for this machine's processor when they are first needed, and loads them.

The library lies in the user's cache folder, under a name of its own for each source, compiler and processor.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from endeavour.errors import first_line
from endeavour.storage import cache_folder, flush

HEADER, *SOURCES = (Path(__file__).with_name(name) for name in ("numbers.h", "training.c", "decoding.c"))
# No -ffast-math: numbers that are not finite must remain so, for updates with them are skipped.
FLAGS = ("-O3", "-march=native", "-fopenmp", "-fPIC", "-fno-math-errno", "-fno-trapping-math")
COMPILER = "ENDEAVOUR_CC"
"""The variable that names the compiler, otherwise `cc`; if it is empty there is none."""
NO_AVX2 = "without AVX2"
"""What numbers.h says of a processor on which they would not be faster."""
SECONDS = 60.0  # that a compiler may take; it takes half of one


def library() -> ctypes.CDLL:
    """The functions of `training.c` and `decoding.c`, where there are any."""
    found = library_or_reason()
    assert isinstance(found, ctypes.CDLL), "asked beforehand"
    return found


@cache
def library_or_reason() -> ctypes.CDLL | str:
    """The functions, or why there are none, empty where no user could change it; of the one attempt of this process.

    There are none where the system is not Linux on x86-64, it has no compiler, or this one cannot do it.
    """
    name = os.environ.get(COMPILER, "cc")
    if not (sys.platform.startswith("linux") and platform.machine() == "x86_64" and name):
        return ""
    compiler = shutil.which(name)
    if compiler is None:
        return f"there is no C compiler, {name}; install gcc, or set {COMPILER}"
    try:
        return _load(compiler)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"]
        said = next((line for line in lines if "error:" in line), lines[0])
        return "" if NO_AVX2 in said else f"{compiler} cannot compile the kernels: {said}"
    except (OSError, subprocess.SubprocessError) as error:
        return f"the kernels compiled by {compiler} cannot be used: {first_line(error)}"


def _load(compiler: str) -> ctypes.CDLL:
    """From the cache, or compiled into it; where there can be none, compiled and forgotten."""
    # The second says what -march=native stands for.
    made_by = _run(compiler, "--version") + _run(compiler, "-march=native", "-Q", "--help=target")
    content = "\n".join((*(file.read_text("utf-8") for file in (HEADER, *SOURCES)), *FLAGS, made_by))
    name = f"kernels-{hashlib.sha256(content.encode()).hexdigest()[:16]}.so"
    kept = None
    with suppress(OSError, RuntimeError):
        kept = cache_folder() / name
        return ctypes.CDLL(str(kept))
    with tempfile.TemporaryDirectory(prefix=".kernels-", dir=_parent_of(kept)) as folder:
        made = Path(folder) / name
        _run(compiler, *FLAGS, "-c", *map(str, SOURCES), folder=folder)
        objects = [f"{source.stem}.o" for source in SOURCES]
        # Linked without OpenMP's runtime: with torch's, which is loaded already, there is one pool of threads.
        _run(compiler, "-shared", *objects, "-lm", "-o", name, folder=folder)
        loaded = ctypes.CDLL(str(made))
        if kept is not None:
            with suppress(OSError):
                flush(made)
                made.replace(kept)
        return loaded


def _parent_of(kept: Path | None) -> Path | None:
    """Where the library is made: where it is kept, or in the system's folder where that cannot be."""
    if kept is not None:
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            return kept.parent if os.access(kept.parent, os.W_OK) else None
    return None


def _run(*command: str, folder: str | None = None) -> str:
    return subprocess.run(
        command,
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout
