"""Runs that are trained on the translations of others beside the text: what is in their data, and what is refused."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from commands import endeavour, places, write_splits
from configs import QUICK, TINY, typed_config
from endeavour.data.prepared import PreparedData
from endeavour.data.tables import read_tables
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.pipeline import distillation, training
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.run import Run
from endeavour.storage import atomic_folder
from endeavour.training.checkpoint import load_model, write_model
from endeavour.training.signals import Interrupted
from random_models import shaken

SMALL = [*QUICK, *TINY, "decoding=greedy", "decoding.max_length_ratio=1", "decoding.max_length_offset=2"]
SMALL += ["training.max_updates=2", "training.validate_every=1", "evaluation.num_pictures=0"]
SMALL += ["training.precision=fp32", "decoding.precision=fp32"]  # what is compared is the same to the bit
SMALL += ["cleaning.max_ratio=1000"]  # so that what such models say is not dropped


@pytest.fixture(scope="module")
def trained(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the finished runs `one`, whose weights were shaken, and `two`."""
    folder = tmp_path_factory.mktemp("teachers")
    for seed, name in ((1, "one"), (2, "two")):
        settings = [*parallel_files, *SMALL, *places(folder), f"name={name}", f"seed={seed}"]
        assert endeavour("train", *settings) == 0
    shake(folder / "outputs" / "one")
    return folder


def shake(run: Path, seed: int = 5) -> None:
    """Makes a model that has learnt nothing say something else of each sentence."""
    model, tokenizers = load_model(run / "model", torch.device("cpu"))
    torch.manual_seed(seed)
    shaken(model, 0.3)
    with atomic_folder(run / "model") as partial:
        write_model(partial, model, tokenizers)


@pytest.fixture
def settings(parallel_files: list[str], trained: Path, tmp_path: Path) -> list[str]:
    """Overrides of a new run beside copies of the finished ones."""
    shutil.copytree(trained, tmp_path / "copy")
    return [*parallel_files, *SMALL, *places(tmp_path / "copy"), "name=new"]


@pytest.fixture
def outputs(settings: list[str], tmp_path: Path) -> Path:
    return tmp_path / "copy" / "outputs"


def text(data: PreparedData) -> list[tuple[str, str]]:
    return [pair for pairs in read_tables(data.folder / "text" / "train") for pair in pairs]


def data_of(settings: list[str]) -> PreparedData:
    """What a run would be trained on whose teachers are trained."""
    config, console = typed_config(*settings), Console(quiet=True)
    data = training.prepare(config, console=console)
    if config.teachers is None:
        return data
    pairs = training._taught(Run.of(config), config, data, [], console)
    return training.prepare(config, tokenizers=data.load_tokenizers(), extra_pairs=pairs)


def translations(runs: str, sources: list[str], folder: Path) -> list[str]:
    """As `endeavour translate` makes them."""
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in sources), "utf-8")
    files = [f"input={folder / 'in.txt'}", f"output={folder / 'out.txt'}"]
    places = [f"output_folder={folder / 'copy' / 'outputs'}", "device=cpu"]
    assert endeavour("translate", f"run={runs}", *places, *files) == 0
    return (folder / "out.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("decoding", ["greedy", "sample"])
def test_the_data_are_the_text_and_after_it_what_each_teacher_makes_of_it(
    decoding: str, settings: list[str], outputs: Path, tmp_path: Path
) -> None:
    for seed, run in ((1, "one"), (2, "two")):  # which translate as they do after their own training
        config = typed_config(*settings, f"decoding={decoding}", f"name={run}", f"seed={seed}")
        save_config(config, outputs / run / "config.yaml")
    genuine, taught = data_of(settings), data_of([*settings, "teachers=one two"])
    pairs = text(genuine)
    expected = list(pairs)
    sources = [source for source, _ in pairs]
    for run in ("one", "two"):
        made = translations(run, sources, tmp_path)
        expected += zip(sources, made, strict=True)
    # What cleaning drops of a corpus it drops here: empty lines, pairs that are there already.
    kept = [pair for pair in dict.fromkeys(expected) if all(pair)]
    assert text(taught) == kept
    assert len(kept) > len(pairs) + 100
    # Vocabularies are those of the genuine text, and what is held out is as it was.
    same = [
        name for name in genuine.digests if name.endswith((".npy", ".txt", ".model")) and name[:5] != "train"
    ]
    assert {name: genuine.digests[name] for name in same} == {name: taught.digests[name] for name in same}
    assert taught.content_digest != genuine.content_digest


def test_runs_that_are_joined_translate_as_an_ensemble_that_decodes_like_the_first(
    settings: list[str], outputs: Path, tmp_path: Path
) -> None:
    shake(outputs / "two", seed=6)
    first = typed_config(*settings, "decoding=beam", "decoding.beam_size=3", "name=one")
    save_config(first, outputs / "one" / "config.yaml")
    pairs = text(data_of(settings))
    sources = [source for source, _ in pairs]
    made = translations("one two", sources, tmp_path)
    assert made != translations("one", sources, tmp_path)
    expected = dict.fromkeys([*pairs, *zip(sources, made, strict=True)])
    assert text(data_of([*settings, "teachers=one+two"])) == [pair for pair in expected if all(pair)]


def test_altered_copies_are_not_translated_and_are_made_of_translations_too(settings: list[str]) -> None:
    settings = [*settings, "teachers=one"]
    plain, altered = data_of(settings), data_of([*settings, "augmentation.upper_case=1"])
    assert text(altered) == text(plain)
    assert altered.splits["train"]["pairs"] == 2 * plain.splits["train"]["pairs"] == 2 * len(text(plain))


def test_into_english_the_german_is_translated(parallel_files: list[str], tmp_path: Path) -> None:
    settings = [*parallel_files, *SMALL, *places(tmp_path / "copy"), "direction=de-en"]
    assert endeavour("train", *settings, "name=teacher") == 0
    shake(tmp_path / "copy" / "outputs" / "teacher")
    settings += ["name=new"]
    genuine, taught = data_of(settings), data_of([*settings, "teachers=teacher"])
    sources = [source for source, _ in text(genuine)]
    assert "der" in " ".join(sources)
    made = translations("teacher", sources, tmp_path)
    added = set(text(taught)) - set(text(genuine))
    assert len(added) > 100
    assert added <= set(zip(sources, made, strict=True))


def test_a_teacher_of_the_other_direction_makes_sources_of_genuine_targets(
    settings: list[str], tmp_path: Path
) -> None:
    assert endeavour("train", *settings, "direction=de-en", "name=back") == 0
    shake(tmp_path / "copy" / "outputs" / "back")
    genuine, taught = text(data_of(settings)), text(data_of([*settings, "teachers=one back"]))
    sources, targets = zip(*genuine, strict=True)
    forward = zip(sources, translations("one", [*sources], tmp_path), strict=True)
    backward = zip(translations("back", [*targets], tmp_path), targets, strict=True)
    assert taught == [pair for pair in dict.fromkeys([*genuine, *forward, *backward]) if all(pair)]
    assert sum(target in targets for _, target in set(taught) - set(genuine)) > 100


def test_a_translation_that_is_held_out_is_not_trained_on(settings: list[str], tmp_path: Path) -> None:
    pairs = text(data_of(settings))
    made = translations("one", [source for source, _ in pairs], tmp_path)
    held = next(line for line in made[1:] if line)
    for line, there in (("never said by anyone", True), (held, False)):
        splits = {"train": pairs[1:], "validation": [("never seen elsewhere", line)], "test": pairs[:1]}
        taught = data_of([*settings, *write_splits(tmp_path, splits), "teachers=one"])
        assert (held in [target for _, target in text(taught)]) == there


def test_a_translation_that_was_interrupted_goes_on_where_it_stood(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distillation, "WINDOW", 16)
    met: list[int] = []
    search = PyTorchEngine.search

    def counted(self: PyTorchEngine, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        met.append(len(sources))
        if stop and sum(met) > 40:
            raise KeyboardInterrupt
        return search(self, sources)

    monkeypatch.setattr(PyTorchEngine, "search", counted)
    stop = True
    with pytest.raises(KeyboardInterrupt):
        data_of([*settings, "teachers=one"])
    folder = tmp_path / "copy" / "data" / "teacher_data"
    [unfinished] = folder.glob(".one-*.partial")
    # As a killed process leaves it: a window that is not whole, and half a line.
    with (unfinished / "de.txt").open("a", encoding="utf-8") as file:
        file.write("no translation\nneither is th")
    met.clear()
    stop = False
    data_of([*settings, "teachers=one"])
    total = len(text(data_of(settings)))
    assert sum(met) == total - 32
    [resumed] = folder.glob("one-*/de.txt")
    lines = resumed.read_text()
    shutil.rmtree(folder)
    met.clear()
    data_of([*settings, "teachers=one"])
    assert sum(met) == total
    assert resumed.read_text() == lines


def test_a_text_that_is_there_is_not_translated_again(
    settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data_of([*settings, "teachers=one"])
    monkeypatch.setattr(PyTorchEngine, "search", None)
    # Neither another vocabulary nor another run makes the text another.
    data_of([*settings, "teachers=one", "name=other", "tokenizer.vocabulary_size=310"])


def test_translations_that_were_altered_are_not_trained_on(
    settings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_of([*settings, "teachers=one"])
    (german,) = data.folder.parents[1].glob("teacher_data/one-*/de.txt")
    german.write_text("Unfug\n" + german.read_text("utf-8").partition("\n")[2], "utf-8")
    assert endeavour("train", *settings, "teachers=one", "name=other") == 2
    assert f"delete {german.parent}" in capsys.readouterr().err


def test_teachers_that_are_seeds_are_trained_first_and_needed_no_more_once_the_run_has_begun(
    settings: list[str], outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*settings, "teachers=2 one+2", "model.dropout=0.25", "+teacher_settings.model.dropout=0.1"]
    by_name = data_of([*settings, "teachers=two one+two"])
    assert endeavour("train", *command) == 0
    # The run with seed 2 is the one that `two` is, with settings of its own where it has any.
    assert Run(outputs, "new-teacher-2").weights_digest == Run(outputs, "two").weights_digest
    assert Run(outputs, "new").data_digest == by_name.content_digest
    bleu = json.loads((outputs / "new" / "evaluation" / "test-greedy" / "scores.json").read_text())

    # Even in another place.
    (tmp_path / "elsewhere").mkdir()
    shutil.move(outputs / "new", tmp_path / "elsewhere" / "new")
    shutil.rmtree(tmp_path / "copy")
    outputs = tmp_path / "elsewhere"
    command = [*command, f"output_folder={outputs}", f"data_folder={tmp_path / 'more'}"]
    shutil.rmtree(outputs / "new" / "evaluation")
    capsys.readouterr()
    assert endeavour("train", *command) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert endeavour("evaluate", "run=new", *command[-2:], "device=cpu") == 0
    again = json.loads((outputs / "new" / "evaluation" / "test-greedy" / "scores.json").read_text())
    assert again["scores"] == bleu["scores"]
    assert not (outputs / "new-teacher-2").exists()

    # Nor is a run that was stopped in need of them.
    final = Run(outputs, "new").weights_digest
    (outputs / "new" / "summary.json").unlink()
    shutil.rmtree(outputs / "new" / "model")
    shutil.rmtree(sorted((outputs / "new" / "checkpoints").iterdir())[-1])
    assert endeavour("train", *command) == 0
    assert not (outputs / "new-teacher-2").exists()
    assert Run(outputs, "new").weights_digest == final


def test_a_restart_that_is_stopped_while_a_teacher_trains_goes_on(
    settings: list[str], outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert endeavour("train", *settings, "teachers=one") == 0
    command = [*settings, "teachers=2", "training.restart=true"]

    def stopped(*_: object, **__: object) -> None:
        raise Interrupted(15, "outputs/new-teacher-2")

    with monkeypatch.context() as patch:
        patch.setattr(training.TrainingProcess, "train", stopped)
        assert endeavour("train", *command) == 143
    assert Run(outputs, "new").summary
    assert endeavour("train", *command[:-1]) == 0
    assert Run(outputs, "new").config.teachers == "2"
    # Teachers are kept, and refused before anything is lost where their settings are others now.
    before = {path: path.stat().st_mtime_ns for path in outputs.glob("new*/summary.json")}
    assert len(before) == 2
    assert endeavour("train", *command, "model.dropout=0.37") == 2
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert endeavour("train", *command) == 0
    assert {path.parent.name for path in before if path.stat().st_mtime_ns != before[path]} == {"new"}


def test_a_run_that_another_process_trains_meanwhile_keeps_its_translations(
    settings: list[str], outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Run(outputs, "new").teacher_data_folder / "000.de.txt"
    original = training.teacher_translations
    with ExitStack() as other:

        def overtaken(*arguments: Any) -> Any:
            other.enter_context(Run(outputs, "new").lock())
            mine.parent.mkdir(parents=True)
            mine.write_text("of the other process")
            return original(*arguments)

        monkeypatch.setattr(training, "teacher_translations", overtaken)
        assert endeavour("train", *settings, "teachers=one") == 2
    assert mine.read_text() == "of the other process"


def test_a_run_that_another_process_finishes_meanwhile_stays(
    settings: list[str], outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = training.prepare
    command = ["train", *settings, "teachers=one"]

    def overtaken(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(training, "prepare", original)
        assert endeavour(*command) == 0
        return original(*arguments, **options)

    monkeypatch.setattr(training, "prepare", overtaken)
    assert endeavour(*command) == 0
    assert len(json.loads((outputs / "new" / "run.json").read_text())) == 1


@pytest.mark.slow
def test_several_processes_train_a_teacher_together(settings: list[str], outputs: Path) -> None:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "endeavour", "train"]
    command = [sys.executable, *launch, *settings, "teachers=4"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    for name in ("new-teacher-4", "new"):
        assert (outputs / name / "summary.json").is_file()
        assert len(json.loads((outputs / name / "run.json").read_text())) == 1
    assert len(list((outputs / "new" / "teacher_data").glob("*.de.txt"))) == 1


def written(outputs: Path) -> dict[Path, int]:
    """All that lies in a folder, with the times at which it was written, except for locks."""
    return {path: path.stat().st_mtime_ns for path in outputs.rglob("*") if path.suffix != ".lock"}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["teachers=2 absent"], "finished runs: two, one, new"),
        (["teachers=2+absent"], "absent holds no trained model"),
        (["teachers=2 new"], "new is the run itself"),
        (["teachers=2 new/inner"], "new/inner is the run itself, or in it"),
        (["teachers=one,one"], "names a teacher twice"),
        (["teachers=2 new-teacher-2"], "names a teacher twice"),
        (["teachers=one+two two+one"], "names a teacher twice"),
        (["teachers=one+2+one"], "names a run twice in one ensemble"),
        (["teachers=3 two+one"], "two+one means an ensemble"),
        (["teachers=2 2+one", "tokenizer.vocabulary_size=305"], "another source vocabulary"),
        (["teachers=2+one", "direction=de-en"], "2+one translate in different directions"),
        (["teachers=3", "pretrained=one", "+teacher_settings.model.width=8"], "teacher_settings.model.width"),
        (["teachers=3 damaged"], "damaged/model/weights.safetensors"),
        (["teachers=3 restorer"], "restorer has learnt to restore masked sentences"),
    ],
)
def test_what_cannot_teach_is_refused_before_anything_is_trained_or_lost(
    overrides: list[str],
    message: str,
    settings: list[str],
    outputs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (outputs / "one").rename(outputs / "new")
    shutil.copytree(outputs / "new", outputs / "one")
    if "means an ensemble" in message:
        shutil.copytree(outputs / "two", outputs / "two+one")
    if "restorer" in message:
        shutil.copytree(outputs / "two", outputs / "restorer")
        config = outputs / "restorer" / "config.yaml"
        config.write_text(config.read_text().replace("denoising: 0", "denoising: 1"))
    if "damaged" in message:
        shutil.copytree(outputs / "two", outputs / "damaged")
        weights = outputs / "damaged" / "model" / "weights.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    before = written(outputs)
    assert endeavour("train", *settings, *overrides, "training.restart=true") == 2
    said = capsys.readouterr().err
    assert message in said
    assert ("\nrestore it, or " in said) is ("damaged" in message)
    assert written(outputs) == before


def test_a_run_needs_the_translations_it_keeps_only_where_its_data_is_gone_and_names_what_is_altered(
    settings: list[str], tmp_path: Path, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("train", *settings, "teachers=one", "+teacher_settings.model.dropout=0.3") == 0
    assert "teacher_settings change nothing" in capsys.readouterr().err
    evaluate = ["evaluate", "run=new", *places(tmp_path / "copy"), "device=cpu"]
    [translated] = (outputs / "new" / "teacher_data").glob("*.de.txt")
    translated.write_text(translated.read_text() + "x")
    assert endeavour(*evaluate) == 0
    shutil.rmtree(tmp_path / "copy" / "data" / "prepared")
    assert endeavour(*evaluate) == 2
    assert str(translated) in capsys.readouterr().err
    shutil.rmtree(translated.parent)
    assert endeavour(*evaluate) == 2
    assert f"{translated.parent} is missing" in capsys.readouterr().err


def test_a_teacher_that_is_a_seed_has_learnt_the_same_text(
    settings: list[str], tmp_path: Path, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [*settings, "name=new-teacher-2", "seed=2"]
    teacher = Run.of(typed_config(*named))
    shutil.move(outputs / "two", teacher.folder)
    data_of([*settings, "teachers=2"])
    pairs = text(data_of(settings))
    changed = write_splits(tmp_path, {"train": pairs[1:], "validation": pairs[:1], "test": pairs[:1]})
    save_config(typed_config(*named, *changed), teacher.folder / "config.yaml")
    shutil.copytree(outputs / "one", outputs / "new", dirs_exist_ok=True)
    before = written(outputs)
    assert endeavour("train", *settings, *changed, "teachers=3 2", "training.restart=true") == 2
    assert f"{teacher}, a teacher of this run, was trained on other data" in capsys.readouterr().err
    assert written(outputs) == before
    # One that is not finished does not go on.
    (teacher.folder / "summary.json").unlink()
    assert endeavour("train", *settings, *changed, "teachers=2", "training.restart=true") == 2
    said = capsys.readouterr().err
    assert f"{teacher} was trained on other data" in said
    assert said.endswith("\ndelete it, to have it trained anew, or choose another name=…\n")


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> list[DecodingConfig]:
    """Those with which text is translated, as it happens."""
    noted: list[DecodingConfig] = []

    class Noted(PyTorchEngine):
        def __init__(self, model: Any, decoding: DecodingConfig) -> None:
            noted.append(decoding)
            super().__init__(model, decoding)

    monkeypatch.setattr("endeavour.runs.translators.PyTorchEngine", Noted)
    return noted


def test_a_teacher_translates_in_smaller_batches_where_they_are_asked_for(
    settings: list[str], decodings: list[DecodingConfig]
) -> None:
    whole = text(data_of([*settings, "teachers=one"]))
    fewer = [
        *settings,
        f"data_folder={typed_config(*settings).data_folder}-2",
        "decoding.tokens_per_batch=100",
    ]
    assert text(data_of([*fewer, "teachers=one"])) == whole
    first, second = [decoding.tokens_per_batch for decoding in decodings]
    assert first > second == 100


def test_a_teacher_that_is_a_seed_decodes_as_is_asked_for_now(
    settings: list[str], outputs: Path, decodings: list[DecodingConfig]
) -> None:
    shutil.copytree(outputs / "two", outputs / "new-teacher-2")
    for beam in (1, 3):
        data_of([*settings, "teachers=2", f"+teacher_settings.decoding.beam_size={beam}"])
    # What changes no search makes no other text: a run that ran out of memory goes on where it was.
    data_of(
        [*settings, "teachers=2", "+teacher_settings.decoding.beam_size=3", "decoding.tokens_per_batch=100"]
    )
    assert [decoding.beam_size for decoding in decodings] == [1, 3]


def test_in_a_sweep_commas_separate_values(settings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[str | None, Sequence[str]]] = []

    def noted(config: RunConfig, command: Sequence[str], **_: object) -> None:
        trained.append((config.teachers, command))

    monkeypatch.setattr("endeavour.sweeps.trial.train_run", noted)
    unnamed = [override for override in settings if not override.startswith("name=")]
    endeavour("sweep", *unnamed, "teachers=one,one two")
    assert [names for names, _ in trained] == ['"one"', '"one" "two"']
    for names, command in trained:  # as run.json has it, for the trial by itself
        assert typed_config(*command[2:]).teachers == names
