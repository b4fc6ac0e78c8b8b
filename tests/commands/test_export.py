"""The export stage and the engine that reads it, through the command line, on a run trained for some updates."""

import json
import re
import shutil
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import endeavour.stages.export as stage
import pytest
import torch
from safetensors.torch import load_file, save_file

from commands import endeavour
from endeavour.storage import atomic_folder

NAME = "name=run"


@pytest.fixture(scope="module")
def trained(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of data and outputs; two vocabularies, so that none is taken for the other."""
    folder = tmp_path_factory.mktemp("trained")
    tiny = {"width": 16, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1, "num_heads": 2}
    overrides = [f"model.{key}={value}" for key, value in tiny.items()]
    overrides += ["model.tie=decoder", "tokenizer.joint=false", "tracking=none", "training=smoke"]
    overrides += [
        f"training.{key}" for key in ("max_updates=120", "validate_every=120", "learning_rate=1e-2")
    ]
    assert endeavour("train", *parallel_files, *overrides, *settings(folder)) == 0
    return folder


@pytest.fixture
def workplace(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be altered."""
    shutil.copytree(trained, tmp_path / "work")
    return tmp_path / "work"


def settings(folder: Path) -> list[str]:
    return [
        f"data_folder={folder}/data",
        f"output_folder={folder}/outputs",
        "device=cpu",
        "evaluation.bootstrap_samples=40",
        NAME,
    ]


def run_readme(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What the code sample of an exported folder's README prints, run inside that folder."""
    (sample,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(folder)
    capsys.readouterr()
    exec(compile(sample, "README.md", "exec"), {})
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["format=ctranslate2", "quantization=float32"], "ctranslate2-float32"),
        (["format=ctranslate2", "quantization=int8"], "ctranslate2-int8"),
        (["format=huggingface"], "huggingface"),
    ],
)
def test_an_export_says_what_it_is_and_its_readme_works(
    overrides: list[str],
    name: str,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    greedy = [*settings(workplace), "decoding=greedy"]  # of which all have one notion
    assert endeavour("export", *greedy, *overrides) == 0
    assert "identical" in capsys.readouterr().out
    folder = workplace / "outputs" / "run" / "export" / name
    parity = json.loads((folder / "parity.json").read_text())
    kinds = ("identical", "ties", "ours_better", "theirs_better")
    assert parity["sentences"] == sum(parity[kind] for kind in kinds) == 30
    if "int8" not in name:
        assert 0 < parity["largest_difference"] < parity["tolerance"]
    description = json.loads((folder / "export.json").read_text())
    digests = json.loads((workplace / "outputs" / "run" / "model" / "digests.json").read_text())
    assert description["weights_sha256"] == digests["weights.safetensors"]
    assert (folder / "source.model").read_bytes() != (folder / "target.model").read_bytes()
    printed = run_readme(folder, monkeypatch, capsys)
    if "int8" not in name:  # its vocabularies and tokenizers are ours: the same words come out
        (sentence,) = re.findall(
            r'(?:sentences = \[|source\.encode\()"(.*)"', (folder / "README.md").read_text("utf-8")
        )
        assert endeavour("translate", *greedy, f"text={sentence}") == 0
        # Greedy search ends where it wants to or at a limit, which is another one there; and of two
        # spaces in a row, which pieces of so small a model can make, the command prints one.
        ours, theirs = (" ".join(text.split()) for text in (capsys.readouterr().out, printed))
        assert ours
        assert theirs.startswith(ours)
    assert printed.strip()
    assert [path.name for path in folder.parent.iterdir()] == [name]


def test_a_run_whose_corpus_has_changed_is_neither_evaluated_nor_exported_with_other_text(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = workplace / "outputs" / "run"
    summary = json.loads((run / "summary.json").read_text())
    before = (run / "evaluation" / "test-beam" / "scores.json").read_bytes()
    summary["data_digest"] = summary["data_digest"][::-1]
    (run / "summary.json").write_text(json.dumps(summary))
    for stage_name in ("eval", "export"):
        assert endeavour(stage_name, *settings(workplace)) == 2
        assert "run was trained on other data: the corpus has changed since" in capsys.readouterr().err
    assert (run / "evaluation" / "test-beam" / "scores.json").read_bytes() == before
    assert not (run / "export").exists()


@pytest.mark.parametrize("decoding", ["greedy", "mbr"])
def test_the_engine_evaluates_and_translates_beside_our_own(
    decoding: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = [*settings(workplace), "quantization=float32", f"decoding={decoding}"]
    assert endeavour("export", *common) == 0
    engine = [*common, "decoding.engine=ctranslate2"]
    assert endeavour("eval", *common) == 0
    assert endeavour("eval", *engine) == 0
    evaluations = workplace / "outputs" / "run" / "evaluation"
    ours, theirs = (evaluations / f"test-{decoding}{engine}" for engine in ("", "-ctranslate2-float32"))
    assert (ours / "hypotheses.txt").read_text() == (theirs / "hypotheses.txt").read_text()
    for folder, name in ((ours, "pytorch"), (theirs, "ctranslate2-float32")):
        assert json.loads((folder / "scores.json").read_text())["model"]["engine"] == name
    capsys.readouterr()
    lines = workplace / "lines.txt"
    lines.write_text("the dog sees a tree\n\na man\nan old green tree finds the old man today\n", "utf-8")
    for chosen in (common, engine):
        assert endeavour("translate", *chosen, f"input={lines}") == 0
    printed = capsys.readouterr().out.split("\n")
    assert len(printed) == 9
    assert printed[:4] == printed[4:8]
    assert printed[1] == ""


def test_an_engine_without_its_export_or_of_other_weights_says_what_to_run(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = [*settings(workplace), "decoding.engine=ctranslate2", "text=a man"]
    assert endeavour("translate", *text) == 2
    complaint = capsys.readouterr().err
    assert "endeavour export format=ctranslate2 quantization=int8 name=run" in complaint
    assert complaint.count("\n") == 1
    assert endeavour("export", *settings(workplace)) == 0
    assert endeavour("translate", *text) == 0

    model = workplace / "outputs" / "run" / "model"
    weights = load_file(model / "weights.safetensors")
    others = {path.name: path.read_bytes() for path in model.iterdir() if path.name != "digests.json"}
    with atomic_folder(model) as partial:
        for name, content in others.items():
            (partial / name).write_bytes(content)
        save_file({name: tensor * 1.5 for name, tensor in weights.items()}, partial / "weights.safetensors")
    capsys.readouterr()
    assert endeavour("translate", *text) == 2
    complaint = capsys.readouterr().err
    assert "other weights" in complaint
    assert "endeavour export" in complaint
    assert endeavour("export", *settings(workplace)) == 0
    assert endeavour("translate", *text) == 0


def test_a_float_export_that_is_not_the_same_model_is_not_written(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write_another(folder: Path, model: Any, *rest: Any, **named: Any) -> None:
        other = deepcopy(model)
        with torch.no_grad():
            other.decoder_norm.weight.mul_(1.05)
        write(folder, other, *rest, **named)

    write = stage.write_ctranslate2
    monkeypatch.setattr(stage, "write_ctranslate2", write_another)
    assert endeavour("export", *settings(workplace), "quantization=float32") == 2
    assert "nothing was written" in capsys.readouterr().err
    assert not any((workplace / "outputs" / "run" / "export").iterdir())


@pytest.mark.parametrize(
    ("format", "package"), [("ctranslate2", "ctranslate2"), ("huggingface", "transformers")]
)
def test_a_missing_package_is_asked_for(
    format: str,
    package: str,
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert endeavour("export", *settings(trained), f"format={format}") == 2
    complaint = capsys.readouterr().err
    assert f"{package} is not installed: `pip install -e '.[export]'`" in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("override", "choices"),
    [
        ("format=onnx", "ctranslate2, huggingface"),
        ("quantization=int4", "int8, float32"),
        ("decoding.engine=marian", "pytorch, ctranslate2"),
        ("validation_decoding.engine=ctranslate2", "pytorch alone"),
        ("decoding=sample", "add decoding=beam"),
    ],
)
def test_values_that_are_none_are_refused_by_name(
    override: str, choices: str, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("export", *settings(trained), override) == 2
    complaint = capsys.readouterr().err
    assert override.partition("=")[0] in complaint
    assert choices in complaint


def test_training_with_an_engine_that_needs_a_trained_run_is_refused_at_once(
    trained: Path, parallel_files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", *parallel_files, *settings(trained), "name=new", "decoding.engine=ctranslate2"]
    assert endeavour(*command) == 2
    assert "train without it first" in capsys.readouterr().err
    assert not (trained / "outputs" / "new").exists()


def test_a_config_from_before_newer_keys_is_read(workplace: Path) -> None:
    saved = workplace / "outputs" / "run" / "config.yaml"
    lines = saved.read_text("utf-8").splitlines(keepends=True)
    newer = (
        "format:",
        "quantization:",
        "  engine:",
        "pretrained:",
        "teachers:",
        "  files:",
        "  sampling:",
    )
    saved.write_text("".join(line for line in lines if not line.startswith(newer)), "utf-8")
    assert endeavour("translate", *settings(workplace), "text=a man") == 0
