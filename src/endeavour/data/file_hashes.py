"""SHA-256 of files, the corpus's and prepared ones, remembered between commands: gigabytes are not read anew each time.

Knows nothing of what the files hold.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from endeavour.data.text_files import read_errors, require_file
from endeavour.storage import file_digest, read_json_object, write_atomically


class FileHashes:
    """Remembers each file's hash by its path, size and times of change: of its content, which tar and rsync set to that
    of the original, and of anything about it, which nobody sets.

    Args:
        store: where they are kept between commands, or None.

    Attributes:
        stamps: size and times of change of each file that was asked for, by its path.
    """

    def __init__(self, store: Path | None = None) -> None:
        self.stamps: dict[str, list[int]] = {}
        self._store = store
        self._changed = False
        self._known: dict[str, list[Any]] = {}
        with suppress(OSError, ValueError):  # without the store, the files are only read once more
            known = read_json_object(store) if store else {}
            self._known = {key: entry for key, entry in known.items() if isinstance(entry, list)}

    def of(self, path: Path) -> str:
        """The SHA-256 of a file's content, in hexadecimal. Raises `UserError` where it cannot be read."""
        require_file(path)
        with read_errors(path):
            state = path.stat()
            key, stamp = str(path.resolve()), [state.st_size, state.st_mtime_ns, state.st_ctime_ns]
            self.stamps[key] = stamp
            if self._known.get(key, [])[:-1] != stamp:
                self._known[key] = [*stamp, file_digest(path)]
                self._changed = True
        return self._known[key][-1]

    def save(self) -> None:
        """Writes what was learnt to the store; does without where it cannot be written."""
        if self._changed and self._store:
            with suppress(OSError):
                write_atomically(self._store, json.dumps(self._known, indent=0))
