"""The documents point at files, headings and make targets that exist, and their commands set keys that do."""

import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from endeavour.__main__ import COMMANDS
from endeavour.settings import config_folder
from roots import KINDS, groups_of, keys_of

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")])


def text_of(path: Path) -> str:
    """Without code, in which brackets are no links."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)


def anchors_of(path: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands_of(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Of blocks of code and of code within text: each command that sets keys, and its words."""
    text = path.read_text("utf-8")
    blocks = [block.replace("\\\n", " ") for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]
    inline = re.findall(r"`((?:make|endeavour) [^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    lines = [*"\n".join(blocks).splitlines(), *(" ".join(code.split()) for code in inline)]
    for line in lines:
        found = re.match(r"(?:\.venv/bin/)?(?:make|endeavour) ([a-z]+) (.*=.*)", line.strip())
        if found and found[1] in COMMANDS:
            yield found[1], shlex.split(found[2], comments=True)


def is_known(root: str, word: str) -> bool:
    """Whether `key=value` sets a key of the command, or chooses an option of one of its groups."""
    key, _, value = word.lstrip("+~").partition("=")
    if key in groups_of(root) or key == "experiment":
        files = {path.stem for path in (config_folder() / key.partition("@")[0]).glob("*.yaml")}
        return not re.fullmatch(r"[a-z0-9_,]+", value) or set(value.split(",")) <= files
    return any(fnmatchcase(key, known) for known in keys_of(KINDS[root]))


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


def test_the_commands_of_the_documents_set_keys_that_there_are() -> None:
    seen = 0
    for path in DOCUMENTS:
        for command, words in commands_of(path):
            typed = [word for word in words if re.match(r"[+~]*(?!hydra|key=)[a-z][\w.@/]*=", word)]
            unknown = [word for word in typed if not is_known(COMMANDS[command], word)]
            assert not unknown, f"{path}: {command} {unknown}"
            seen += len(typed)
    assert seen > 200
