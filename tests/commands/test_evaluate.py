"""A trained run on test sets that are not of its corpus: what is read and written, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from commands import endeavour
from endeavour.config import load_config
from endeavour.decoding.pytorch import PyTorchEngine

FAST = ["decoding=greedy", "decoding.max_length_ratio=1"]
ENGLISH = ["the old dog", "  A Man, a tree! ", "", "and today"]
GERMAN = ["der alte Hund", "Ein Mann, ein  Baum!", "leer", "und heute"]


@pytest.fixture(scope="module")
def outputs(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of the runs `forth` and `back`, whose prepared data are gone."""
    folder = tmp_path_factory.mktemp("evaluate")
    settings = [
        *parallel_files,
        "training=smoke",
        "tracking=none",
        "device=cpu",
        "evaluation.bootstrap_samples=40",
    ]
    settings += ["model.width=16", "model.num_heads=2", "model.encoder_layers=1", "model.decoder_layers=1"]
    settings += [f"data_folder={folder / 'data'}", f"output_folder={folder / 'outputs'}", *FAST]
    assert endeavour("train", *settings, "name=forth") == 0
    assert endeavour("train", *settings, "name=back", "direction=de-en") == 0
    shutil.rmtree(folder / "data")
    return folder / "outputs"


@pytest.fixture
def news(tmp_path: Path) -> list[str]:
    for language, lines in (("en", ENGLISH), ("de", GERMAN)):
        (tmp_path / f"news.{language}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return [f"data_folder={tmp_path}", f"+evaluation.files.news=[{tmp_path}/news.en,{tmp_path}/news.de]"]


@pytest.mark.parametrize(("run", "source", "target"), [("forth", ENGLISH, GERMAN), ("back", GERMAN, ENGLISH)])
def test_other_files_are_translated_and_scored_untouched_without_the_corpus(
    outputs: Path, news: list[str], run: str, source: list[str], target: list[str], tmp_path: Path
) -> None:
    asked = [f"output_folder={outputs}", f"name={run}"]
    assert endeavour("eval", *asked, *news) == 0
    assert not list(tmp_path.glob("prepared/*"))
    folder = outputs / run / "evaluation" / "news-greedy"
    for name, lines in (("sources", source), ("references", target)):
        assert (folder / f"{name}.txt").read_text("utf-8").split("\n") == [*lines, ""]
    file, output = tmp_path / "input", tmp_path / "output"
    file.write_text("\n".join(source) + "\n", "utf-8")
    assert endeavour("translate", *asked, f"input={file}", f"output={output}") == 0
    assert (folder / "hypotheses.txt").read_bytes() == output.read_bytes()
    written = json.loads((folder / "scores.json").read_text("utf-8"))
    assert written["sentences"] == len(source)
    hypotheses = output.read_text("utf-8").splitlines()
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())):
        expected = metric.corpus_score(hypotheses, [target]).score
        assert written["scores"][name]["value"] == pytest.approx(expected, abs=1e-6), name


def test_one_file_of_records_and_splits_of_the_corpus_beside_it(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "set.tsv").write_text("de\ten\nHund\tdog\nBaum\ttree\n", "utf-8")
    asked = [f"output_folder={outputs}", f"data_folder={tmp_path}", "name=forth", "decoding.name=beside"]
    asked += [f"+evaluation.files.set=[{tmp_path}/set.tsv]", "evaluation.splits=[validation]"]
    assert endeavour("eval", *asked) == 0
    written = sorted(path.name for path in (outputs / "forth" / "evaluation").glob("*-beside"))
    assert written == ["set-beside", "validation-beside"]
    assert (outputs / "forth" / "evaluation" / "set-beside" / "sources.txt").read_text() == "dog\ntree\n"
    capsys.readouterr()
    clash = [
        f"+evaluation.files.validation=[{tmp_path}/set.tsv]",
        *asked[:4],
        "evaluation.splits=[validation]",
    ]
    assert endeavour("eval", *clash) == 2
    assert "the corpus has a split of this name" in capsys.readouterr().err


def test_other_text_by_the_same_name_does_not_replace_an_evaluation(
    outputs: Path, news: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["eval", f"output_folder={outputs}", "name=forth", "decoding.name=kept", *news]
    assert endeavour(*asked) == 0
    scores = outputs / "forth" / "evaluation" / "news-kept" / "scores.json"
    before = scores.read_bytes()
    assert endeavour(*asked) == 0  # the same again is no loss
    for language, column in (("de", "references"), ("en", "sources")):
        file = tmp_path / f"news.{language}"
        lines = file.read_bytes()
        file.write_bytes(lines.upper())
        capsys.readouterr()
        assert endeavour(*asked) == 2
        refusal = f"an evaluation of other {column}: delete it, or choose another name than news"
        assert refusal in capsys.readouterr().err
        file.write_bytes(lines)
    assert scores.read_bytes() == before


@pytest.mark.parametrize("known", [True, False])
def test_another_precision_does_not_replace_an_evaluation_not_even_one_from_before_there_was_any(
    known: bool, outputs: Path, news: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"decoding.name=fp32-{known}"
    asked = ["eval", f"output_folder={outputs}", "name=forth", name, "evaluation.splits=[]", *news]
    assert endeavour(*asked) == 0
    scores = outputs / "forth" / "evaluation" / f"news-fp32-{known}" / "scores.json"
    values = json.loads(scores.read_text("utf-8"))
    if not known:
        del values["decoding"]["precision"]
        scores.write_text(json.dumps(values), "utf-8")
    assert endeavour(*asked, "decoding.precision=bf16") == 2
    assert "other settings (decoding.precision: fp32 → bf16)" in capsys.readouterr().err
    assert endeavour(*asked) == 0
    assert endeavour(*asked, "decoding.precision=bf16", f"decoding.name=bf16-{known}") == 0


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ("+evaluation.files.news=[missing.en,missing.de]", "missing.en: no such file"),
        ("+evaluation.files.news=[]", "no file"),
        ("evaluation.files.news=[a.en,a.de]", "a new name needs a + before it: +evaluation.files.news=[…]"),
        ("++evaluation.files={a/b:[x.tsv]}", "a name consists of letters"),
        ("+evaluation.files.news=[empty.tsv]", "no sentence in it"),
        ("+evaluation.files.news=[broken.jsonl]", "a line break inside a sentence"),
    ],
)
def test_what_is_no_test_set(
    outputs: Path,
    files: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty.tsv").write_text("en\tde\n", "utf-8")
    (tmp_path / "broken.jsonl").write_text(json.dumps({"en": "a\nb", "de": "c"}) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert endeavour("eval", f"output_folder={outputs}", "name=forth", files) == 2
    assert message in capsys.readouterr().err


def test_files_given_to_a_training_are_scored_after_its_own_test_set_and_not_for_ever(
    parallel_files: list[str],
    folders: list[str],
    news: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / "outputs" / "files-tiny-1"
    assert endeavour("train", *parallel_files, *folders, *FAST, news[1], "evaluation.splits=[test]") == 0
    assert list(json.loads((run / "summary.json").read_text())["test"]) == ["test", "news"]
    (tmp_path / "news.en").unlink()
    assert endeavour("eval", *folders[:2], "name=files-tiny-1", "decoding=beam", "decoding.beam_size=2") == 0
    assert sorted(path.name for path in (run / "evaluation").iterdir()) == [
        "news-greedy",
        "test-beam",
        "test-greedy",
    ]

    # The splits that it was trained to evaluate are not asked for with other files, which need no corpus.
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "set.tsv").write_text("en\tde\ndog\tHund\n", "utf-8")
    other = f"+evaluation.files.set=[{tmp_path}/set.tsv]"
    for number, section in enumerate(([], ["evaluation=default"])):
        asked = [*section, f"decoding.name=alone-{number}", "evaluation.bootstrap_samples=40"]
        assert endeavour("eval", *folders[:2], "name=files-tiny-1", other, *asked) == 0
    assert endeavour("eval", *folders[:2], "name=files-tiny-1", other) == 0
    assert not (tmp_path / "data").exists()
    assert (
        endeavour(
            "eval", *folders[:2], "name=files-tiny-1", "+evaluation.files.x=[my.corpus.en,my.corpus.de]"
        )
        == 2
    )
    assert "my.corpus.en: no such file" in capsys.readouterr().err

    # A comparison takes the test set of the corpus first, and says how a run is scored on another.
    shutil.copytree(run, tmp_path / "outputs" / "copy")
    shutil.rmtree(tmp_path / "outputs" / "copy" / "evaluation" / "set-greedy")
    capsys.readouterr()
    compare = ["compare", *folders[:2], "runs=files-tiny-1 copy", "decoding=greedy"]
    assert endeavour(*compare, "compare.randomization_trials=9") == 0
    assert [path.name for path in (tmp_path / "outputs" / "comparisons").glob("*/*")] == ["test-greedy"]
    assert endeavour(*compare, "split=set") == 2
    assert "'+evaluation.files.set=[FILE,FILE]'" in capsys.readouterr().err


def test_a_training_knows_beforehand_that_a_file_is_missing(
    parallel_files: list[str], folders: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*parallel_files, *folders, "+evaluation.files.news=[missing.en,missing.de]"]
    assert endeavour("train", *asked) == 2
    assert "missing.en: no such file" in capsys.readouterr().err
    assert not (tmp_path / "outputs" / "files-tiny-1").exists()


def test_a_corpus_that_was_moved_is_not_needed_where_it_was_prepared_and_read_where_it_is(
    parallel_files: list[str], folders: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, moved = tmp_path / "text", tmp_path / "moved"
    splits = load_config(parallel_files).corpus.splits
    text.mkdir()
    for file in (file for files in splits.values() for file in files):
        shutil.copy(file, text)
    settings = ["corpus=files", *parallel_files[-2:], *folders, *FAST, "name=run", "training.max_updates=2"]
    settings += [f"corpus.splits.{split}=[{split}.en,{split}.de]" for split in splits]
    assert endeavour("train", *settings, f"corpus.path={text}") == 0
    scores = tmp_path / "outputs" / "run" / "evaluation" / "test-greedy" / "scores.json"
    before = scores.read_bytes()
    text.rename(moved)
    capsys.readouterr()

    assert endeavour("eval", "name=run", *folders[:2]) == 0
    gone = f"corpus.path={text}: no such folder"
    assert f"note: {gone}" in capsys.readouterr().err
    assert scores.read_bytes() == before
    shutil.rmtree(tmp_path / "data")
    assert endeavour("eval", "name=run", *folders[:2]) == 2
    assert gone in capsys.readouterr().err
    assert endeavour("eval", *settings, f"corpus.path={moved}") == 0
    assert endeavour("train", *settings, f"corpus.path={moved}") == 0
    assert "is finished: nothing to do" in capsys.readouterr().err
    assert scores.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_translated(
    outputs: Path, news: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PyTorchEngine, "search", lambda *_: pytest.fail("translated"))
    place = outputs / "forth" / "evaluation" / "blocked-greedy"
    place.write_text("a file")
    asked = [f"output_folder={outputs}", "name=forth", *(one.replace(".news=", ".blocked=") for one in news)]
    assert endeavour("eval", *asked) == 2
    assert f"{place} cannot be written (File exists)" in capsys.readouterr().err
