"""The runs below a folder."""

from collections.abc import Iterable
from glob import glob
from pathlib import Path

from endeavour.runs.run import Run


def trained_runs(root: Path) -> list[Run]:
    """All that have final weights, by name."""
    return _runs(root, sorted(path.parent.parent for path in _below(root, "model/model.json")))


def evaluated_runs(root: Path) -> list[Run]:
    """All that were evaluated, by name."""
    return _runs(root, sorted(path.parent for path in _below(root, "evaluation")))


def begun_runs(root: Path) -> list[Run]:
    """All of which training has begun, the newest first."""
    paths = [path for path in _below(root, "config.yaml") if (path.parent / "run.json").is_file()]
    paths.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return _runs(root, [path.parent for path in paths])


def _below(root: Path, name: str) -> list[Path]:
    """What is called so in the folders below `root`, hidden ones excepted; `Path.glob` would follow no links."""
    return [root / path for path in glob(f"**/{name}", root_dir=root, recursive=True)]  # noqa: PTH207


def _runs(root: Path, folders: Iterable[Path]) -> list[Run]:
    return [Run(root, folder.relative_to(root).as_posix()) for folder in folders]
