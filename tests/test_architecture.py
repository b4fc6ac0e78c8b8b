"""The arrows between the packages, and who may import Hydra."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "endeavour"

LEAVES = {"special", "errors", "settings", "storage", "nested", "optional", "progress"}
MAY_IMPORT = {
    "special": set[str](),
    "errors": set[str](),
    "nested": set[str](),
    "settings": {"errors"},
    "optional": {"errors"},
    "storage": {"errors"},
    "redaction": set[str](),
    "progress": set[str](),
    "textbook": {"special", "errors"},
    "data": LEAVES,
    "model": LEAVES,
    "decoding": {"model", "data", *LEAVES},
    "training": {"model", "data", *LEAVES},
    "evaluation": {"decoding", "model", "data", *LEAVES},
    "reports": {"evaluation", "training", *LEAVES},
    "export": {"evaluation", "decoding", "model", "data", *LEAVES},
    "benchmark": {"training", "export", "reports", "decoding", "model", "data", "textbook", *LEAVES},
    "runs": {"evaluation", "training", "decoding", "model", "data", *LEAVES},
    "pipeline": {"runs", "reports", "evaluation", "training", "decoding", "model", "data", *LEAVES},
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
    for name in ("corpus", "cleaning", "tokenizer", "preparing", "build", "hub", "files"):
        assert not any(module.startswith("torch") for module in imports_of(SOURCE / "data" / f"{name}.py"))


def test_every_module_says_what_it_is() -> None:
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), f"{path} has no docstring"
