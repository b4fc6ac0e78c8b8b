"""Every shipped option composes in every root that has its group, and every key has a reader."""

import ast
import re
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml

from commands import endeavour
from configs import run_config, typed_config
from endeavour.config import load_config
from endeavour.data.perturbations import PERTURBATIONS
from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.evaluation.config import EvaluationConfig
from endeavour.runs.config import save_config
from endeavour.runs.run import Run
from endeavour.settings import config_folder
from roots import KINDS, groups_of, keys_of

CONF = config_folder()
FILES = ["corpus.splits.train=[a.tsv]", "corpus.splits.validation=[b.tsv]"]


def options_of(group: str) -> list[str]:
    return [path.stem for path in sorted((CONF / group.partition("@")[0]).glob("*.yaml"))]


# What is for trained runs, and what validation cannot use; that these are refused is tested apart.
TRAINED = {"as_trained", "reranked"}
REFUSED = {("decoding@validation_decoding", option) for option in ("mbr", "sample")}
OPTIONS = [
    (root, group, option)
    for root in KINDS
    for group in groups_of(root)
    for option in options_of(group)
    if (group, option) not in REFUSED and not (option in TRAINED and root in ("train", "bench"))
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run that decodes and evaluates in its own way, as far as its config goes."""
    root = tmp_path_factory.mktemp("outputs")
    own = ["evaluation.num_pictures=7", "evaluation.english_column=a", "evaluation.tokenized_bleu=true"]
    config = run_config(["name=run", f"output_folder={root}", "decoding=sample", *own])
    run = Run.of(config)
    run.model_folder.mkdir(parents=True)
    save_config(config, run.folder / "config.yaml")
    return root


def test_every_root_and_every_group_is_somebodys() -> None:
    assert {path.stem for path in CONF.glob("*.yaml")} == KINDS.keys() | {"base"}
    groups = {group.partition("@")[0] for root in KINDS for group in groups_of(root)}
    assert {path.name for path in CONF.iterdir() if path.is_dir()} == groups | {"hydra"}


@pytest.mark.parametrize(("root", "group", "option"), OPTIONS)
def test_every_option_composes(root: str, group: str, option: str, outputs: Path) -> None:
    """So no key of a dataclass is without a value, and no key in a file without a dataclass."""
    overrides = [f"{group}={option}", f"output_folder={outputs}", *(FILES if option == "files" else [])]
    if "run" in {field.name for field in fields(KINDS[root])}:
        overrides.append("run=run")
    config = load_config(root, KINDS[root], overrides)
    section = getattr(config, group.rpartition("@")[2], None)
    if group in ("corpus", "tokenizer", "model", "decoding") and option != "as_trained":
        assert section.name == option  # by which runs and folders are named


@pytest.mark.parametrize(("root", "group"), sorted({(root, group) for root, group, _ in OPTIONS}))
def test_an_option_that_does_not_exist_is_refused_with_all_there_are(root: str, group: str) -> None:
    with pytest.raises(UserError) as error:
        load_config(root, KINDS[root], [f"{group}=nope"])
    told = str(error.value).partition(": ")[2].partition(": ")[2]
    assert set(told.split("; ")) >= set(options_of(group))


@pytest.mark.parametrize(
    ("key", "value", "quoted"),
    [
        ("corpus.path", "my data (1)", "'my data (1)'"),
        ("corpus.splits.test", "[my (1).en,my (1).de]", "['my (1).en','my (1).de']"),
    ],
)
def test_what_hydra_cannot_read_is_named_with_the_remedy(key: str, value: str, quoted: str) -> None:
    with pytest.raises(UserError) as error:
        run_config(["corpus=files", *FILES, f"{key}={value}"])
    assert str(error.value).startswith(f"{key}={value}: ")
    assert "quotes" in str(error.value)
    config = run_config(["corpus=files", *FILES, f"{key}={quoted}"])
    assert "my" in f"{config.corpus.path}{config.corpus.splits}"


@pytest.mark.parametrize("root", ["train", "bench"])
def test_nothing_is_as_trained_where_nothing_was(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    for group in groups_of(root):
        if "as_trained" in options_of(group):
            assert endeavour(root, f"{group}=as_trained") == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert "as_trained" in said


def test_as_trained_is_key_by_key_what_the_run_says() -> None:
    for group, kind, own in (
        ("decoding", DecodingConfig, set[str]()),
        ("evaluation", EvaluationConfig, {"splits", "files", "sacrebleu", "labels", "reuse_translations"}),
    ):
        values = yaml.safe_load((CONF / group / "as_trained.yaml").read_text("utf-8"))
        names = [field.name for field in fields(kind)]
        assert list(values) == names
        assert {name for name in names if values[name] != f"${{trained:{group}.{name}}}"} == own


def test_the_default_name_is_made_of_corpus_model_and_seed() -> None:
    assert run_config(["model=small", "seed=3"]).name == "textbook-small-3"


class _Read(ast.NodeVisitor):
    """The names of all attributes of configs that are read, except where a config only checks its own values.

    What holds a config is told by its name, or `split`, `path` and `format` were read wherever text is handled.
    """

    HOLDERS = {"self", "settings", "asked", "trained", "validation"} | {
        group.rpartition("@")[2] for root in KINDS for group in groups_of(root)
    }

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if not (node.name.startswith("_check") and [one.arg for one in node.args.args] == ["self"]):
            self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        holder = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        is_config = holder.lstrip("_") in self.HOLDERS or holder.endswith("config")
        if isinstance(node.ctx, ast.Load) and is_config:
            self.names.add(node.attr)
        self.generic_visit(node)


def test_values_stand_in_conf_alone() -> None:
    """No dataclass of a config has a default."""
    waiting, seen = list(KINDS.values()), set[type[Any]]()
    while waiting:
        kind = waiting.pop()
        if kind not in seen:
            seen.add(kind)
            given = [
                one.name for one in fields(kind) if (one.default, one.default_factory) != (MISSING, MISSING)
            ]
            assert not given, f"{kind.__name__}: {given}"
            inner = (one for hint in get_type_hints(kind).values() for one in (hint, *get_args(hint)))
            waiting += [one for one in inner if is_dataclass(one)]  # type: ignore[misc]
    assert len(seen) > 20


def test_every_key_is_read_somewhere_and_not_merely_checked() -> None:
    read = _Read()
    for path in (Path(__file__).parents[1] / "src").rglob("*.py"):
        read.visit(ast.parse(path.read_text("utf-8")))
    keys = {key.rpartition(".")[2] for kind in KINDS.values() for key in keys_of(kind)}
    assert keys - read.names - set(PERTURBATIONS) == {"*"}, "rates of augmentation are read by name"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("training.warmup_update", "training.warmup_updates=…"),
        ("max_updates", "training.max_updates=…"),
        ("trianing.max_updates", "training.max_updates=…"),
        ("max_updats", "training.max_updates=…"),
        ("decoding.beam", "decoding.beam_size=…"),
        ("beam_size", "decoding.beam_size=… or validation_decoding.beam_size=…"),
        ("modle", "model=…"),
        ("experimnt", "experiment=…"),
        ("+training.warmup_update", "training.warmup_updates=…"),
        ("+beam_size", "decoding.beam_size=… or validation_decoding.beam_size=…"),
        ("+modle", "model=…"),
    ],
)
def test_a_key_that_was_meant_is_named(typed: str, meant: str) -> None:
    key = typed.removeprefix("+")
    with pytest.raises(UserError, match=rf"^{key} is not a key of this command, .*; {meant} is$"):
        run_config([f"{typed}=3"])


@pytest.mark.parametrize("typed", ["training.lr", "epochs", "training.name", "model.layers"])
def test_where_nothing_is_like_a_key_nothing_is_offered(typed: str) -> None:
    with pytest.raises(UserError, match=rf"^{typed} is not a key of this command, .* shows$"):
        run_config([f"{typed}=3"])


def test_a_key_in_a_mapping_is_named_whole() -> None:
    with pytest.raises(UserError, match=r"^model\.wdth is not a key .*; model\.width=… is$"):
        run_config(["model={wdth:64}"])


def test_a_misspelt_key_of_a_stage_is_named_and_not_the_one_that_is_missing() -> None:
    with pytest.raises(UserError, match=r"^training\.mixture\.0\.weight is .*mixture\.0\.weights=… is$"):
        run_config(["training.mixture=[{until:2,weight:{a:1}},{until:null,weights:{a:1}}]"])


@pytest.mark.parametrize(
    ("override", "advice"),
    [
        ("evaluation.files.mine=[a.txt]", "+evaluation.files.mine=[…]"),
        ("evaluation.files={mine:[a.txt]}", "+evaluation.files.mine=[…]"),
        ("corpus.parts.mine=[a.txt]", "+corpus.parts.mine=[…]"),
        ("evaluation.labels.test=a.txt", "+evaluation.labels.test=…"),
    ],
)
def test_a_new_name_is_answered_with_how_to_add_it(override: str, advice: str) -> None:
    with pytest.raises(UserError, match=f"{re.escape(advice)}$"):
        run_config([override])


def test_a_group_or_a_section_of_another_command_is_no_key_of_this_one() -> None:
    for override in ("model=small", "evaluation.files={a:[b]}", "evaluation.files.a=[b]"):
        key = override.partition("=")[0]
        with pytest.raises(UserError, match=rf"^{key} is not a key of this command"):
            load_config("translate", KINDS["translate"], [override])


@pytest.mark.parametrize("override", ["+model=small", "+seed=3"])
def test_a_plus_before_what_is_there_is_refused(override: str) -> None:
    with pytest.raises(UserError, match=rf"^{override[1:].partition('=')[0]} has a value already.*\+"):
        run_config([override])


@pytest.mark.parametrize("name", ["my set", "my/set", "März"])
def test_a_name_that_no_key_can_have_is_answered_with_what_it_may_have(name: str) -> None:
    with pytest.raises(
        UserError, match=rf"^\+evaluation\.files\.{name}=\[a,b\]: a name in a key has letters"
    ):
        run_config([f"+evaluation.files.{name}=[a,b]"])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("corpus.splits.train", "my/train.tsv"),
        ("corpus.splits.train", "a.en,a.de"),
        ("evaluation.splits", "test"),
    ],
)
def test_a_list_without_brackets_is_answered_with_how_it_is_written(key: str, value: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"written {key}=[{value}]")):
        run_config(["corpus=files", *FILES, f"{key}={value}"])


@pytest.mark.parametrize("group", ["tracking", "cleaning", "decoding", "evaluation"])
@pytest.mark.parametrize("value", ["null", "false", "1"])
def test_null_is_no_option_of_a_group_but_of_experiment(group: str, value: str) -> None:
    with pytest.raises(UserError, match=rf"'{group}/{value}'; Available options") as caught:
        typed_config(f"{group}={value}")
    assert "\n" not in str(caught.value)
    assert typed_config("experiment=multi30k", "experiment=null") == run_config()
    assert typed_config("experiment=null", "experiment=multi30k").corpus.name == "multi30k"
