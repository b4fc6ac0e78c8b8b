"""What a trained run can be evaluated on beside its own splits, and what a report then says of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.plain_text import PlainTextDataset
from tiny_runs import FAST, make_runs

from commands import endeavour, places, write_lines
from configs import TINY, run_config
from endeavour.evaluation import standard_sets
from endeavour.pipeline.data import prepare
from endeavour.runs.evaluations import Evaluation
from endeavour.runs.run import Run
from untrained import untrained_run

ENGLISH = ["the old dog", "a man sees a tree", "today", "often"]
GERMAN = ["der alte Hund", "ein Mann sieht ein Baum", "heute", "oft"]


@pytest.fixture(scope="module")
def trained(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("test_sets"), parallel_files)


@pytest.fixture
def evaluate(trained: Path) -> Callable[..., int]:
    def command(*arguments: str, data: Path = trained / "data") -> int:
        return endeavour(
            "evaluate",
            f"data_folder={data}",
            f"output_folder={trained}/outputs",
            "device=cpu",
            "evaluation.num_pictures=0",
            *arguments,
        )

    return command


def record(trained: Path, folder: str, run: str = "a") -> dict[str, Any]:
    return json.loads((trained / "outputs" / run / "evaluation" / folder / "scores.json").read_text("utf-8"))


def files(folder: Path, name: str, pairs: list[tuple[str, str]]) -> str:
    english, german = (
        write_lines(folder / f"{name}.{language}", [pair[side] for pair in pairs])
        for side, language in enumerate(("en", "de"))
    )
    return f"+evaluation.files.{name}=[{english},{german}]"


# Standard sets


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """sacreBLEU's, with the text of two sets: news14 in both directions, news14/full from English only."""
    for name, pairs in (("news14", {"en-de": [], "de-en": []}), ("news14/full", {"en-de": []})):
        dataset = PlainTextDataset(name, [], langpairs=pairs)
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setattr(dataset, "_outdir", str(folder))
        monkeypatch.setitem(DATASETS, name, dataset)
        for direction in pairs:
            sides = (ENGLISH, GERMAN) if direction == "en-de" else (GERMAN, ENGLISH)
            for field, side in zip(("src", "ref"), sides, strict=True):
                write_lines(folder / f"{name.replace('/', '_')}.{direction}.{field}", side)
    monkeypatch.setattr(standard_sets, "SACREBLEU_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("run", "direction"), [("a", "en-de"), ("back", "de-en")])
def test_a_standard_set_is_translated_in_the_runs_direction_and_named_in_the_signatures(
    run: str, direction: str, cache: Path, evaluate: Callable[..., int], trained: Path, tmp_path: Path
) -> None:
    assert evaluate(f"run={run}", "evaluation.sacrebleu=[news14]", data=tmp_path / "none") == 0
    folder = trained / "outputs" / run / "evaluation" / "news14-greedy"
    sides = (ENGLISH, GERMAN) if direction == "en-de" else (GERMAN, ENGLISH)
    for column, side in zip(("sources", "references"), sides, strict=True):
        assert (folder / f"{column}.txt").read_text("utf-8").splitlines() == side
    scores = record(trained, "news14-greedy", run)["scores"]
    for score in scores.values():
        assert f"|test:news14|lang:{direction}|" in score["signature"]
    assert scores["bleu"]["signature"] in (folder / "report.md").read_text("utf-8").replace("\\", "")


def test_several_sets_and_files_are_evaluated_together_and_named_by_the_command_that_makes_them_again(
    cache: Path, evaluate: Callable[..., int], trained: Path, tmp_path: Path
) -> None:
    mine = files(tmp_path, "mine", [("today", "heute")])
    assert evaluate("run=a", "evaluation.sacrebleu=[news14,news14/full]", mine) == 0
    assert record(trained, "news14_full-greedy")["model"]["test_set"] == "news14_full"
    assert "test:" not in record(trained, "mine-greedy")["scores"]["bleu"]["signature"]
    run = Run(trained / "outputs", "a")
    assert "evaluation.sacrebleu=[news14/full]" in Evaluation(run, "news14_full-greedy").command
    assert "evaluation.files.mine=" in Evaluation(run, "mine-greedy").command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run=a", "evaluation.sacrebleu=[news99]"], "news99 is none of sacreBLEU's"),
        (["run=back", "evaluation.sacrebleu=[news14/full]"], "news14/full has none for de-en"),
        (["run=a", "evaluation.sacrebleu=[news14]", "FILES"], "news14 would be evaluated as news14"),
    ],
)
def test_sets_that_cannot_be_evaluated(
    arguments: list[str],
    said: str,
    cache: Path,
    evaluate: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = files(tmp_path, "news14", [("today", "heute")])
    assert evaluate(*(own if argument == "FILES" else argument for argument in arguments)) == 2
    assert said in capsys.readouterr().err


# The training text


def test_sentences_that_the_training_text_has_are_counted_and_told(
    evaluate: Callable[..., int],
    trained: Path,
    parallel_files: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (train,) = (item.partition("=[")[2].rstrip("]").split(",") for item in parallel_files if "train" in item)
    known = list(zip(*(Path(file).read_text("utf-8").splitlines() for file in train), strict=True))
    pairs = [*known[:3], (known[3][0], "anders"), ("never seen", "nie")]
    assert evaluate("run=a b", files(tmp_path, "seen", pairs)) == 0
    assert record(trained, "seen-greedy-with-b")["overlap"] == {"sources": 4, "pairs": 3}
    assert "4 of them (80.0%)" in capsys.readouterr().out
    report = trained / "outputs" / "a" / "evaluation" / "seen-greedy-with-b" / "report.md"
    assert "4 of them (80.0%) occur in the training text" in report.read_text("utf-8")

    assert evaluate("run=a", "evaluation.splits=[test]") == 0
    assert record(trained, "test-greedy")["overlap"] == {"sources": 0, "pairs": 0}
    assert "occur" not in capsys.readouterr().out
    alone = files(tmp_path, "alone", pairs)
    assert evaluate("run=a", alone, data=tmp_path / "none") == 0  # in the run's own data folder
    assert record(trained, "alone-greedy")["overlap"] == {"sources": 4, "pairs": 3}
    (trained / "data").rename(trained / "away")
    assert evaluate("run=a", alone) == 0
    (trained / "away").rename(trained / "data")
    assert record(trained, "alone-greedy")["overlap"] is None
    report = trained / "outputs" / "a" / "evaluation" / "alone-greedy" / "report.md"
    assert "not at hand" in report.read_text("utf-8")


# Models without capitals


def test_what_has_no_capitals_is_reported_without_them(
    evaluate: Callable[..., int],
    trained: Path,
    parallel_files: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = [*parallel_files, *TINY, *FAST, *places(trained), "name=small", "tokenizer.lowercase=true"]
    config = run_config(settings)
    data = prepare(config)
    untrained_run(config, data.load_tokenizers(), data_digest=data.content_digest)
    (train,) = (item.partition("=[")[2].rstrip("]").split(",") for item in parallel_files if "train" in item)
    known = list(zip(*(Path(file).read_text("utf-8").splitlines() for file in train), strict=True))
    loud = [(source.upper(), target.upper()) for source, target in known[:3]]
    assert evaluate("run=small", files(tmp_path, "loud", loud)) == 0
    assert record(trained, "loud-greedy", "small")["overlap"] == {"sources": 3, "pairs": 3}
    printed = capsys.readouterr().out
    assert "case:lc" in printed
    assert "case:mixed" not in printed


# Labels


def test_bleu_is_given_for_each_label(evaluate: Callable[..., int], trained: Path, tmp_path: Path) -> None:
    pairs = list(zip(ENGLISH * 10, GERMAN * 10, strict=True))
    labels = write_lines(tmp_path / "domains.txt", ["talk"] * 30 + ["news | x"] * 10)
    asked = [files(tmp_path, "labelled", pairs), f"+evaluation.labels.labelled={labels}"]
    assert evaluate("run=a", "evaluation.splits=[test]", *asked) == 0
    talk, news = record(trained, "labelled-greedy")["bleu_by_label"]["label"]
    assert (talk["label"], talk["sentences"]) == ("talk", 30)
    assert talk["low"] <= talk["bleu"] <= talk["high"]
    assert (news["label"], news["sentences"], news["low"], news["high"]) == ("news | x", 10, None, None)
    assert record(trained, "test-greedy")["bleu_by_label"] == {}
    report = (trained / "outputs" / "a" / "evaluation" / "labelled-greedy" / "report.md").read_text("utf-8")
    assert "BLEU by label" in report
    assert f"news \\| x | 10 | {news['bleu']:.2f} | – |" in report


@pytest.mark.parametrize(
    ("name", "count", "said"),
    [("other", 2, "evaluation.labels.other"), ("test", 2, "2 lines for 30"), ("test", None, "no such file")],
)
def test_labels_that_do_not_belong_to_the_test_set(
    name: str,
    count: int | None,
    said: str,
    evaluate: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels = tmp_path / "labels"
    if count is not None:
        write_lines(labels, ["x"] * count)
    assert evaluate("run=a", "evaluation.splits=[test]", f"+evaluation.labels.{name}={labels}") == 2
    assert said in capsys.readouterr().err


# Altered copies


def test_altered_copies_are_scored_beside_the_set_and_shown_in_its_report(
    evaluate: Callable[..., int], trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [("The old dog.", "Der alte Hund."), ("42", "42"), ("A man sees it!", "Ein Mann sieht es!")]
    named, labels = files(tmp_path, "plain", pairs), write_lines(tmp_path / "labels", ["x", "y", "x"])
    hows = ["upper_case", "no_final_punctuation", "typos"]
    asked = [named, f"+evaluation.labels.plain={labels}", f"evaluation.perturbed=[{','.join(hows)}]"]
    assert evaluate("run=a", *asked) == 0
    shown = capsys.readouterr().out
    folder = trained / "outputs" / "a" / "evaluation"
    texts = {how: folder / f"plain.{how}-greedy" for how in hows}
    assert (texts["upper_case"] / "references.txt").read_text("utf-8").splitlines()[0] == "DER ALTE HUND."
    assert (texts["no_final_punctuation"] / "sources.txt").read_text("utf-8").splitlines()[
        2
    ] == "A man sees it"
    assert (texts["typos"] / "references.txt").read_bytes() == (
        folder / "plain-greedy" / "references.txt"
    ).read_bytes()
    found = record(trained, "plain-greedy")
    report, page = (
        (folder / "plain-greedy" / f"report.{ending}").read_text("utf-8") for ending in ("md", "html")
    )
    for how in hows:
        own = record(trained, f"plain.{how}-greedy")
        assert (own["model"]["test_set"], own["perturbed"]) == (f"plain.{how}", {})
        assert own["bleu_by_label"].keys() == {"label"}
        bleu, chrf = (own["scores"][key]["value"] for key in ("bleu", "chrf"))
        assert found["perturbed"][how]["altered"] == 2
        assert found["perturbed"][how]["scores"]["bleu"] == bleu
        difference = chrf - found["scores"]["chrf"]["value"]
        row = f"| {bleu:.2f} | {bleu - found['scores']['bleu']['value']:+.2f} | {chrf:.2f} | {difference:+.2f} |"
        assert f"{how} | 66.7% {row}" in report.replace("\\", "")
        assert how in page
        assert how in shown
    # A damaged record is made again by the command that it names, and copies are compared as any other set.
    run = Run(trained / "outputs", "a")
    (damaged := texts["typos"] / "scores.json").write_text("{")
    assert "'evaluation.perturbed=[typos]'" in (command := Evaluation(run, "plain.typos-greedy").command)
    assert "evaluation.files.plain=" in command
    damaged.unlink()
    assert evaluate("run=b", *asked) == 0
    assert evaluate("run=a", *asked) == 0
    where = [f"output_folder={trained}/outputs", f"data_folder={trained}/data"]
    few = ["bootstrap_samples=40", "randomization_trials=50"]
    assert endeavour("compare", *where, "runs=a b", "split=plain.typos", *few) == 0
    assert (trained / "outputs" / "comparisons" / "a-vs-b" / "plain.typos-greedy" / "report.md").is_file()


def test_a_run_is_scored_on_copies_after_its_training_and_again_as_trained(
    parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    short = ["training.max_updates=1", "training.validate_every=1", "evaluation.num_pictures=0", *FAST]
    asked = ["augmentation=robust", "tokenizer.vocabulary_size=340", "evaluation.perturbed=[upper_case]"]
    assert endeavour("train", *parallel_files, *folders, *short, *asked, "name=new") == 0
    run = Run(tmp_path / "outputs", "new")
    assert list(run.summary["test"]) == ["test", "test.upper_case"]
    assert run.test_splits == ["test"]
    scores = run.folder / "evaluation" / "test.upper_case-greedy" / "scores.json"
    before = scores.read_bytes()
    scores.unlink()
    assert endeavour("evaluate", *folders[:2], "run=new", "device=cpu") == 0
    assert scores.read_bytes() == before


def test_a_standard_sets_copy_is_not_signed_as_that_set(
    cache: Path, evaluate: Callable[..., int], trained: Path
) -> None:
    assert evaluate("run=a", "evaluation.sacrebleu=[news14]", "evaluation.perturbed=[title_case]") == 0
    assert "test:news14" in record(trained, "news14-greedy")["scores"]["bleu"]["signature"]
    assert "test:" not in record(trained, "news14.title_case-greedy")["scores"]["bleu"]["signature"]


def test_copies_that_cannot_be_made(evaluate: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    for how, said in (("no_umlauts", "German sources"), ("shouting", "evaluation.perturbed.0=shouting")):
        assert evaluate("run=a", f"evaluation.perturbed=[{how}]") == 2
        assert said in capsys.readouterr().err
    assert evaluate("run=back", "evaluation.splits=[test]", "evaluation.perturbed=[no_umlauts]") == 0
