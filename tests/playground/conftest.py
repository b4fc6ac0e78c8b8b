"""One run without training, and one server, for all tests that change neither."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from endeavour.runs.run import Run
from served import Served, served, small_run


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture(scope="session")
def run(outputs: Path) -> Run:
    return small_run(outputs, "run")


@pytest.fixture(scope="session")
def site(run: Run) -> Iterator[Served]:
    with served(run.root, "run=run") as site:
        yield site
