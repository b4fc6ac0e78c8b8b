"""The compare stage on evaluation folders made by hand: what it finds, refuses, prints and writes."""

import gzip
import json
import shlex
import shutil
import sys
import unicodedata
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest
from endeavour.saved_config import save_config
from endeavour.stages.compare import compare
from endeavour.stages.evaluated import eval_command, find_evaluations
from endeavour.stages.prepare import prepare
from endeavour.stages.run_folder import named_folders

from commands import endeavour
from endeavour.__main__ import quote_literal
from endeavour.config import Config, load_config
from endeavour.data.prepared import PreparedData
from endeavour.data.tables import read_tables
from endeavour.errors import UserError
from endeavour.evaluation.comparison import System, compare_systems
from endeavour.evaluation.metrics import score_corpus
from endeavour.evaluation.result import EvaluationResult
from endeavour.evaluation.words import TrainingText
from endeavour.reports.evaluation_report import write_evaluation

SOURCES = [f"the dog sees tree {number} and the man" for number in range(30)]
REFERENCES = [f"der Hund sieht Baum {number} und der Mann" for number in range(30)]
BAD = [line.replace("Hund", "hund").replace("sieht", "findet") for line in REFERENCES]
QUICK = ["compare.bootstrap_samples=40", "compare.randomization_trials=50"]


def evaluated(
    outputs: Path,
    run: str,
    hypotheses: list[str],
    *,
    name: str = "test-beam",
    sources: list[str] = SOURCES,
    references: list[str] = REFERENCES,
    decoding: str | None = None,
) -> Path:
    folder = outputs / run / "evaluation" / name
    result = EvaluationResult(
        title=name,
        sources=sources,
        hypotheses=hypotheses,
        references=references,
        scores=score_corpus(hypotheses, references, bootstrap_samples=40, seed=1),
        decoding={"name": decoding or name.partition("-")[2]},
        model={"run": run},
        seed=1,
    )
    write_evaluation(folder, result)
    return folder


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """Two runs, evaluated on `test` with beam search, the second one better."""
    folder = tmp_path / "outputs"
    evaluated(folder, "a", BAD)
    evaluated(folder, "b", REFERENCES)
    return folder


def as_trained(folder: Path, config: Config, data: PreparedData) -> None:
    """Gives a run what tells on which data it was trained."""
    (folder / "model").mkdir(exist_ok=True)
    save_config(config, folder / "config.yaml")
    for name in ("source.model", "target.model"):
        shutil.copy(data.folder / name, folder / "model")


def run(outputs: Path, *arguments: str) -> int:
    folders = [f"output_folder={outputs}", f"data_folder={outputs.parent / 'data'}"]
    return endeavour("compare", *folders, *QUICK, *arguments)


@pytest.mark.parametrize(
    "text", ["a b/c", "a,b/c", "a, b/c", "[a,b/c]", "[a, b/c]", " a  b/c ", "'a' \"b/c\""]
)
def test_runs_may_be_written_as_one_likes(text: str) -> None:
    typed = load_config([quote_literal(f"runs={text}")]).runs
    assert named_folders("runs", typed, Path("out")) == [Path("out/a"), Path("out/b/c")]


def test_a_name_with_a_space_stands_in_quotes() -> None:
    folders = named_folders("runs", "'my run' \"a,b\" c:\\d", Path("out"))
    assert [folder.name for folder in folders] == ["my run", "a,b", "c:\\d"]


@pytest.mark.parametrize("text", [None, "", "a", "[]"])
def test_fewer_than_two_runs_are_refused(text: str | None) -> None:
    with pytest.raises(UserError, match="two runs or more"):
        find_evaluations(replace(load_config([]), runs=text))


def test_the_comparison_is_printed_and_written_whole(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(outputs, "runs=a b") == 0
    folder = outputs / "comparisons" / "a-vs-b" / "test-beam"
    assert sorted(path.name for path in folder.iterdir()) == ["comparison.json", "report.html", "report.md"]
    record = json.loads((folder / "comparison.json").read_text("utf-8"))
    assert set(record) == {
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
    assert record["systems"] == ["a", "b"]
    assert set(record["rates"]) == {"a", "b", "references"}
    bleu = record["tests"][0]["systems"][1]
    assert bleu["difference"] > 0
    assert bleu["p_bootstrap"] < 0.05
    assert "seed:12345" in record["tests"][0]["bootstrap_signature"]
    printed = capsys.readouterr().out
    for part in ("BLEU", "chrF2", "p bootstrap", "report.html", "Anomalies", "not at hand"):
        assert part in printed
    first = (folder / "comparison.json").read_bytes()
    assert run(outputs, "runs=[a,b]") == 0
    assert (folder / "comparison.json").read_bytes() == first


def test_paths_that_a_shell_completes_are_runs_too(outputs: Path) -> None:
    assert run(outputs, f"runs={outputs}/a/ {outputs}/b/") == 0
    assert (outputs / "comparisons" / "a-vs-b" / "test-beam" / "report.md").is_file()


def test_two_decodings_of_one_run_are_compared_by_their_folders(outputs: Path) -> None:
    evaluated(outputs, "a", REFERENCES, name="test-greedy")
    assert run(outputs, "runs=a a/evaluation/test-greedy") == 0
    folder = outputs / "comparisons" / "a-vs-a%2Ftest-greedy" / "test-beam"
    record = json.loads((folder / "comparison.json").read_text("utf-8"))
    assert record["systems"] == ["a", "a/test-greedy"]
    assert record["tests"][0]["systems"][1]["difference"] > 0


def test_a_run_that_was_evaluated_otherwise_than_the_baseline_is_called_by_that_too(outputs: Path) -> None:
    greedy = evaluated(outputs, "a", BAD, name="test-greedy")
    evaluated(outputs, "b", REFERENCES, name="test-mbr")
    for decoding in ("beam", "mbr"):
        assert run(outputs, f"runs=a/evaluation/{greedy.name} b", f"decoding={decoding}") == 0
        folder = outputs / "comparisons" / f"a%2Ftest-greedy-vs-b%2Ftest-{decoding}" / "test-greedy"
        record = json.loads((folder / "comparison.json").read_text("utf-8"))
        assert record["systems"] == ["a/test-greedy", f"b/test-{decoding}"]
        assert record["title"] == f"a/test-greedy vs. b/test-{decoding}: test-greedy"


def test_a_key_that_no_evaluation_answers_to_is_refused(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outputs / "b" / "evaluation" / "test-beam" / "scores.json"
    record = json.loads(path.read_text("utf-8"))
    record["decoding"]["beam_size"] = 5
    path.write_text(json.dumps(record), "utf-8")
    assert run(outputs, "runs=a b", "decoding.beam_size=5") == 0
    capsys.readouterr()
    assert run(outputs, "runs=a b", "decoding.beam_size=10") == 2
    assert "its evaluation test-beam was made with decoding.beam_size=5, not 10" in capsys.readouterr().err
    assert run(outputs, "runs=a/evaluation/test-beam b/evaluation/test-beam", "split=test") == 2
    assert "split=test: runs=… names evaluations, which have theirs" in capsys.readouterr().err


def test_an_evaluation_that_was_named_itself_is_not_made_again_by_another_command(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    greedy = evaluated(outputs, "a", REFERENCES, name="test-greedy")
    (greedy / "scores.json").write_text("{", "utf-8")
    assert run(outputs, "runs=a a/evaluation/test-greedy") == 2
    assert f"{greedy / 'scores.json'} is damaged: evaluate it again\n" in capsys.readouterr().err


@pytest.mark.parametrize("packed", [False, True])
def test_translations_made_elsewhere_are_compared_as_those_of_a_run_are(outputs: Path, packed: bool) -> None:
    content = "".join(f"{line}\n" for line in REFERENCES).encode()
    file = outputs.parent / ("fairseq.de.gz" if packed else "fairseq.de")
    file.write_bytes(gzip.compress(content) if packed else content)
    assert run(outputs, "runs=a b") == 0
    assert run(outputs, "runs=a", f"systems={file}") == 0
    ours, theirs = (
        json.loads((outputs / "comparisons" / name / "test-beam" / "comparison.json").read_text("utf-8"))
        for name in (
            "a-vs-b",
            f"a-vs-{quote(str(file), safe='')}@{sha256(file.read_bytes()).hexdigest()[:8]}",
        )
    )
    assert theirs["systems"] == ["a", str(file)]
    # All figures are the same: only names and settings differ.
    for record, name in ((ours, "b"), (theirs, str(file))):
        del record["title"], record["settings"], record["systems"], record["notes"]
        record["rates"]["other"] = record["rates"].pop(name)
    assert json.dumps(ours).replace('"b"', '"other"') == json.dumps(theirs).replace(
        json.dumps(str(file)), '"other"'
    )


def test_translations_made_elsewhere_stand_beside_several_runs(
    outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(outputs.parent)
    # As other programs write lines: with CR, without the last line's end, with a separator that is no line end.
    Path("x.de").write_bytes("\r\n".join(BAD).encode())
    Path("by hand.de").write_text("\n".join(["", "Hund\u2028Mann", *REFERENCES[2:]]) + "\n", "utf-8")
    assert run(outputs, "runs=a b", "systems=x.de 'by hand.de'") == 0
    (path,) = outputs.glob("comparisons/*/test-beam/comparison.json")
    record = json.loads(path.read_text("utf-8"))
    assert record["systems"] == ["a", "b", "x.de", "by hand.de"]
    bleu = {score["system"]: score["value"] for score in record["tests"][0]["systems"]}
    assert bleu["x.de"] == bleu["a"] < bleu["by hand.de"] < bleu["b"]
    assert record["settings"]["a"]
    assert not record["settings"]["x.de"]
    assert f"x.de: SHA-256 {sha256(Path('x.de').read_bytes()).hexdigest()}" in record["notes"]


def test_damaged_scores_are_named_with_what_makes_them_anew(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for content in ("{", "{}", "[]"):
        (outputs / "b" / "evaluation" / "test-beam" / "scores.json").write_text(content, "utf-8")
        assert run(outputs, "runs=a b") == 2
        assert "scores.json is damaged: run `endeavour eval name=b" in capsys.readouterr().err


def test_no_two_comparisons_share_a_folder(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in ("x/y", "x_y"):
        evaluated(outputs, one, REFERENCES)
        assert run(outputs, f"runs=a {one}") == 0
    file = outputs.parent / "b"  # called as a run is, and later with other content
    for translations in (BAD, REFERENCES):
        file.write_text("".join(f"{line}\n" for line in translations), "utf-8")
        assert run(outputs, "runs=a", f"systems={file}") == 0
    monkeypatch.chdir(outputs.parent)
    assert run(outputs, "runs=a b") == run(outputs, "runs=a", "systems=b") == 0
    assert len(list((outputs / "comparisons").iterdir())) == 6


def test_the_command_that_would_help_decodes_as_the_comparison_wants_it(
    outputs: Path, parallel_files: list[str], folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (outputs / "b" / "evaluation" / "test-beam").rename(outputs / "b" / "evaluation" / "test-greedy")
    own = [*parallel_files, *folders, "decoding=mbr"]
    save_config(load_config(own), outputs / "b" / "config.yaml")
    assert run(outputs, "runs=a b", "split=test") == 2
    keys = "decoding.name=beam decoding.beam_size=5 decoding.num_hypotheses=1 decoding.utility=null"
    assert keys in capsys.readouterr().err
    assert run(outputs, "runs=a b", "split=test", "decoding.beam_size=9") == 2
    command = capsys.readouterr().err
    assert "decoding.beam_size=9" in command
    assert keys.replace(" decoding.beam_size=5", "") in command
    assert run(outputs, "runs=a b", "split=validation", "decoding=greedy") == 2
    assert "decoding=greedy 'evaluation.splits=[validation]'" in capsys.readouterr().err


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
        config=load_config(QUICK).compare,
    )
    assert comparison.bleu_by_rarest_source_word is not None
    assert [part.label for part in comparison.bleu_by_rarest_source_word] == ["5–99"]
    assert comparison.rates["one"].unseen_characters == 0
    assert comparison.word_f1_by_frequency is not None
    assert [(part.count, part.values) for part in comparison.word_f1_by_frequency] == [(1, [100, 100])]


def test_split_and_decoding_choose_the_evaluation(outputs: Path) -> None:
    for name in ("validation-greedy", "news-greedy"):
        for one in ("a", "b"):
            evaluated(outputs, one, REFERENCES, name=name)
    assert run(outputs, "runs=a b", "decoding=greedy") == 0
    assert run(outputs, "runs=a b", "decoding=greedy", "split=validation") == 0
    assert sorted(path.name for path in (outputs / "comparisons" / "a-vs-b").iterdir()) == [
        "news-greedy",
        "validation-greedy",
    ]


def test_a_decoding_whose_name_ends_in_anothers_is_another(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for one in ("a", "b"):
        shutil.rmtree(outputs / one / "evaluation" / "test-beam")
        evaluated(outputs, one, REFERENCES, name="test-my-beam", decoding="my-beam")
    assert run(outputs, "runs=a b") == 2
    assert "has no evaluation *-beam" in capsys.readouterr().err
    assert run(outputs, "runs=a b", "decoding.name=my-beam") == 0


def test_words_are_counted_in_the_training_text_where_it_is(
    parallel_files: list[str], folders: list[str], outputs: Path
) -> None:
    folder = outputs / "comparisons" / "a-vs-b" / "test-beam"
    config = load_config([*parallel_files, *folders])
    data = prepare(config)
    as_trained(outputs / "a", load_config([*parallel_files, *folders, "direction=de-en"]), data)
    assert run(outputs, "runs=a b") == 0  # the same joint vocabulary, but the sides are swapped
    assert "`endeavour eval name=a output" in (folder / "report.md").read_text("utf-8").replace("\\", "")
    assert json.loads((folder / "comparison.json").read_text("utf-8"))["word_f1_by_frequency"] is None

    as_trained(outputs / "a", config, data)
    pairs = [pair for batch in read_tables(data.folder / "text" / "train") for pair in batch]
    assert len(pairs) == data.splits["train"]["pairs"]
    assert run(outputs, "runs=a b") == 0
    record = json.loads((folder / "comparison.json").read_text("utf-8"))
    assert {part["label"] for part in record["bleu_by_rarest_source_word"]} == {"0"}  # the numbers
    assert sum(part["count"] for part in record["word_f1_by_frequency"]) == 8 * 30
    assert record["rates"]["b"]["unseen_characters"] == 1  # the numbers again


def test_an_evaluation_from_before_it_kept_its_references_is_read_beside_the_prepared_data(
    parallel_files: list[str], folders: list[str], outputs: Path
) -> None:
    config = load_config([*parallel_files, *folders])
    data = prepare(config)
    references = data.lines("test", "target")
    for one, hypotheses in (("a", ["nichts"] * 30), ("b", references)):
        as_trained(outputs / one, config, data)
        folder = evaluated(
            outputs, one, hypotheses, sources=data.lines("test", "source"), references=references
        )
        for name in ("sources.txt", "references.txt"):
            (folder / name).unlink()
    assert run(outputs, "runs=a b") == 0
    record = outputs / "comparisons" / "a-vs-b" / "test-beam" / "comparison.json"
    assert json.loads(record.read_text("utf-8"))["tests"][0]["systems"][1]["value"] == pytest.approx(100)


def test_many_long_names_get_a_folder_all_the_same(outputs: Path) -> None:
    names = [f"{'x' * 60}{number}" for number in range(4)]
    for name in names:
        evaluated(outputs, name, BAD)
    assert run(outputs, f"runs={' '.join(names)}") == 0
    (folder,) = (outputs / "comparisons").iterdir()
    assert folder.name.startswith("4-systems-")


def _error(monkeypatch: pytest.MonkeyPatch, outputs: Path, *arguments: str) -> str:
    overrides = [f"output_folder={outputs}", *QUICK, *map(quote_literal, arguments)]
    monkeypatch.setattr(sys, "argv", ["endeavour compare", *overrides])
    with pytest.raises(UserError) as caught:
        compare(load_config(overrides))
    assert not (outputs / "comparisons").exists()
    return str(caught.value)


def test_a_run_that_is_not_there(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = _error(monkeypatch, outputs, "runs=a c")
    assert message == f"there is no run c in {outputs} (evaluated runs: a, b)"


def test_an_evaluation_that_is_not_there_with_the_command_that_makes_it(
    outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = _error(monkeypatch, outputs, "runs=a b", "split=news", "decoding=greedy")
    assert message == (
        f"{outputs / 'a'} has no evaluation news-greedy (there is: test-beam): run "
        f"`endeavour eval name=a output_folder={outputs} decoding=greedy 'evaluation.splits=[news]'`"
    )
    message = _error(monkeypatch, outputs, "runs=a b", "decoding=greedy")
    assert message == (
        f"{outputs / 'a'} has no evaluation *-greedy (there is: test-beam): run "
        f"`endeavour eval name=a output_folder={outputs} decoding=greedy`"
    )


def test_no_split_in_common(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(outputs, "c", REFERENCES, name="news-beam")
    message = _error(monkeypatch, outputs, "runs=a c")
    assert message == (
        "the runs were evaluated on no split in common (a: test; c: news): choose one with split=…"
    )


def test_other_references(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = [*REFERENCES[:4], "anders", *REFERENCES[5:]]
    evaluated(outputs, "c", REFERENCES, references=changed)
    message = _error(monkeypatch, outputs, "runs=a c")
    assert message == (
        "a and c were evaluated on different references (line 5 differs): "
        "only outputs for the same test set can be compared"
    )
    evaluated(outputs, "c", REFERENCES[:9], sources=SOURCES[:9], references=REFERENCES[:9])
    assert "different sources (30 and 9 lines)" in _error(monkeypatch, outputs, "runs=a c")


def test_neither_references_nor_prepared_data(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = outputs / "a" / "evaluation" / "test-beam" / "sources.txt"
    path.unlink()
    message = _error(monkeypatch, outputs, "runs=a b")
    assert message == (
        f"{path} is missing, and so are the prepared data: run "
        f"`endeavour eval name=a output_folder={outputs}`"
    )


def test_a_line_too_few(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = outputs / "b" / "evaluation" / "test-beam" / "hypotheses.txt"
    path.write_text("".join(f"{line}\n" for line in REFERENCES[:-1]))
    message = _error(monkeypatch, outputs, "runs=a b")
    assert message == (
        f"{path} has 29 lines for 30 references: run `endeavour eval name=b output_folder={outputs}`"
    )


def test_files_of_translations_that_cannot_be_compared(
    outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(outputs.parent)
    for name in ("few.de", "b", "references"):
        Path(name).write_text("".join(f"{line}\n" for line in REFERENCES[:-1]), "utf-8")
    assert _error(monkeypatch, outputs, "runs=a", "systems=few.de") == (
        "few.de has 29 lines for 30 references; line n of each must belong to the same sentence"
    )
    assert _error(monkeypatch, outputs, "runs=a", "systems=none.de") == "none.de: no such file"
    for clash in ("b", "references"):
        message = _error(monkeypatch, outputs, "runs=a b", f"systems={clash}")
        assert message == f"systems={clash}: something else is called {clash} here; rename the file"
    message = _error(monkeypatch, outputs, "runs=a", "systems=few.de ./few.de")
    assert message == "systems=few.de ./few.de: ./few.de is named twice"
    for arguments in (["systems=few.de"], ["runs=a", "systems=[]"], ["runs=a", "systems= "]):
        assert "two runs or more" in _error(monkeypatch, outputs, *arguments)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ("a a", "runs=a a: a is named twice"),
        ("a ../a", "runs='../a' must name a folder below output_folder"),
        ("a /etc", "runs='/etc' must name a folder below output_folder"),
        ("a 'b", "runs=a 'b: a quote that is not closed"),
    ],
)
def test_names_that_name_nothing(
    runs: str, message: str, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _error(monkeypatch, outputs, f"runs={runs}").startswith(message)


def test_nothing_evaluated_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = _error(monkeypatch, tmp_path / "nowhere", "runs=a b")
    assert message == f"there is no run a in {tmp_path / 'nowhere'} (no run was evaluated yet)"


@pytest.mark.parametrize(
    ("own", "typed"), [("beam", []), ("mbr", ["decoding.name=beam", "decoding.beam_size=5"])]
)
def test_the_command_that_is_named_changes_the_decoding_of_a_run_only_where_another_is_wanted(
    own: str, typed: list[str], outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_config(
        load_config([f"decoding={own}", "decoding.length_penalty=1.3"]), outputs / "a" / "config.yaml"
    )
    monkeypatch.setattr(sys, "argv", ["endeavour compare", f"output_folder={outputs}"])
    command = eval_command(outputs / "a", load_config([f"output_folder={outputs}"]))
    named = [word for word in shlex.split(command) if word.startswith("decoding")]
    assert set(typed) <= set(named)
    assert bool(named) == bool(typed)


def test_a_run_that_is_called_as_the_references_are(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(outputs, "references", BAD)
    assert "rename that run" in _error(monkeypatch, outputs, "runs=a references")
