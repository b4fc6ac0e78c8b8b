"""The command line, called in this process, and the parallel text it is given."""

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


def write_splits(folder: Path, splits: Mapping[str, Iterable[tuple[str, str]]]) -> list[str]:
    """Writes each split's (English, German) pairs, a file a side; the overrides that name the files."""
    overrides = ["corpus=files"]
    for split, pairs in splits.items():
        files = [folder / f"{split}.{language}" for language in ("en", "de")]
        for file, lines in zip(files, zip(*pairs, strict=True), strict=True):
            file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        overrides.append(f"corpus.splits.{split}=[{files[0]},{files[1]}]")
    return overrides
