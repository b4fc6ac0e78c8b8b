"""`export`, and the engine that reads what it wrote, on a run trained for some updates."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from commands import endeavour, places
from configs import QUICK, TINY
from endeavour.__main__ import run_command
from endeavour.errors import UserError
from endeavour.export import formats
from endeavour.runs.config import save_config
from endeavour.runs.evaluations import Evaluation
from endeavour.runs.run import Run
from endeavour.storage import atomic_folder, waiting_lock
from hub_writes import WritableHub


@pytest.fixture(scope="module")
def trained(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of data and outputs; two vocabularies, so that none is taken for the other."""
    folder = tmp_path_factory.mktemp("trained")
    overrides = [*QUICK, *TINY, "model.tie=decoder", "tokenizer.joint=false", "name=run"]
    overrides += ["training.max_updates=120", "training.validate_every=120", "training.learning_rate=1e-2"]
    assert endeavour("train", *parallel_files, *overrides, *places(folder)) == 0
    return folder


@pytest.fixture
def workplace(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be altered."""
    return shutil.copytree(trained, tmp_path / "work")


def translate(workplace: Path, *overrides: str) -> int:
    return endeavour("translate", f"output_folder={workplace}/outputs", "device=cpu", *overrides)


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
        (["format=ctranslate2", "quantization=bfloat16"], "ctranslate2-bfloat16"),
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
    # All have the same notion of greedy search.
    assert endeavour("export", *places(workplace), "decoding=greedy", *overrides) == 0
    run = Run(workplace / "outputs", "run")
    folder = run.folder / "export" / name
    parity = json.loads((folder / "parity.json").read_text())
    kinds = ("identical", "ties", "ours_better", "theirs_better")
    assert parity["sentences"] == sum(parity[kind] for kind in kinds) == 30
    is_exact = name in ("ctranslate2-float32", "huggingface")
    if is_exact:
        assert parity["identical"] + parity["ties"] == 30
        assert 0 < parity["largest_difference"] < parity["tolerance"]
    assert json.loads((folder / "export.json").read_text())["weights_sha256"] == run.weights_digest
    assert (folder / "source.model").read_bytes() != (folder / "target.model").read_bytes()
    printed = run_readme(folder, monkeypatch, capsys)
    if is_exact:  # its vocabularies and tokenizers are ours: the same words come out
        (sentence,) = re.findall(
            r'(?:sentences = \[|tokenizer\(\[)"(.*?)"', (folder / "README.md").read_text("utf-8")
        )
        assert translate(workplace, "decoding=greedy", f"text={sentence}") == 0
        # Greedy search ends where it wants to or at a limit, which is another one there; and of two
        # spaces in a row, which pieces of so small a model can make, the command prints one.
        ours, theirs = (" ".join(text.split()) for text in (capsys.readouterr().out, printed))
        assert ours
        assert theirs.startswith(ours)
    assert printed.strip()
    assert [path.name for path in folder.parent.iterdir()] == [name]


def test_a_full_disk_is_said_whatever_the_format_calls_it(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
    monkeypatch.setattr("transformers.modeling_utils.safe_save_file", Mock(side_effect=full))
    assert endeavour("export", *places(workplace), "format=huggingface") == 2
    folder = Run(workplace / "outputs", "run").export_folder("huggingface", None)
    said = capsys.readouterr().err
    assert f"{folder}: cannot be written (No space left on device); free some space" in said
    assert not folder.exists()


def test_what_does_not_translate_is_not_exported(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(workplace / "outputs", "run")
    config = run.config
    restoring = {
        "tokenizer": replace(config.tokenizer, joint=True),
        "augmentation": replace(config.augmentation, denoising=1),
    }
    save_config(replace(config, **restoring), run.folder / "config.yaml")
    assert endeavour("export", *places(workplace), "run=run", "format=ctranslate2") == 2
    assert "not to translate" in capsys.readouterr().err


def test_a_package_for_argos_is_compared_by_what_is_in_it(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("endeavour.export.exporter.placeholders_of", lambda _: 3)  # of which the README tells
    assert endeavour("export", *places(workplace), "format=argos", "quantization=float32") == 0
    folder = Run(workplace / "outputs", "run").export_folder("argos", "float32")
    assert json.loads((folder / "parity.json").read_text())["largest_difference"] < 1e-4
    names = {path.name for path in folder.iterdir()}
    assert names == {"translate-en_de.argosmodel", "README.md", "export.json", "parity.json", "digests.json"}
    readme = (folder / "README.md").read_text("utf-8")
    assert 'install_from_path("translate-en_de.argosmodel")' in readme
    assert "⟦1⟧ to ⟦3⟧" in readme


def test_all_formats_stand_in_one_table(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = ("int8", "float32")  # two of six, since each is searched with
    for chosen in ("ctranslate2", "argos"):
        monkeypatch.setattr(formats.FORMATS[chosen], "quantizations", kinds)
    assert endeavour("export", *places(workplace), "format=all", "decoding=greedy") == 0
    table = capsys.readouterr().out.split("\n\n")[1].splitlines()
    names = [row.split()[0] for row in table[1:]]
    exports = Run(workplace / "outputs", "run").folder / "export"
    assert sorted(names) == sorted(path.name for path in exports.iterdir())
    expected = {"huggingface"} | {f"{name}-{kind}" for name in ("ctranslate2", "argos") for kind in kinds}
    assert set(names) == expected
    row = next(row for row in table if row.startswith("ctranslate2-float32"))
    parity = json.loads((exports / "ctranslate2-float32" / "parity.json").read_text())
    for figure in (
        f"{parity['speed']:.2f}",
        f"{parity['bleu_exported']:.2f}",
        str(parity["identical"]),
        "float32",
    ):
        assert figure in row.split()


def test_what_is_pushed_is_the_folder_and_its_card_names_the_repository(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*places(workplace), "format=huggingface", "decoding=greedy"]
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert endeavour("export", *asked, "push=someone/model") == 2
    monkeypatch.setenv("HF_TOKEN", "hf_" + "Ab3" * 11)
    with WritableHub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert endeavour("export", *asked, "push=someone/model") == 0
    assert f"uploaded: {hub.url}/someone/model" in capsys.readouterr().out
    folder = Run(workplace / "outputs", "run").export_folder("huggingface", None)
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert hub.files == {name: path.read_bytes() for name, path in files.items()}
    elsewhere = workplace / "elsewhere"
    shutil.copytree(folder, elsewhere / "someone" / "model")  # a folder goes before the hub
    (elsewhere / "README.md").write_bytes(hub.files["README.md"])
    assert run_readme(elsewhere, monkeypatch, capsys).strip()


def test_a_card_has_the_scores_by_pytorch_whichever_engine_is_asked_for(workplace: Path) -> None:
    asked = ["format=huggingface", "decoding.engine=ctranslate2"]
    assert endeavour("export", *places(workplace), *asked) == 0
    folder = Run(workplace / "outputs", "run").export_folder("huggingface", None)
    _, metadata, card = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    assert "Translation en-de, beam" in metadata
    assert "\npretrained: null\nteachers: null\n" in card  # whose licenses would bind it too


def test_only_what_the_hub_can_load_is_pushed(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert endeavour("export", *places(trained), "format=argos", "push=someone/model") == 2
    assert "format=huggingface" in capsys.readouterr().err


@pytest.mark.parametrize("decoding", ["greedy", "mbr"])
def test_the_engine_evaluates_and_translates_beside_our_own(
    decoding: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = [f"decoding={decoding}"]
    engine = [*common, "decoding.engine=ctranslate2", "decoding.quantization=float32"]
    assert endeavour("export", *places(workplace), *common, "quantization=float32") == 0
    for chosen in (common, engine):
        assert endeavour("evaluate", *places(workplace), "device=cpu", *chosen) == 0
    evaluations = workplace / "outputs" / "run" / "evaluation"
    ours, theirs = (evaluations / f"test-{decoding}{engine}" for engine in ("", "-ctranslate2-float32"))
    assert (ours / "hypotheses.txt").read_text() == (theirs / "hypotheses.txt").read_text()
    for folder, name in ((ours, "pytorch"), (theirs, "ctranslate2-float32")):
        assert json.loads((folder / "scores.json").read_text())["model"]["engine"] == name
    lines = workplace / "lines.txt"
    lines.write_text("the dog sees a tree\n\na man\nan old green tree finds the old man today\n", "utf-8")
    capsys.readouterr()
    for chosen in (common, engine):
        assert translate(workplace, *chosen, f"input={lines}") == 0
    printed = capsys.readouterr().out.split("\n")
    assert len(printed) == 9
    assert printed[:4] == printed[4:8]
    assert printed[1] == ""


def test_an_export_translates_without_pytorch(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, greedy = "text=the dog sees a tree", ["decoding=greedy"]
    assert endeavour("export", *places(workplace), *greedy, "quantization=float32") == 0
    capsys.readouterr()
    assert translate(workplace, *greedy, text) == 0
    run = Run(workplace / "outputs", "run")  # with what docs/serving.md says is all that is needed
    shutil.rmtree(workplace / "data", ignore_errors=True)
    for path in run.folder.iterdir():
        if path.name not in ("config.yaml", "summary.json", "model", "export"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    code = "import sys; sys.modules['torch'] = None; from endeavour.__main__ import main; main()"
    engine = ["decoding.engine=ctranslate2", "decoding.quantization=float32"]
    asked = ["translate", f"output_folder={workplace}/outputs", *greedy, *engine, text]
    done = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, capsys.readouterr().out), done.stderr


def test_an_engine_without_a_whole_export_of_its_weights_says_what_to_run(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workplace)  # with other folders than those that a command takes by itself
    Path("outputs").rename("runs")
    run = Run(Path("runs"), "run")
    config = run.folder / "config.yaml"
    config.write_text(
        config.read_text().replace(f"data_folder: {run.config.data_folder}", "data_folder: data2")
    )
    Path("data").rename("data2")
    asked = [
        "evaluate",
        "output_folder=runs",
        "data_folder=data2",
        "device=cpu",
        "decoding.engine=ctranslate2",
    ]

    def follow(said: str) -> None:
        """Runs what the message names, after which the command works."""
        capsys.readouterr()
        assert endeavour(*asked) == 2
        message = capsys.readouterr().err
        assert said in message
        program, *command = shlex.split(message.split("`")[1])
        assert program == "endeavour"
        assert endeavour(*command) == 0
        assert endeavour(*asked) == 0

    follow("needs runs/run/export/ctranslate2-int8")
    (run.export_folder("ctranslate2", "int8") / "source.model").write_bytes(b"")
    follow("source.model: missing or altered")
    assert endeavour(*asked, "decoding.quantization=int8") == 0  # the same, so nothing is lost
    weights = load_file(run.model_folder / "weights.safetensors")
    others = {path.name: path.read_bytes() for path in run.model_folder.iterdir() if path.suffix != ".json"}
    others["model.json"] = (run.model_folder / "model.json").read_bytes()
    with atomic_folder(run.model_folder) as partial:
        for name, content in others.items():
            (partial / name).write_bytes(content)
        save_file({name: tensor * 1.5 for name, tensor in weights.items()}, partial / "weights.safetensors")
    follow("other weights")


def test_a_damaged_evaluation_of_an_export_keeps_none_from_being_written(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(workplace / "outputs", "run")
    one = Evaluation(run, "test-beam-ctranslate2-int8")
    one.folder.mkdir()
    one.scores_file.write_text("{")
    assert endeavour("export", *places(workplace), "quantization=int8") == 0
    assert f"left out of the model card: {one.scores_file}" in capsys.readouterr().err
    assert run.export_folder("ctranslate2", "int8").is_dir()


def test_a_float_export_that_is_not_the_same_model_is_not_written(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write_another(folder: Path, model: Any, *rest: Any, **named: Any) -> None:
        other = deepcopy(model)
        with torch.no_grad():
            other.decoder_norm.weight.mul_(1.05)
        write(folder, other, *rest, **named)

    write = formats.write_ctranslate2
    monkeypatch.setattr(formats, "write_ctranslate2", write_another)
    asked = [*places(workplace), "decoding=greedy"]
    assert endeavour("export", *asked, "quantization=float32") == 2
    assert "nothing was written" in capsys.readouterr().err
    exports = workplace / "outputs" / "run" / "export"
    assert not any(exports.iterdir())
    for chosen in ("ctranslate2", "argos"):
        monkeypatch.setattr(formats.FORMATS[chosen], "quantizations", ("float32",))
    assert endeavour("export", *asked, "format=all") == 0
    printed = capsys.readouterr().out
    assert "left out: ctranslate2 in float32" in printed
    names = {row.split()[0] for row in printed.split("\n\n")[1].splitlines()[1:]}
    assert {path.name for path in exports.iterdir()} == names == {"huggingface", "argos"}


@pytest.mark.parametrize(
    ("format", "package"),
    [("ctranslate2", "ctranslate2"), ("huggingface", "transformers"), ("argos", "ctranslate2")],
)
def test_a_missing_package_is_asked_for(
    format: str,
    package: str,
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert endeavour("export", *places(trained), f"format={format}") == 2
    assert f"{package} is not installed: `pip install" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ("format=onnx", "'ctranslate2', 'huggingface', 'argos' or 'all'"),
        ("quantization=int4", "'bfloat16' or 'float32'"),
        ("format=huggingface quantization=int8", "format=huggingface has float32 only"),
        ("format=all quantization=int8", "format=all writes every one"),
        ("decoding.engine=marian", "'pytorch' or 'ctranslate2'"),
        ("decoding=sample", "decoding=beam"),
    ],
)
def test_what_cannot_be_exported_is_refused_by_name(
    overrides: str, named: str, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("export", *places(trained), *overrides.split()) == 2
    complaint = capsys.readouterr().err
    assert overrides.split()[-1].partition("=")[0] in complaint
    assert named in complaint


def test_of_two_exports_of_a_run_the_second_waits(workplace: Path) -> None:
    exports = Run(workplace / "outputs", "run").export_folder("huggingface", None).parent
    command = ["export", *places(workplace), "format=huggingface", "decoding=greedy"]
    with waiting_lock(exports, "held here"):
        second = subprocess.Popen(
            [sys.executable, "-m", "endeavour", *command], stderr=subprocess.PIPE, text=True
        )
        assert second.stderr is not None
        assert any("waiting for another process, which is exporting" in line for line in second.stderr)
        assert not exports.exists()
    second.communicate()
    assert second.returncode == 0
    assert [path.name for path in exports.iterdir()] == ["huggingface"]


def test_an_ensemble_is_not_exported(workplace: Path) -> None:
    shutil.copytree(workplace / "outputs" / "run", workplace / "outputs" / "other")
    with pytest.raises(UserError, match="one model"):
        run_command("export", [*places(workplace), "run=run other"], [])
