"""What of a long piece of work is done: one JSON file a finished part, written after all that it accounts for.

Knows files and their order of reaching the disk; not what the parts hold.
"""

import json
from pathlib import Path
from typing import Any

from endeavour.data.disk import flush_entry, write_atomically


class Journal:
    """The finished parts of one piece of work in one folder, each with its files `<part>.*` beside it.

    A part counts as done once its `<part>.json` stands there, which happens in one step and last; files of a
    part that is not done are leftovers of an interrupted try, to be written over.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, part: str, ending: str) -> Path:
        """Where the file `<part>.<ending>` belongs."""
        return self.folder / f"{part}.{ending}"

    def read(self, part: str) -> dict[str, Any] | None:
        """What was noted when `part` was done; None if it is not, or the note is damaged."""
        try:
            return json.loads(self.path(part, "json").read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def write(self, part: str, content: dict[str, Any]) -> None:
        """Notes that `part` is done, after its files have reached the disk."""
        for file in self.folder.glob(f"{part}.*"):
            flush_entry(file)
        write_atomically(self.path(part, "json"), json.dumps(content, ensure_ascii=False))
        flush_entry(self.folder)
