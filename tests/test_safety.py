"""Nothing but data is ever loaded from a file, and no secret reaches one."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import endeavour
from configs import run_config
from endeavour.__main__ import refuse_secrets
from endeavour.errors import UserError
from endeavour.redaction import HIDDEN, names_secret, redact, secret_in
from endeavour.settings import config_folder

SOURCE = Path(__file__).parents[1] / "src"
CODE_FORMATS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "runpy"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
# What runs code from the file it reads, called by this name, under which it must be imported.
LOADERS = {"torch.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "hydra.utils.instantiate"}
RENAMED = {name.rpartition(".")[0] for name in LOADERS}
SECRETS = {"WANDB_API_KEY": "0123456789abcdef" * 2 + "01234567", "HF_TOKEN": "hf_" + "Ab3" * 11}


def trees() -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def offences(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in CODE_FORMATS)
            yield from (alias.name for alias in node.names if alias.asname and alias.name in RENAMED)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in CODE_FORMATS:
            yield str(node.module)
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if f"{node.module}.{alias.name}" in LOADERS)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            weights_only = any(
                word.arg == "weights_only" and ast.unparse(word.value) == "True" for word in node.keywords
            )
            if name in FORBIDDEN_CALLS or (name in LOADERS and not weights_only):
                yield name
            yield from (
                f"{word.arg}={ast.unparse(word.value)}"
                for word in node.keywords
                if word.arg in ("allow_pickle", "trust_remote_code") and ast.unparse(word.value) != "False"
            )


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from dill import load",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "yaml.load(text)",
        "from torch import load",
        "import yaml as other",
        "np.load(path, allow_pickle=True)",
        "load_dataset(name, trust_remote_code=flag)",
        "eval(text)",
    ],
)
def test_code_that_loads_code_is_recognised(code: str) -> None:
    assert len(list(offences(ast.parse(code)))) == 1


def test_only_data_formats_are_loaded() -> None:
    allowed = "torch.load(path, weights_only=True); np.load(path, allow_pickle=False); model.eval()"
    assert list(offences(ast.parse(allowed))) == []
    found = {path.name: list(offences(tree)) for path, tree in trees() if list(offences(tree))}
    assert found == {
        "parallel.py": ["pickle"]
    }  # which sends pickles to processes of its own, through their pipes


def test_no_config_names_a_class_to_be_made() -> None:
    """Except for Hydra's own: a sweeper is a plugin."""
    paths = {path for path in config_folder().rglob("*.yaml") if "hydra" not in path.parts}
    assert config_folder() / "train.yaml" in paths
    assert [path for path in paths if "_target_:" in path.read_text("utf-8")] == []


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return SECRETS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "endeavour", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_secrets_of_the_environment_are_in_no_file_of_a_run(
    secrets: dict[str, str], parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    result = run("train", *parallel_files, *folders, "tracking.tracker=wandb", "training.max_updates=2")
    assert result.returncode == 0, result.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("wandb" in path.parts for path in files)
    for value in secrets.values():
        assert value not in result.stdout + result.stderr
        assert [path for path in files if value.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("+tracking.api_key=abc", "tracking.api_key=… holds"),
        ("++hf_token=abc", "hf_token=… holds"),
        (f"name={SECRETS['WANDB_API_KEY']}", "name=… holds the value of WANDB_API_KEY"),
        ("name=hf_" + "x" * 30, "name=… holds"),
        ("name=${oc.env:HF_TOKEN}", "name holds the value of HF_TOKEN"),
        ("corpus.path=https://me:secret@host/x", "corpus.path=… holds"),
    ],
)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(
    argument: str,
    named: str,
    secrets: dict[str, str],
    folders: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert endeavour("train", *folders, argument) == 2
    said = capsys.readouterr().err
    assert named in said
    assert argument.split("=", 1)[1] not in said
    assert not any(value in said for value in secrets.values())
    assert list(tmp_path.iterdir()) == []


def test_a_split_may_be_called_as_secrets_are() -> None:
    refuse_secrets(["+corpus.splits.token=[a.tsv]", "+evaluation.files.key=[b.tsv]"])
    with pytest.raises(UserError, match="looks like a key"):
        refuse_secrets(["+evaluation.files.key=[hf_" + "x" * 30 + "]"])


def test_a_config_that_holds_a_secret_is_refused(secrets: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"tracking\.group holds the value of HF_TOKEN"):
        run_config([f"tracking.group={secrets['HF_TOKEN']}"])


def test_messages_are_cleaned_and_ordinary_words_are_left(
    secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"401 for {secrets['WANDB_API_KEY']} at https://me:pass@host and hf_{'Z' * 34}"
    assert redact(said) == f"401 for {HIDDEN} at https://{HIDDEN}@host and {HIDDEN}"
    monkeypatch.setenv("MY_TOKEN", "word")
    ordinary = "a word of training.tokens_per_batch=512, hf_hub and revision " + "37e1186002" * 4
    assert redact(ordinary) == ordinary
    assert secret_in(ordinary) is None
    assert names_secret("tracking.api_key")
    assert names_secret("WANDB_API_KEY")
    assert not any(
        names_secret(key) for key in ("training.tokens_per_batch", "tokenizer", "cleaning.max_tokens")
    )
    assert os.environ["MY_TOKEN"] == "word"
