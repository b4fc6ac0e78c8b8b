"""SIGKILL in the middle of a save: in a process of its own, at a chosen step of writing a checkpoint.

Steps are what reaches the file system from Python while `Checkpoints.save` runs: opening, making, renaming
and deleting files and folders, as Python's audit hooks report them, each `fsync` before and after, and the
writing of tensors, which is cut off half-way. Everything is put into the process from outside.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from endeavour.training import checkpoint, state

EVENTS = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.listdir",
    "os.scandir",
    "shutil.rmtree",
)


def killed_at(step: int) -> Callable[[], None]:
    """What `Harness.live` calls in the new process: from then on the `step`-th step of saving is its last."""
    return _Steps(step, None).install


def counted(note: Path) -> Callable[[], None]:
    """Kills nothing, and notes in a file after how many steps each save ended."""
    return _Steps(0, note).install


class _Steps:
    def __init__(self, last: int, note: Path | None) -> None:
        self._last = last
        self._note = note
        self._saving = False
        self._met = 0

    def install(self) -> None:
        fsync, write, whole = os.fsync, checkpoint.save_file, state.Checkpoints.save

        def flushed(descriptor: int) -> None:
            self._step()
            fsync(descriptor)
            self._step()

        def written(tensors: Mapping[str, Tensor], path: Path) -> None:
            if self._saving and self._met + 1 == self._last:
                content = save(dict(tensors))
                path.write_bytes(content[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            self._step()
            write(dict(tensors), path)

        def saved(*arguments: Any, **keywords: Any) -> None:
            self._saving = True
            whole(*arguments, **keywords)
            self._saving = False
            if self._note is not None:
                with self._note.open("a") as file:
                    file.write(f"{self._met}\n")

        os.fsync = flushed
        checkpoint.save_file = written  # type: ignore[assignment]
        state.Checkpoints.save = saved  # type: ignore[method-assign]
        sys.addaudithook(lambda event, _: self._step() if event in EVENTS else None)

    def _step(self) -> None:
        if not self._saving:
            return
        self._met += 1
        if self._met == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
