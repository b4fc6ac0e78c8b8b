"""Files that are surely on disk, and known by their content. Knows nothing of what they hold."""

import hashlib
import os
from pathlib import Path


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Everything at and below `path` reaches the disk (fsync), folders after what they hold."""
    if path.is_dir():
        for inner in path.iterdir():
            flush(inner)
    flush_entry(path)


def flush_entry(path: Path) -> None:
    """This one file, or the list of names of this one folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str) -> None:
    """Writes UTF-8 with `\\n` line ends under another name, flushes, then renames: a reader never sees half a file."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    flush_entry(partial)
    partial.replace(path)
