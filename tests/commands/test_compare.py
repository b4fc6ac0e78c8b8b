"""Comparing evaluation folders made by hand: what is refused, printed and written."""

import gzip
import json
import re
import shutil
import unicodedata
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from commands import endeavour, write_lines
from configs import run_config
from endeavour.data.tables import read_tables
from endeavour.evaluation.comet import COMET_FILE
from endeavour.evaluation.comparison import CompareConfig, System, compare_systems
from endeavour.evaluation.metrics import score_corpus
from endeavour.evaluation.result import EvaluationResult
from endeavour.evaluation.words import TrainingText
from endeavour.pipeline.data import prepare
from endeavour.reports.evaluation_report import write_evaluation
from endeavour.runs.config import save_config
from endeavour.runs.run import WEIGHTS
from endeavour.storage import DIGESTS, write_json

SOURCES = [f"the dog sees tree {number} and the man" for number in range(30)]
REFERENCES = [f"der Hund sieht Baum {number} und der Mann" for number in range(30)]
BAD = [line.replace("Hund", "hund").replace("sieht", "findet") for line in REFERENCES]


def evaluated(
    outputs: Path,
    run: str,
    hypotheses: list[str],
    *,
    name: str = "test-beam",
    sources: list[str] = SOURCES,
    references: list[str] = REFERENCES,
    lowercase: bool = False,
) -> Path:
    """An evaluation's folder in that of a run, which is given a config if it has none."""
    folder = outputs / run / "evaluation" / name
    test_set, _, label = name.partition("-")
    result = EvaluationResult(
        title=name,
        sources=sources,
        hypotheses=hypotheses,
        references=references,
        scores=score_corpus(hypotheses, references, bootstrap_samples=40, seed=1),
        decoding={"name": label},
        model={"run": run, "test_set": test_set},
        bootstrap_samples=40,
        seed=1,
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_evaluation(folder, result, [])
    if not (outputs / run / "config.yaml").is_file():
        config = run_config([f"name={run}", f"tokenizer.lowercase={lowercase}"])
        save_config(config, outputs / run / "config.yaml")
    return folder


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """Two runs, evaluated on `test` with beam search, the second one better."""
    folder = tmp_path / "outputs"
    evaluated(folder, "a", BAD)
    evaluated(folder, "b", REFERENCES)
    return folder


def run(outputs: Path, *arguments: str) -> int:
    folders = [f"output_folder={outputs}", f"data_folder={outputs.parent / 'data'}"]
    return endeavour("compare", *folders, "bootstrap_samples=40", "randomization_trials=50", *arguments)


def record(outputs: Path, systems: str, evaluation: str = "test-beam") -> dict[str, Any]:
    folder = outputs / "comparisons" / systems / evaluation
    return json.loads((folder / "comparison.json").read_text("utf-8"))


# What is written


def test_with_standard_output_closed_it_is_written_all_the_same(
    outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert run(outputs, "runs=a b") == 0
    assert record(outputs, "a-vs-b")["systems"] == ["a", "b"]


def test_the_comparison_is_printed_and_written_whole(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(outputs, "runs=a b") == 0
    folder = outputs / "comparisons" / "a-vs-b" / "test-beam"
    assert sorted(path.name for path in folder.iterdir()) == ["comparison.json", "report.html", "report.md"]
    written = json.loads((folder / "comparison.json").read_text("utf-8"))
    assert set(written) == {
        "title",
        "systems",
        "sentences",
        "tests",
        "bleu_by_source_length",
        "bleu_by_rarest_source_word",
        "word_f1_by_frequency",
        "pairwise",
        "rates",
        "anomalies",
        "settings",
        "notes",
    }
    assert written["systems"] == ["a", "b"]
    assert set(written["rates"]) == {"a", "b", "references"}
    bleu = written["tests"][0]["systems"][1]
    assert bleu["difference"] > 0
    assert bleu["p_bootstrap"] < 0.05
    assert "seed:12345" in written["tests"][0]["bootstrap_signature"]
    printed = capsys.readouterr().out
    for part in ("BLEU", "chrF2", "p bootstrap", "report.html", "Anomalies", "not at hand"):
        assert part in printed
    first = (folder / "comparison.json").read_bytes()
    assert run(outputs, "runs=[a,b]") == 0
    assert (folder / "comparison.json").read_bytes() == first


def test_evaluations_are_called_by_what_tells_them_apart(outputs: Path) -> None:
    evaluated(outputs, "a", REFERENCES, name="test-greedy")
    for runs, names in (
        ("a a/evaluation/test-greedy", ["a/test-beam", "a/test-greedy"]),
        ("a/evaluation/test-greedy b", ["a", "b/test-beam"]),
    ):
        assert run(outputs, f"runs={runs}", "split=test") == 0
        folder = "-vs-".join(name.replace("/", "%2F") for name in names)
        first = "test-greedy" if names[0] == "a" else "test-beam"
        written = record(outputs, folder, first)
        assert written["systems"] == names
        assert written["title"] == f"{' vs. '.join(names)}: {first}"


def test_an_evaluation_is_not_compared_with_itself(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(outputs, "runs=a a/evaluation/test-beam") == 2
    assert "same evaluation" in capsys.readouterr().err


def test_split_and_decoding_choose_the_evaluation(outputs: Path) -> None:
    for name in ("validation-greedy", "news-greedy"):
        for one in ("a", "b"):
            evaluated(outputs, one, REFERENCES, name=name)
    assert run(outputs, "runs=a b", "decoding_name=greedy") == 0
    assert run(outputs, "runs=a b", "decoding_name=greedy", "split=validation") == 0
    written = sorted(path.name for path in (outputs / "comparisons" / "a-vs-b").iterdir())
    assert written == ["news-greedy", "validation-greedy"]


def test_no_two_comparisons_share_a_folder(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in ("x/y", "x_y"):
        evaluated(outputs, one, REFERENCES)
        assert run(outputs, f"runs=a {one}") == 0
    file = outputs.parent / "b"  # called as a run is, and later with other content
    for translations in (BAD, REFERENCES):
        assert run(outputs, "runs=a", f"systems={write_lines(file, translations)}") == 0
    monkeypatch.chdir(outputs.parent)
    assert run(outputs, "runs=a b") == run(outputs, "runs=a", "systems=b") == 0
    assert len(list((outputs / "comparisons").iterdir())) == 6


def test_many_long_names_get_a_folder_all_the_same(outputs: Path) -> None:
    names = [f"{'x' * 60}{number}" for number in range(4)]
    for name in names:
        evaluated(outputs, name, BAD)
    assert run(outputs, f"runs={' '.join(names)}") == 0
    (folder,) = (outputs / "comparisons").iterdir()
    assert folder.name.startswith("4-systems-")


# Translations made elsewhere


@pytest.mark.parametrize("packed", [False, True])
def test_translations_made_elsewhere_are_compared_as_those_of_a_run_are(outputs: Path, packed: bool) -> None:
    file = write_lines(outputs.parent / "fairseq.de", REFERENCES)
    if packed:
        file = file.with_suffix(".de.gz")
        file.write_bytes(gzip.compress(file.with_suffix("").read_bytes()))
    assert run(outputs, "runs=a b") == run(outputs, "runs=a", f"systems={file}") == 0
    (folder,) = (outputs / "comparisons").glob("a-vs-*@*")
    ours, theirs = record(outputs, "a-vs-b"), record(outputs, folder.name)
    assert theirs["systems"] == ["a", str(file)]
    # All figures are the same: only names and settings differ.
    for written in (ours, theirs):
        del written["title"], written["settings"], written["notes"]
    assert json.dumps(ours) == json.dumps(theirs).replace(json.dumps(str(file)), '"b"')


def test_translations_made_elsewhere_stand_beside_several_runs(
    outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(outputs.parent)
    # As other programs write lines: with CR, without the last line's end, with a separator that is no line end.
    Path("x.de").write_bytes("\r\n".join(BAD).encode())
    Path("by hand.de").write_text("\n".join(["", "Hund\u2028Mann", *REFERENCES[2:]]) + "\n", "utf-8")
    assert run(outputs, "runs=a b", "systems=x.de 'by hand.de'") == 0
    (path,) = outputs.glob("comparisons/*/test-beam/comparison.json")
    written = json.loads(path.read_text("utf-8"))
    assert written["systems"] == ["a", "b", "x.de", "by hand.de"]
    bleu = {score["system"]: score["value"] for score in written["tests"][0]["systems"]}
    assert bleu["x.de"] == bleu["a"] < bleu["by hand.de"] < bleu["b"]
    assert written["settings"]["a"]
    assert not written["settings"]["x.de"]
    assert f"x.de: SHA-256 {sha256(Path('x.de').read_bytes()).hexdigest()}" in written["notes"]


# COMET


@pytest.mark.parametrize(
    ("comet", "left_out"),
    [
        ("--", None),
        ("rr", ""),
        ("-r", f"a (no {COMET_FILE}), b (with references)"),
        ("rs", "a (with references), b (without references)"),
        ("rsr-", f"b (without references), d (no {COMET_FILE})"),
    ],
)
def test_who_is_not_compared_by_comet_is_named_with_the_reason(
    comet: str, left_out: str | None, outputs: Path
) -> None:
    """Of runs a, b …: none, one with references (r), one of sources alone (s)."""
    for name, kind in zip("abcd", comet, strict=False):
        folder = evaluated(outputs, name, BAD)
        if kind != "-":
            segments = [
                {"src": src, "mt": mt, "COMET": 0.5} | ({"ref": ref} if kind == "r" else {})
                for src, mt, ref in zip(SOURCES, BAD, REFERENCES, strict=True)
            ]
            write_json(folder / COMET_FILE, {"file": segments})
    assert run(outputs, f"runs={' '.join('abcd'[: len(comet)])}") == 0
    (path,) = outputs.glob("comparisons/*/test-beam/comparison.json")
    written = json.loads(path.read_text("utf-8"))
    notes = [note for note in written["notes"] if "COMET" in note]
    tested = len(written["tests"]) == 3
    if left_out is None:
        assert not notes
    elif left_out:
        assert notes[-1].endswith(f": {left_out}.")
    assert len(notes) == tested + bool(left_out)


# The training text


def test_text_is_set_against_the_training_text_in_its_normal_form() -> None:
    training = TrainingText()
    training.add([("Houses", "Häuser")] * 9)
    decomposed = unicodedata.normalize("NFD", "Häuser")
    system = System("one", [decomposed], {})
    comparison = compare_systems(
        [system, system],
        title="",
        sources=["Houses\u00ad"],
        references=[decomposed],
        training=training,
        config=CompareConfig(bootstrap_samples=40, randomization_trials=50, seed=1, sentences=1),
        notes=[],
        lowercase=False,
    )
    assert comparison.bleu_by_rarest_source_word is not None
    assert [part.label for part in comparison.bleu_by_rarest_source_word] == ["5–99"]
    assert comparison.rates["one"].unseen_characters == 0
    assert comparison.word_f1_by_frequency is not None
    assert [(part.count, part.values) for part in comparison.word_f1_by_frequency] == [(1, [100, 100])]


def test_words_are_counted_in_the_training_text_where_it_is(
    parallel_files: list[str], folders: list[str], outputs: Path
) -> None:
    config = run_config([*parallel_files, *folders])
    data = prepare(config)
    write_json(outputs / "a" / "summary.json", {"data_digest": "of other data"})
    assert run(outputs, "runs=a b") == 0
    written = record(outputs, "a-vs-b")
    assert written["word_f1_by_frequency"] is None
    assert any("endeavour evaluate run=a" in note for note in written["notes"])

    write_json(outputs / "a" / "summary.json", {"data_digest": data.content_digest})
    pairs = [pair for batch in read_tables(data.folder / "text" / "train") for pair in batch]
    assert len(pairs) == data.splits["train"]["pairs"]
    assert run(outputs, "runs=a b") == 0
    written = record(outputs, "a-vs-b")
    assert {part["label"] for part in written["bleu_by_rarest_source_word"]} == {"0"}  # the numbers
    assert sum(part["count"] for part in written["word_f1_by_frequency"]) == 8 * 30
    assert written["rates"]["b"]["unseen_characters"] == 1  # the numbers again

    # In the run's own data folder it is found from elsewhere.
    save_config(config, outputs / "a" / "config.yaml")
    (outputs / "comparisons" / "a-vs-b" / "test-beam" / "comparison.json").unlink()
    assert run(outputs, "runs=a b", f"data_folder={outputs}") == 0
    assert record(outputs, "a-vs-b") == written


def test_the_output_folder_may_have_any_name(outputs: Path) -> None:
    renamed = outputs.rename(outputs.parent / "evaluation")
    assert run(renamed, "runs=a b") == 0
    assert run(renamed, "runs=a/evaluation/test-beam b") == 0


# What is refused


@pytest.fixture
def refused(outputs: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function of overrides to the message by which they are refused."""

    def message(*arguments: str) -> str:
        capsys.readouterr()
        assert run(outputs, *arguments) == 2
        assert not (outputs / "comparisons").exists()
        return capsys.readouterr().err

    return message


def test_evaluations_of_other_text(outputs: Path, refused: Callable[..., str]) -> None:
    changed = [*REFERENCES[:4], "anders", *REFERENCES[5:]]
    evaluated(outputs, "c", REFERENCES, references=changed)
    assert "different references (line 5 differs)" in refused("runs=a c")
    evaluated(outputs, "c", REFERENCES[:9], sources=SOURCES[:9], references=REFERENCES[:9])
    assert "different sources (30 and 9 lines)" in refused("runs=a c")


def test_an_ensembles_evaluation_is_not_compared_once_one_of_its_runs_has_other_weights(
    outputs: Path, refused: Callable[..., str]
) -> None:
    folder = evaluated(outputs, "a", BAD, name="test-beam-with-b")
    record = json.loads((folder / "scores.json").read_text("utf-8"))
    record["model"]["ensemble_weights_sha256"] = {"b": "earlier"}
    write_json(folder / "scores.json", record)
    named = ["compare", "runs=a a/evaluation/test-beam-with-b", f"output_folder={outputs}"]
    assert endeavour(*named) == 0  # whose weights nobody knows
    shutil.rmtree(outputs / "comparisons")
    (outputs / "b" / "model").mkdir()
    write_json(outputs / "b" / "model" / DIGESTS, {WEIGHTS: "new"})
    message = refused("runs=a a/evaluation/test-beam-with-b")
    assert re.search(r"earlier weights of .*b, .* `endeavour evaluate 'run=a b' .*`", message)
    write_json(outputs / "b" / "model" / DIGESTS, {WEIGHTS: "earlier"})
    assert endeavour(*named) == 0


def test_an_evaluation_that_is_not_whole_is_named_with_what_makes_it_anew(
    outputs: Path, refused: Callable[..., str]
) -> None:
    folder = outputs / "b" / "evaluation" / "test-beam"
    command = re.compile(r"run `endeavour evaluate run=b .*`")
    write_lines(folder / "hypotheses.txt", REFERENCES[:-1])
    message = refused("runs=a b")
    assert f"{folder / 'hypotheses.txt'} has 29 lines for 30" in message
    assert command.search(message)
    (folder / "sources.txt").unlink()
    message = refused("runs=a b")
    assert f"{folder / 'sources.txt'} is missing" in message
    assert command.search(message)


def test_files_of_translations_that_cannot_be_compared(
    outputs: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(outputs.parent)
    for name in ("few.de", "b", "references"):
        write_lines(Path(name), REFERENCES[:-1])
    assert "few.de has 29 lines for 30" in refused("runs=a", "systems=few.de")
    assert "none.de: no such file" in refused("runs=a", "systems=none.de")
    for clash in ("b", "references"):
        assert f"called {clash} here" in refused("runs=a b", f"systems={clash}")
    assert "./few.de is named twice" in refused("runs=a", "systems=few.de ./few.de")
    for arguments in (["systems=few.de"], ["runs=a", "systems=[]"], ["runs=a", "systems= "]):
        assert "two runs or more" in refused(*arguments)


def test_a_run_that_is_called_as_the_references_are(outputs: Path, refused: Callable[..., str]) -> None:
    evaluated(outputs, "references", BAD)
    assert "rename that run" in refused("runs=a references")


def test_with_a_model_that_writes_no_capitals_all_are_compared_in_small_letters(outputs: Path) -> None:
    evaluated(outputs, "small", [line.lower() for line in REFERENCES], lowercase=True)
    assert run(outputs, "runs=small b") == 0
    written = record(outputs, "small-vs-b")
    (by_length,) = written["bleu_by_source_length"]
    assert by_length["values"] == pytest.approx([100, 100])
    (pair,) = written["pairwise"]
    assert pair["equal"] == len(REFERENCES)
    assert any(note.endswith("written by small.") for note in written["notes"])
    signatures = [
        test[f"{how}_signature"] for test in written["tests"] for how in ("bootstrap", "randomization")
    ]
    assert len(signatures) == 4
    assert all("|case:lc|" in signature for signature in signatures)
