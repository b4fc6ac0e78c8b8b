"""The command line, called in this process, and the folders and the parallel text it is given."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from endeavour.__main__ import main


def endeavour(*arguments: str) -> int:
    """Runs a command; returns its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["endeavour", *arguments])
        patch.setenv("HYDRA_FULL_ERROR", "0")
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def places(folder: Path) -> list[str]:
    """Overrides that keep data and runs below `folder`."""
    return [f"data_folder={folder / 'data'}", f"output_folder={folder / 'outputs'}"]


def write_lines(file: Path, lines: Iterable[str]) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return file


Pairs = Mapping[str, Iterable[tuple[str, str]]]


def write_splits(folder: Path, splits: Pairs, parts: Pairs | None = None) -> list[str]:
    """Writes the (English, German) pairs of each split, and part, a file a side; the overrides that name the files."""
    keys = {f"corpus.splits.{split}": pairs for split, pairs in splits.items()}
    keys |= {f"+corpus.parts.{part}": pairs for part, pairs in (parts or {}).items()}
    overrides = ["corpus=files"]
    for key, pairs in keys.items():
        files = [folder / f"{key.rpartition('.')[2]}.{language}" for language in ("en", "de")]
        for file, lines in zip(files, zip(*pairs, strict=True), strict=True):
            write_lines(file, lines)
        overrides.append(f"{key}=[{files[0]},{files[1]}]")
    return overrides
