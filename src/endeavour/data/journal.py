"""Which parts of a long job are done: one JSON file for each, written after the files that it stands for.

Knows files and the order in which they reach the disk; not what the parts hold.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from endeavour.storage import flush, read_json_object, write_atomically


def begin(folder: Path, recipe: dict[str, Any]) -> None:
    """Empties the folder of a job, or makes it, unless a job of the same recipe was begun there."""
    journal = Journal(folder)
    if journal.read("recipe") != recipe:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        journal.write("recipe", recipe)


class Journal:
    """The finished parts of one job in one folder, each with its files `<part>.*` beside it.

    A part is done once its `<part>.json` is there, which appears last and in one step; files of a part that is not
    done are leftovers of an interrupted attempt, to be overwritten.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, part: str, ending: str) -> Path:
        """The path of the file `<part>.<ending>`."""
        return self.folder / f"{part}.{ending}"

    def read(self, part: str) -> dict[str, Any] | None:
        """What was noted when `part` was done; None if it is not, or the note is damaged."""
        try:
            return read_json_object(self.path(part, "json"))
        except (FileNotFoundError, ValueError):
            return None

    def write(self, part: str, content: dict[str, Any]) -> None:
        """Notes that `part` is done, after its files have reached the disk."""
        for file in self.folder.glob(f"{part}.*"):
            flush(file)
        write_atomically(self.path(part, "json"), json.dumps(content, ensure_ascii=False))
        flush(self.folder)
