"""How long a command takes before it does anything: Python, imports, the composition of the config."""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from endeavour.benchmark.steps import Results, Steps
from endeavour.errors import UserError


def measure_startup(names: Sequence[str], *, repeats: int, steps: Steps) -> Results:
    """The median wall time of each command over `repeats` turns, in seconds; one row a command, the first Python alone.

    Raises:
        UserError: a command failed.
    """
    lines = [("", "python", ["-c", "pass"])]
    for name in names:
        lines.append((name, "import", ["-c", f"import endeavour.commands.{name}"]))
        lines.append((name, "--help", ["-m", "endeavour", name, "--help"]))
        lines.append((name, "--cfg job", ["-m", "endeavour", name, "--cfg", "job"]))
    done = steps(repeats * len(lines))
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
