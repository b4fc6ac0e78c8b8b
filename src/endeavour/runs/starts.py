"""A run's run.json: one entry for each time that it was started."""

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from endeavour.errors import UserError
from endeavour.storage import write_json

if TYPE_CHECKING:  # which takes seconds to import
    import torch


def note_start(path: Path, device: "torch.device", command: Sequence[str]) -> None:
    """Adds this start to run.json, at `path`. Raises `UserError` where it is damaged."""
    from endeavour.runs.provenance import describe_start

    start = describe_start(device, command) | {"job": _job()}
    write_json(path, [*_starts(path), start])


def last_command(path: Path) -> str | None:
    """What continues the run of this run.json: the command that started it last, but for a restart.

    None where that is unknown, or a scheduler began it, whose own words are not noted.
    """
    try:
        last = _starts(path)[-1]
        words: list[str] = last["command"][1:]  # the first is how the program was called
        kept = [word for word in words if not word.lstrip("+").startswith("training.restart=")]
        return None if last.get("job") else shlex.join(["endeavour", *kept])
    except (UserError, LookupError, TypeError, AttributeError):  # damaged
        return None


def was_started_in_this_job(path: Path) -> bool:
    """Whether torchrun or Slurm repeat a command that has started the run of this run.json before."""
    counts = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
    if not any(int(os.environ.get(name, "0")) > 0 for name in counts):
        return False
    jobs = [start.get("job") for start in _starts(path)]
    return not jobs or _job() in jobs  # run.json may have been deleted


def _starts(path: Path) -> list[dict[str, Any]]:
    try:
        return json.loads(path.read_text("utf-8")) if path.is_file() else []
    except ValueError as error:
        raise UserError(f"{path}: damaged ({error}); delete it, no run depends on it") from error


def _job() -> str | None:
    """What a scheduler calls what it repeats, each time."""
    return os.environ.get("SLURM_JOB_ID") or os.environ.get("TORCHELASTIC_RUN_ID")
