"""Trained runs, alone and as ensembles, on splits and on other files: what is read and written, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from tiny_runs import FAST, make_runs

from commands import endeavour, write_lines
from configs import run_config
from endeavour.data.corpus import VALIDATION
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.storage import DIGESTS, file_digest, write_json

MBR = ["decoding=mbr", "decoding.num_hypotheses=6", "decoding.max_length_ratio=1"]
SAMPLE = ["decoding=sample", "decoding.max_length_ratio=1"]
ENGLISH = ["the old dog", "  A Man, a tree! ", "", "and today"]
GERMAN = ["der alte Hund", "Ein Mann, ein  Baum!", "leer", "und heute"]


@pytest.fixture(scope="module")
def trained(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("evaluate"), parallel_files)


@pytest.fixture
def outputs(trained: Path, tmp_path: Path) -> Path:
    """A copy of the outputs, to be altered."""
    return shutil.copytree(trained / "outputs", tmp_path / "outputs")


@pytest.fixture
def asked(trained: Path, outputs: Path) -> list[str]:
    return [f"data_folder={trained}/data", f"output_folder={outputs}", "device=cpu"]


@pytest.fixture
def news(tmp_path: Path) -> str:
    for language, lines in (("en", ENGLISH), ("de", GERMAN)):
        write_lines(tmp_path / f"news.{language}", lines)
    return f"+evaluation.files.news=[{tmp_path}/news.en,{tmp_path}/news.de]"


# Which run


@pytest.mark.parametrize("command", ["evaluate", "export"])
def test_a_run_that_has_weights_and_no_end_is_named(
    command: str, asked: list[str], outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (outputs / "a" / "summary.json").unlink()
    assert endeavour(command, *asked[:2], "run=a") == 2
    assert f"{outputs / 'a'} is not finished" in capsys.readouterr().err


# Which text


@pytest.mark.parametrize(("run", "source", "target"), [("a", ENGLISH, GERMAN), ("back", GERMAN, ENGLISH)])
def test_other_files_are_translated_and_scored_untouched_without_the_corpus(
    outputs: Path, news: str, run: str, source: list[str], target: list[str], tmp_path: Path
) -> None:
    named = [f"run={run}", f"output_folder={outputs}"]
    assert endeavour("eval", *named, f"data_folder={tmp_path}/none", news) == 0
    assert not (tmp_path / "none").exists()
    folder = outputs / run / "evaluation" / "news-greedy"
    for name, lines in (("sources", source), ("references", target)):
        assert (folder / f"{name}.txt").read_text("utf-8").split("\n") == [*lines, ""]
    file, output = tmp_path / "input", tmp_path / "output"
    file.write_text("\n".join(source) + "\n", "utf-8")
    assert endeavour("translate", *named, f"input={file}", f"output={output}") == 0
    assert (folder / "hypotheses.txt").read_bytes() == output.read_bytes()
    record = json.loads((folder / "scores.json").read_text("utf-8"))
    assert record["sentences"] == len(source)
    assert record["model"]["test_set"] == "news"
    hypotheses = output.read_text("utf-8").splitlines()
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())):
        expected = metric.corpus_score(hypotheses, [target]).score
        assert record["scores"][name]["value"] == pytest.approx(expected, abs=1e-6), name


def test_one_file_of_records_and_splits_of_the_corpus_prepared_anew_beside_it(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "set.tsv").write_text("de\ten\nHund\tdog\nBaum\ttree\n", "utf-8")
    asked = [f"output_folder={outputs}", f"data_folder={tmp_path}/data", "run=a"]
    asked += ["evaluation.splits=[validation]"]
    assert endeavour("evaluate", *asked, f"+evaluation.files.set=[{tmp_path}/set.tsv]") == 0
    written = sorted(path.name for path in (outputs / "a" / "evaluation").iterdir())
    assert written == ["set-greedy", "validation-greedy"]
    assert (outputs / "a" / "evaluation" / "set-greedy" / "sources.txt").read_text() == "dog\ntree\n"
    assert endeavour("evaluate", *asked, f"+evaluation.files.{VALIDATION}=[{tmp_path}/set.tsv]") == 2
    assert "evaluation.files.validation" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ("+evaluation.files.news=[missing.en,missing.de]", "missing.en: no such file"),
        ("+evaluation.files.news=[my.corpus.en,my.corpus.de]", "my.corpus.en: no such file"),
        ("+evaluation.files.news=[]", "no file"),
        ("evaluation.files.news=[a.en,a.de]", "+evaluation.files.news=[…]"),
        ("++evaluation.files={a/b:[x.tsv]}", "evaluation.files.a/b"),
        ("+evaluation.files.news=[empty.tsv]", "empty.tsv"),
        (f"+evaluation.files.{'n' * 51}=[empty.tsv]", "too long a name"),
        ("evaluation.splits=[test,validation,test]", "test is named twice"),
        ("+evaluation.files.news=[broken.jsonl]", "broken.jsonl: a line break inside a sentence"),
    ],
)
def test_files_that_are_not_a_test_set(
    asked: list[str],
    files: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty.tsv").write_text("en\tde\n", "utf-8")
    (tmp_path / "broken.jsonl").write_text(json.dumps({"en": "a\nb", "de": "c"}) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert endeavour("evaluate", *asked, "run=a", files) == 2
    assert message in capsys.readouterr().err


def test_files_given_to_a_training_are_scored_after_its_own_test_set_and_not_for_ever(
    parallel_files: list[str], folders: list[str], news: str, tmp_path: Path
) -> None:
    run = tmp_path / "outputs" / "files-tiny-1"
    short = ["training.max_updates=1", "training.validate_every=1"]
    assert endeavour("train", *parallel_files, *folders, *FAST, *short, news, "evaluation.splits=[test]") == 0
    assert list(json.loads((run / "summary.json").read_text())["test"]) == ["test", "news"]
    (tmp_path / "news.en").unlink()
    assert endeavour("evaluate", *folders[:2], "decoding=beam", "decoding.beam_size=2") == 0
    written = sorted(path.name for path in (run / "evaluation").iterdir())
    assert written == ["news-greedy", "test-beam", "test-greedy"]

    # The splits that it was trained to evaluate are not asked for with other files, which need no corpus.
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "set.tsv").write_text("en\tde\ndog\tHund\n", "utf-8")
    other = f"+evaluation.files.set=[{tmp_path}/set.tsv]"
    assert endeavour("evaluate", *folders[:2], other) == 0
    assert endeavour("evaluate", *folders[:2], other, "evaluation=default", "decoding.name=default") == 0
    assert not (tmp_path / "data").exists()


def test_a_corpus_that_was_moved_is_not_needed_where_it_was_prepared_and_read_where_it_is(
    parallel_files: list[str], folders: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, moved = tmp_path / "text", tmp_path / "moved"
    splits = run_config(parallel_files).corpus.splits
    text.mkdir()
    for file in (file for files in splits.values() for file in files):
        shutil.copy(file, text)
    settings = ["corpus=files", *parallel_files[-2:], *folders, *FAST, "name=run"]
    settings += ["training.max_updates=2", "training.validate_every=2"]
    settings += [f"corpus.splits.{split}=[{split}.en,{split}.de]" for split in splits]
    assert endeavour("train", *settings, f"corpus.path={text}") == 0
    results = tmp_path / "outputs" / "run" / "evaluation" / "test-greedy" / "scores.json"
    before = results.read_bytes()
    text.rename(moved)

    assert endeavour("evaluate", *folders[:2]) == 0
    assert results.read_bytes() == before
    shutil.rmtree(tmp_path / "data")
    capsys.readouterr()
    assert endeavour("evaluate", *folders[:2]) == 2
    said = capsys.readouterr().err
    assert f"corpus.path={text}: no such folder" in said
    assert "name its place (data_folder=…, corpus_path=…)" in said
    assert endeavour("evaluate", *folders[:2], "corpus_path=typo") == 2
    assert "corpus_path=typo: no such folder" in capsys.readouterr().err
    assert endeavour("evaluate", *folders[:2], f"corpus_path={moved}") == 0
    assert endeavour("train", *settings, f"corpus.path={moved}") == 0
    assert results.read_bytes() == before


@pytest.mark.parametrize("command", ["evaluate", "export"])
def test_a_corpus_that_has_changed_is_not_taken_for_that_of_the_run(
    command: str, asked: list[str], outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = outputs / "a" / "summary.json"
    digest = json.loads(summary.read_text())["data_digest"]
    summary.write_text(summary.read_text().replace(digest, digest[::-1]))
    folders = asked[:2]  # `export` has no device
    assert endeavour(command, *folders, "run=a") == 2
    assert "trained on other data" in capsys.readouterr().err
    assert not (outputs / "a" / "evaluation").exists()
    assert not (outputs / "a" / "export").exists()


# What lies there already


def test_other_text_by_the_same_name_does_not_replace_an_evaluation(
    asked: list[str], outputs: Path, news: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("evaluate", *asked, "run=a", news) == 0
    file = outputs / "a" / "evaluation" / "news-greedy" / "scores.json"
    before = file.read_bytes()
    assert endeavour("evaluate", *asked, "run=a", news) == 0  # the same again is no loss
    for language, column in (("de", "references"), ("en", "sources")):
        text = tmp_path / f"news.{language}"
        lines = text.read_bytes()
        text.write_bytes(lines.upper())
        assert endeavour("evaluate", *asked, "run=a", news) == 2
        refusal = capsys.readouterr().err
        assert str(file.parent) in refusal
        assert column in refusal
        text.write_bytes(lines)
    assert file.read_bytes() == before


def test_other_settings_do_not_replace_an_evaluation(
    asked: list[str], outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = outputs / "b" / "evaluation" / "test-mbr"
    command, sampled = (["evaluate", *asked, "run=b", *decoding] for decoding in (MBR, SAMPLE))
    assert endeavour(*command) == 0
    assert json.loads((folder / "scores.json").read_text())["decoding"]["utility"] == "bleu"
    first = (folder / "hypotheses.txt").read_bytes()
    # By which no translation changes.
    assert endeavour(*command, "decoding.tokens_per_batch=60", "decoding.cuda_graphs=true") == 0
    assert (folder / "hypotheses.txt").read_bytes() == first
    for setting, said in (
        ("decoding.utility=chrf", "decoding.utility: bleu → chrf"),
        ("decoding.precision=bf16", "decoding.precision: fp32 → bf16"),
    ):
        assert endeavour(*command, setting) == 2
        assert said in capsys.readouterr().err
    assert (folder / "hypotheses.txt").read_bytes() == first
    assert endeavour(*command, "decoding.utility=chrf", "decoding.name=mbr-chrf") == 0
    assert (folder.parent / "test-mbr-chrf" / "scores.json").is_file()
    # As many tokens a batch make other draws, so an evaluation of others is another one.
    assert endeavour(*sampled) == 0
    assert endeavour(*sampled, "decoding.tokens_per_batch=60") == 2
    assert "decoding.tokens_per_batch" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_translated(
    asked: list[str],
    outputs: Path,
    news: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PyTorchEngine, "search", lambda *_: pytest.fail("translated"))
    place = outputs / "a" / "evaluation" / "news-greedy"
    place.parent.mkdir()
    place.write_text("a file")
    assert endeavour("evaluate", *asked, "run=a", news) == 2
    assert str(place) in capsys.readouterr().err


def test_an_evaluation_is_of_the_weights_that_translated(
    asked: list[str], outputs: Path, news: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = outputs / "a" / "model" / DIGESTS
    before = json.loads(noted.read_text("utf-8"))
    search = PyTorchEngine.search

    def trained_anew_meanwhile(*given: Any) -> Any:
        write_json(noted, before | {"weights.safetensors": "new"})
        return search(*given)

    monkeypatch.setattr(PyTorchEngine, "search", trained_anew_meanwhile)
    assert endeavour("evaluate", *asked, "run=a", news) == 0
    record = json.loads((outputs / "a" / "evaluation" / "news-greedy" / "scores.json").read_text("utf-8"))
    assert record["model"]["weights_sha256"] == before["weights.safetensors"]


def test_an_evaluation_of_an_ensemble_has_its_own_folder_and_is_compared_by_it(
    asked: list[str], outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = outputs / "a" / "evaluation" / "test-greedy-with-b+c"
    assert endeavour("evaluate", *asked, "run=a") == 0
    alone = folder.with_name("test-greedy")
    before = (alone / "scores.json").read_bytes()
    capsys.readouterr()
    assert endeavour("evaluate", *asked, "run=a b, c") == 0
    assert "a, greedy, ensemble of 3" in capsys.readouterr().out
    assert (alone / "scores.json").read_bytes() == before

    record = json.loads((folder / "scores.json").read_text("utf-8"))
    weights = {name: file_digest(outputs / name / "model" / "weights.safetensors") for name in "abc"}
    assert record["model"]["weights_sha256"] == weights.pop("a")
    assert record["model"]["ensemble_weights_sha256"] == weights
    assert record["title"] != json.loads(before)["title"]
    hypotheses = (folder / "hypotheses.txt").read_bytes()
    assert hypotheses != (alone / "hypotheses.txt").read_bytes()
    other_order = outputs / "out"
    named = ["run=[c,a,b]", f"input={folder / 'sources.txt'}", f"output={other_order}"]
    assert endeavour("translate", *asked[1:], *named) == 0
    assert other_order.read_bytes() == hypotheses

    compared = ["runs=a a/evaluation/test-greedy-with-b+c", "bootstrap_samples=40", "randomization_trials=50"]
    assert endeavour("compare", *asked[:2], *compared) == 0
    (report,) = (outputs / "comparisons").glob("*/test-greedy/report.md")
    assert report.parents[1].name == "a%2Ftest-greedy-vs-a%2Ftest-greedy-with-b%2Bc"
