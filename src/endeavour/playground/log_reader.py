"""The log of a run, read part by part as it grows: whoever asks says what was read, so that no connection is held.

The path is followed, not the file: a run that is resumed replaces it.
"""

import json
import math
import os
import re
from typing import Any

from endeavour.playground.event_stream import to_json
from endeavour.runs.run import Run

BLOCK = 2**20  # bytes of a part; its last line may go beyond


def read_log(run: Run, after: str) -> dict[str, Any]:
    """The part after another one, whose `after` is handed in; "" for the first part.

    `anew`: it is the first of its file; `lines`: those that are whole, None for one that is damaged; `more`: others are
    there already; `ended`: no others will come, for the run is finished.
    """
    # Asked before the lines are read, or those that were written between would be missing.
    finished = run.is_trained and (run.folder / "summary.json").is_file() and not run.is_locked
    start, after, lines = _read(run, after)
    more = sum(map(len, lines)) >= BLOCK
    return {
        "after": after,
        "anew": start == 0,
        "lines": [_entry(line) for line in lines],
        "more": more,
        "ended": finished and not more,
    }


def _read(run: Run, after: str) -> tuple[int, str, list[bytes]]:
    """Where a part begins, what asks for the next one, and the lines."""
    try:
        with (run.folder / "log.jsonl").open("rb") as file:
            status = os.fstat(file.fileno())
            read = re.fullmatch(rf"{status.st_ino}:([0-9]{{1,18}})", after)
            start = int(read[1]) if read and int(read[1]) <= status.st_size else 0
            file.seek(start)
            lines = [line for line in file.readlines(BLOCK) if line.endswith(b"\n")]
            return start, f"{status.st_ino}:{start + sum(map(len, lines))}", lines
    except OSError:
        return 0, "", []


def _entry(line: bytes) -> dict[str, Any] | None:
    """A line of a log, with None for what is not a number; None if it is damaged."""
    try:
        entry = json.loads(line, parse_constant=lambda _: None, parse_float=_finite)
        to_json(entry).encode()  # half of a surrogate pair cannot be sent
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None
