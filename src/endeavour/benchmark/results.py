"""Where the results of a benchmark go: its folder, and the files in it. Knows nothing of measuring."""

import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any

from endeavour.benchmark.tables import as_markdown
from endeavour.storage import write_atomically, write_errors, write_json


def new_folder(base: Path) -> Path:
    """Makes and returns `base`, or the first of `base-2`, `base-3`, … that is not there: each start has its own."""
    with write_errors(base, "output_folder"):
        base.parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
        with write_errors(folder, "output_folder"), suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError("numbers do not end")


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """Writes bench.json and report.md."""
    with write_errors(folder, "output_folder"):
        write_json(folder / "bench.json", results)
        write_atomically(folder / "report.md", as_markdown(f"Benchmark {results['name']}", results))
