"""The log of a run, followed as it grows: as events, at most a fraction of a second behind.

The path is followed, not the file: a run that is resumed replaces it.
"""

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from endeavour.playground.event_stream import KEEP_ALIVE, event
from endeavour.runs.run import Run

POLL_SECONDS = 0.25
KEEP_ALIVE_SECONDS = 15.0
BLOCK = 2**16  # bytes that are read at a time
DAMAGED = event("damaged", {})


async def follow_log(run: Run, stopping: Callable[[], bool]) -> AsyncIterator[str]:
    """Events, those of a block of lines together: `reset` first, and whenever another file has taken the place; `line`
    for each line, those that are there and those that come, or `damaged`; `end` once the run is finished; `error` if it
    is deleted. Without either where the server stops: the run may go on, and its log be followed at the next server."""
    reader = _Reader(run.folder / "log.jsonl")
    quiet = 0.0
    yield event("reset", {})
    while True:
        # Asked before the last lines are read, or those that were written between would be missing.
        last, ended = stopping(), _is_finished(run)
        if not run.has_config:
            yield event("error", {"error": f"{run} was deleted or moved"})
            return
        if reader.was_replaced():
            yield event("reset", {})
        while (events := reader.read()) is not None:
            if events:  # in one write: asyncio warns of each one after the client has left
                yield "".join(events)
            quiet = 0.0
            await asyncio.sleep(0)  # others are served between the blocks of a long log
        if ended:
            yield event("end", {})
        if ended or last:
            return
        await asyncio.sleep(POLL_SECONDS)
        quiet += POLL_SECONDS
        if quiet >= KEEP_ALIVE_SECONDS:
            quiet = 0.0
            yield KEEP_ALIVE


def _is_finished(run: Run) -> bool:
    return run.is_trained and (run.folder / "summary.json").is_file() and not run.is_locked


class _Reader:
    """How far a file was read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode: int | None = None
        self._position = 0
        self._rest = b""
        """The beginning of a line whose end is not yet written."""

    def was_replaced(self) -> bool:
        """Whether this is another file than that which was read, which is then read from its beginning."""
        status = _status(self._path)
        if status is None:
            return False
        before, self._inode = self._inode, status.st_ino
        if before is None or (before == status.st_ino and status.st_size >= self._position):
            return False
        self._position, self._rest = 0, b""
        return True

    def read(self) -> list[str] | None:
        """The events of the next block, perhaps none; None at the end of the file."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                block = file.read(BLOCK)
        except OSError:
            return None
        if not block:
            return None
        self._position += len(block)
        *lines, self._rest = (self._rest + block).split(b"\n")
        return [_event(line) for line in lines]


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _event(line: bytes) -> str:
    """A line of a log, with null for what is not a number; or that it is damaged."""
    try:
        entry = json.loads(line, parse_constant=lambda _: None, parse_float=_finite)
        told = event("line", entry)
        told.encode()  # half of a surrogate pair cannot be sent
    except (ValueError, RecursionError):
        return DAMAGED
    return told if isinstance(entry, dict) else DAMAGED


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None
