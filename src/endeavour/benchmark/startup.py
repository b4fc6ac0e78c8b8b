"""How long a command takes before it does anything: Python, imports, the composition of the config."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from endeavour.errors import UserError


def startup_lines(names: Sequence[str]) -> list[tuple[str, str, list[str]]]:
    """(command, what, arguments of Python) to be timed for each command in `names`; the first is Python alone."""
    lines = [("", "python", ["-c", "pass"])]
    for name in names:
        lines.append((name, "import", ["-c", f"import endeavour.commands.{name}"]))
        lines.append((name, "--help", ["-m", "endeavour", name, "--help"]))
        lines.append((name, "--cfg job", ["-m", "endeavour", name, "--cfg", "job"]))
    return lines


def measure_startup(names: Sequence[str], *, repeats: int, done: Callable[[], None]) -> list[dict[str, Any]]:
    """The median wall time of each command over `repeats` turns, in seconds; one row a command.

    Raises:
        UserError: a command failed.
    """
    lines = startup_lines(names)
    seconds: list[list[float]] = [[] for _ in lines]
    for _ in range(repeats):
        for (_, _, arguments), measured in zip(lines, seconds, strict=True):
            started = time.perf_counter()
            result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
            measured.append(time.perf_counter() - started)
            if result.returncode:
                last = (result.stderr.strip().splitlines() or ["no message"])[-1]
                raise UserError(f"python {' '.join(arguments)} failed: {last}")
            done()
    return [
        {"command": name, "what": what, "seconds": statistics.median(measured), "all_seconds": measured}
        for (name, what, _), measured in zip(lines, seconds, strict=True)
    ]
