"""The arrows between the packages, and who may import Hydra."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "endeavour"

MAY_IMPORT = {
    "special": set[str](),
    "errors": set[str](),
    "data": {"special", "errors"},
    "settings": {"errors"},
    "model": {"settings", "special", "errors"},
    "optional": {"errors"},
    "decoding": {"model", "data", "settings", "special", "errors", "optional"},
    "training": {"model", "data", "settings", "special", "errors"},
    "evaluation": {"decoding", "model", "data", "special", "errors"},
    "export": {"evaluation", "decoding", "model", "special", "errors", "optional"},
    "benchmark": {"training", "export", "decoding", "model", "data", "special", "errors", "optional"},
}
HYDRA = {"hydra", "omegaconf"}


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_arrows(part: str) -> None:
    files = list((SOURCE / part).rglob("*.py")) or [SOURCE / f"{part}.py"]
    for path in files:
        for name in imports_of(path):
            top, *rest = name.split(".")
            if top == "endeavour":
                assert rest[0] in MAY_IMPORT[part] | {part}, f"{path} imports {name}"
            assert top not in HYDRA, f"{path} imports {name}: only stages and the config know Hydra"


def test_text_is_prepared_without_torch() -> None:
    for name in ("corpus", "cleaning", "tokenizer", "prepare", "build", "hub", "files"):
        assert not any(module.startswith("torch") for module in imports_of(SOURCE / "data" / f"{name}.py"))


def test_every_module_says_what_it_is() -> None:
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), f"{path} has no docstring"
