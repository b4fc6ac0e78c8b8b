"""Fixtures that several test folders share."""

import os

# Before torch is imported, here or in a process that a test starts: tiny models are faster on one thread, and
# tests that run beside other work do not wait for threads that have no core.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.pop("HF_HUB_OFFLINE", None)  # read once, when the hub's package is imported
os.environ.pop("TRANSFORMERS_OFFLINE", None)

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from commands import places, write_splits
from configs import QUICK, TINY

if TYPE_CHECKING:
    import torch

# The same examples in every run, however slow the machine is.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")

# Of launchers, schedulers, terminals and trackers, which our code or rich reads.
FOREIGN = (
    "TORCHELASTIC_",
    "SLURM_",
    "WANDB_",
    "SACREBLEU",
    "ENDEAVOUR_CC",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
)
FOREIGN += ("FORCE_COLOR", "NO_COLOR", "TTY_", "COLUMNS")

WORDS = {
    "a": "ein",
    "the": "der",
    "dog": "Hund",
    "man": "Mann",
    "tree": "Baum",
    "sees": "sieht",
    "finds": "findet",
    "old": "alte",
    "green": "grüne",
    "and": "und",
    "today": "heute",
    "often": "oft",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device", default="cpu", help="what tests with the fixture `device` compute on: cpu, cuda"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Without a GPU the kernels for one are interpreted; Triton asks when it is imported."""
    if config.getoption("device") == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"


# Of few tests and long: begun last, one process would be at them while the others have nothing left to do.
LONG = ["test_faults.py", "test_notebooks.py", "test_story_pictures.py", "test_trial.py"]
LONG += ["test_comet_files.py", "test_launchers.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that run on `--device`; puts the long files first, then those in a browser."""
    items.sort(key=lambda item: (item.path.name not in LONG, "browser" not in item.path.parts))
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})  # which have names of their own
        if "device" in getattr(item, "fixturenames", ()) and "device" not in parameters:
            item.add_marker("device")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> "torch.device":
    """Where a test computes that holds on every kind of device."""
    from endeavour.training.device import choose_device

    return choose_device(request.config.getoption("device"))


@pytest.fixture
def on_device(device: "torch.device") -> "Iterator[torch.device]":
    """`device`, on which every tensor of the test is made that says no other; not for what reads batches."""
    import torch

    before = torch.get_default_device()
    torch.set_default_device(device)
    yield device
    torch.set_default_device(before)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says in one line that the tests in a browser were left out, if they were."""
    skipped = terminalreporter.getreports("skipped")
    if count := sum("no Chromium" in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"{count} tests in a browser were skipped: there is no Chromium here")


@pytest.fixture(autouse=True)
def same_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts the tests, in whatever job: no proxy before their own servers, no rank, no terminal."""
    for name in list(os.environ):
        if name.lower() in ("http_proxy", "https_proxy", "all_proxy") or name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Whichever tests came before in this process."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests measure of this machine is not kept for its user, nor for the next run of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENDEAVOUR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def parallel_files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides of a `files` corpus: a few hundred word-for-word translations."""
    folder = tmp_path_factory.mktemp("corpus")
    draw = random.Random(0)
    lines = {tuple(draw.choices(list(WORDS), k=draw.randint(3, 8))) for _ in range(460)}
    pairs = [(" ".join(row), " ".join(WORDS[word] for word in row)) for row in sorted(lines)]
    splits = {"train": pairs[:-60], "validation": pairs[-60:-30], "test": pairs[-30:]}
    return [*write_splits(folder, splits), "tokenizer=bpe2k", "tokenizer.vocabulary_size=300"]


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """Overrides that keep a test's files in its own folder, on a model of a few thousand parameters."""
    return [*places(tmp_path), *QUICK, *TINY]
