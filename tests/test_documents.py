"""The documents point at files, headings and make targets that exist; their commands, tables and prose name keys,
options and Python that do."""

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import endeavour
from endeavour.commands import COMMANDS
from endeavour.data.crawled import CrawledConfig
from endeavour.data.perturbations import PERTURBATIONS
from endeavour.export.formats import FORMATS
from endeavour.settings import config_folder
from roots import KINDS, groups_of, keys_of

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("[!.]*/README.md")])


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


def options_of(group: str) -> set[str]:
    return {path.stem for path in (config_folder() / group).glob("*.yaml")}


def table_of(name: str, heading: str) -> list[list[list[str]]]:
    """What stands as code in each cell of each row of the table that so begins."""
    _, _, below = (ROOT / name).read_text("utf-8").partition(f"\n{heading}")
    rows = below.partition("\n\n")[0].splitlines()[2:]
    return [[re.findall(r"`([^`]+)`", cell) for cell in row.split("|")[1:-1]] for row in rows]


@pytest.mark.parametrize(
    ("name", "heading", "expected"),
    [
        ("README.md", "| command | does", COMMANDS.keys() - {"evaluate"}),
        ("docs/data.md", "| `corpus=` | what it is", options_of("corpus")),
        ("docs/data.md", "| key | what is dropped", {field.name for field in fields(CrawledConfig)}),
        ("docs/evaluation.md", "| name | source | reference", set(PERTURBATIONS)),
        ("docs/training.md", "| `experiment=` | for", options_of("experiment")),
        ("docs/training.md", "| | needs | where", {f"tracking={one}" for one in options_of("tracking")}),
        ("docs/export.md", "| format | models", FORMATS.keys()),
    ],
)
def test_tables_list_all_there_is_and_nothing_else(name: str, heading: str, expected: set[str]) -> None:
    listed = [code for first, *_ in table_of(name, heading) for code in first]
    assert sorted(listed) == sorted(expected)


def test_the_table_of_what_to_choose_names_every_option() -> None:
    rows = {chosen: named for (chosen,), named in table_of("docs/training.md", "| choose")}
    options = {group: options_of(group) for group in ("corpus", "tokenizer", "model", "training")}
    for group, there in options.items():
        named = {one for one in rows[f"{group}="] if one.isidentifier()}
        assert there <= named <= set.union(*options.values()), group


def test_the_quantizations_of_each_format_are_those_of_its_row() -> None:
    rows = {name: named for (name,), _, named in table_of("docs/export.md", "| format | models")}
    for name, named in rows.items():
        listed = rows.get(named[0], named) if named else ["float32"]  # one refers to another's row
        assert listed == list(FORMATS[name].quantizations), name


# Of experiments that were made and taken out again; files; and a method.
NO_KEYS = r"training\.(simcut\w*|subword_noise)|.*\.(json|md|py)|model\.project"


def test_the_keys_that_documents_and_comments_name_are_there() -> None:
    keys = {key for kind in KINDS.values() for key in keys_of(kind)}
    sections = {key.partition(".")[0] for key in keys if "." in key}
    prose = {
        path: re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL))
        for path in DOCUMENTS
    }
    for path in config_folder().rglob("*.yaml"):
        prose[path] = re.findall(r"#(.*)", path.read_text("utf-8"))
    seen = 0
    for path, texts in prose.items():
        for key in re.findall(r"(?<![\w./-])[a-z_]+\.[a-z_][\w.]*\b", "\n".join(texts)):
            if key.partition(".")[0] in sections and not re.fullmatch(NO_KEYS, key):
                assert any(fnmatchcase(key, known) for known in keys), f"{path}: {key}"
                seen += 1
    assert seen > 200


def test_python_in_the_documents_compiles_and_names_what_there_is() -> None:
    trees = {
        path.name: [
            ast.parse(block)
            for block in re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
        ]
        for path in DOCUMENTS
    }
    kinds = dict.fromkeys(("run", "wide", "whole"), endeavour.TrainedRun)
    kinds |= {"endeavour": endeavour, "attention": endeavour.PairAttention, "one": endeavour.Translation}
    read = [
        (node.value.id, node.attr)
        for tree in trees["python.md"]
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]
    assert {holder for holder, _ in read} == kinds.keys()
    assert not [(holder, name) for holder, name in read if not hasattr(kinds[holder], name)]
