"""The documents point at files, headings and make targets that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")])


def text_of(path: Path) -> str:
    """Without code, in which brackets are no links."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)


def anchors_of(path: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(path)):
        if link.startswith(("http:", "https:")):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path}: {link}"
        if anchor:
            assert anchor in anchors_of(target), f"{path}: {link}"


def test_the_targets_that_the_documents_name_are_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for path in DOCUMENTS:
        lines = path.read_text("utf-8").splitlines()
        commands = [line for line in lines if line.lstrip("$ ").startswith("make ")]
        inline = re.findall(r"`make ([a-z]+)", path.read_text("utf-8"))
        named = {line.split()[1] for line in commands if "=" not in line.split()[1]} | set(inline)
        assert named <= targets, f"{path}: {named - targets}"
