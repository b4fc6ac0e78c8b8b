"""Where the kernels in C can be compiled: told without compiling them, so that broken ones are no reason to skip."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def _why_not() -> str | None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "kernels are not for this machine"
    if "avx2" not in Path("/proc/cpuinfo").read_text("utf-8"):
        return "no AVX2"
    if shutil.which("cc") is None:
        return "no C compiler"
    asked = ["cc", "-march=native", "-Q", "--help=target"]  # which clang does not know
    return None if subprocess.run(asked, capture_output=True, check=False).returncode == 0 else "no gcc"


WHY_NOT = _why_not()
needs_kernels = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
