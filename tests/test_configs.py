"""Every shipped option composes, every key has a reader, and a saved config reads back the same."""

import ast
from itertools import chain
from pathlib import Path

import pytest
from endeavour.saved_config import differing_keys, read_config, save_config

from endeavour.config import config_folder, load_config, to_dict
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer

GROUPS = (
    "corpus",
    "cleaning",
    "tokenizer",
    "model",
    "training",
    "decoding",
    "evaluation",
    "compare",
    "tracking",
    "bench",
    "experiment",
)
OPTIONS = [
    (group, path.stem) for group in GROUPS for path in sorted((config_folder() / group).glob("*.yaml"))
]


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_every_option_composes(group: str, option: str) -> None:
    paths = ["corpus.splits.train=[a.tsv]", "corpus.splits.validation=[b.tsv]"] if option == "files" else []
    config = load_config([f"{group}={option}", *paths])
    if group not in ("experiment", "cleaning", "training", "evaluation", "compare", "bench"):
        section = getattr(config, group)
        assert getattr(section, "name", option) == option


@pytest.mark.parametrize("option", [path.stem for path in (config_folder() / "model").glob("*.yaml")])
def test_every_model_can_be_built(option: str) -> None:
    config = load_config([f"model={option}", "model.encoder_layers=1", "model.decoder_layers=1"])
    Transformer(config.model, source_vocabulary=20, target_vocabulary=20)


class _Read(ast.NodeVisitor):
    """The names of all attributes of configs that are read, but in functions that only check values.

    What holds a config is told by its name, or `split`, `path` and `format` were read wherever text is handled.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        gives_nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
        if not (node.name.lstrip("_").startswith("check") and gives_nothing):
            self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        holder = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        is_config = holder.lstrip("_") in ("self", "settings", *GROUPS) or holder.endswith("config")
        if isinstance(node.ctx, ast.Load) and is_config:
            self.names.add(node.attr)
        self.generic_visit(node)


def test_every_key_is_read_somewhere_and_not_merely_checked() -> None:
    read = _Read()
    for path in (Path(__file__).parents[1] / "src").rglob("*.py"):
        read.visit(ast.parse(path.read_text("utf-8")))

    def keys(tree: dict[str, object]) -> list[str]:
        nested = chain.from_iterable(keys(value) for value in tree.values() if isinstance(value, dict))  # type: ignore[arg-type]
        return [*tree, *nested]

    of_dictionaries = {"train", "validation", "test"} | {"train.jsonl", "validation.jsonl", "test.jsonl"}
    assert set(keys(to_dict(load_config([])))) - read.names - of_dictionaries == set()
    assert "no_such_key" not in read.names


def test_a_saved_config_reads_back_the_same(tmp_path: Path) -> None:
    config = load_config(["corpus.train_pairs=7", "training.patience=3", "text='a: b'"])
    save_config(config, tmp_path / "config.yaml")
    assert read_config(tmp_path / "config.yaml", newer=config) == config


def test_differences_name_keys_that_matter_and_no_others() -> None:
    first = load_config([])
    same = load_config(["device=cpu", "decoding=greedy", "tracking=none", "name=x", "training.log_every=7"])
    assert differing_keys(same, first) == []
    other = load_config(["training.learning_rate=0.5", "model.dropout=0.25"])
    assert [line.split(":")[0] for line in differing_keys(other, first)] == [
        "model.dropout",
        "training.learning_rate",
    ]


def test_the_default_name_is_made_of_corpus_model_and_seed() -> None:
    assert load_config(["model=small", "seed=3"]).name == "textbook-small-3"


@pytest.mark.parametrize("name", ["/tmp/x", "../x", ""])
def test_a_run_name_stays_below_the_output_folder(name: str) -> None:
    with pytest.raises(UserError, match="output_folder"):
        load_config([f"name='{name}'"])
