"""How long a command takes before it does anything: Python, imports, the composition of the config."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from endeavour.errors import UserError


def startup_commands(stages: Sequence[str]) -> list[tuple[str, str, list[str]]]:
    """(stage, what, arguments of Python) to be timed; the first is Python alone."""
    commands = [("", "python", ["-c", "pass"])]
    for stage in stages:
        commands.append((stage, "import", ["-c", f"import endeavour.stages.{stage}"]))
        commands.append((stage, "--help", ["-m", "endeavour", stage, "--help"]))
        commands.append((stage, "--cfg job", ["-m", "endeavour", stage, "--cfg", "job"]))
    return commands


def measure_startup(stages: Sequence[str], *, repeats: int, done: Callable[[], None]) -> list[dict[str, Any]]:
    """The median wall time of each command over `repeats` turns, in seconds; one row a command.

    Raises:
        UserError: a command failed.
    """
    commands = startup_commands(stages)
    seconds: list[list[float]] = [[] for _ in commands]
    for _ in range(repeats):
        for (_, _, arguments), measured in zip(commands, seconds, strict=True):
            started = time.perf_counter()
            result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
            measured.append(time.perf_counter() - started)
            if result.returncode:
                last = (result.stderr.strip().splitlines() or ["no message"])[-1]
                raise UserError(f"python {' '.join(arguments)} failed: {last}")
            done()
    return [
        {"stage": stage, "what": what, "seconds": statistics.median(measured), "all_seconds": measured}
        for (stage, what, _), measured in zip(commands, seconds, strict=True)
    ]
