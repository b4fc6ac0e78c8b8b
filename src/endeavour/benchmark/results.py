"""Where the results of a benchmark go: its folder, and the files in it. Knows nothing of measuring."""

import itertools
from pathlib import Path
from typing import Any

from endeavour.benchmark.tables import as_markdown
from endeavour.storage import read_json_object, write_atomically, write_errors, write_json


def result_folder(base: Path, settings: dict[str, Any]) -> Path:
    """Makes and returns `base`, or `base` with a number if `base` holds results of other settings."""
    for number in itertools.count(1):
        folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
        path = folder / "bench.json"
        if not path.is_file() or _settings_in(path) == settings:
            with write_errors(folder, "output_folder"):
                folder.mkdir(parents=True, exist_ok=True)
            return folder
    raise AssertionError("numbers do not end")


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """Writes bench.json and report.md."""
    with write_errors(folder, "output_folder"):
        write_json(folder / "bench.json", results)
        write_atomically(folder / "report.md", as_markdown(f"Benchmark {results['name']}", results))


def _settings_in(path: Path) -> object:
    """None where the file is damaged."""
    try:
        return read_json_object(path)["settings"]
    except (ValueError, KeyError):
        return None
