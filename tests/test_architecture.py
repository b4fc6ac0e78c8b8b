"""The arrows between the packages, who may import Hydra, who reads the command line, and what modules are called."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "endeavour"

ARROW = re.compile(r"^(\w+) ─*→ (.+)$", re.MULTILINE)


def documented_arrows() -> dict[str, set[str]]:
    """Of each package, and each larger module at the top level, what docs/architecture.md says that it may import."""
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    block = text.partition("## Arrows")[2].split("```")[1]
    return {name: set(others.split(", ")) for name, others in ARROW.findall(block)}


# The small modules at the top level, which all may import, and what they may import themselves.
SMALL: dict[str, set[str]] = {
    **{name: set() for name in ("special", "errors", "directions", "nested")},
    **{name: set() for name in ("redaction", "progress", "markdown")},
    **{name: {"errors"} for name in ("optional", "storage", "cuda_graphs")},
    "settings": {"errors", "nested"},
    "overrides": {"settings"},
    "hydra_messages": {"errors"},
}
ARROWS = documented_arrows()
MAY_IMPORT = SMALL | {name: names | SMALL.keys() for name, names in ARROWS.items()}
MAY_IMPORT |= {name: ARROWS[name] for name in list(ARROWS)[-4:]}
MAY_IMPORT["commands"] = {path.stem for path in SOURCE.iterdir()} - {"__main__", "completion"}
KNOW_HYDRA = {"config", "completion", "sweeps"}
# Modules of one name in two packages make readers ask which, and callers rename them on import. These may: the part is
# said by the package, as in decoding.config, and the same thing is meant by both.
SHARED_NAMES = {"__init__", "config", "training", "ctranslate2", "tables"}

MODULES = sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_every_part_has_its_arrows() -> None:
    assert {part_of(path) for path in MODULES} - {"__init__"} == MAY_IMPORT.keys()


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_arrows(part: str) -> None:
    for path in (path for path in MODULES if part_of(path) == part):
        for name in imports_of(path):
            top, *rest = name.split(".")
            if top == "endeavour":
                assert rest[0] in MAY_IMPORT[part] | {part}, f"{path} imports {name}"
            if top in ("hydra", "omegaconf"):
                assert part in KNOW_HYDRA, f"{path} imports {name}"


def test_only_the_command_line_and_the_config_read_it() -> None:
    """A function that asked what was typed would do something else in a notebook, a test or a sweep."""
    readers = {part_of(path) for path in MODULES if "argv" in path.read_text("utf-8")}
    assert readers == {"__main__", "config"}


def test_text_is_prepared_without_torch() -> None:
    """Neither by the command nor by what builds the data, whatever they import."""
    code = "import sys, endeavour.commands.prepare, endeavour.data.build; print('torch' in sys.modules)"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_modules_of_two_packages_have_two_names() -> None:
    counts = Counter(path.stem for path in MODULES)
    assert {name for name, count in counts.items() if count > 1} <= SHARED_NAMES


def test_every_module_says_what_it_is() -> None:
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), f"{path} has no docstring"
