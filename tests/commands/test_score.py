"""`score`: one line for each pair, with the model's own log-probability of it, from wherever the pairs come."""

import io
import json
import math
import sys
from pathlib import Path

import pytest

from commands import endeavour, write_lines
from configs import run_config
from endeavour.commands.score import ScoreRoot, score
from endeavour.config import load_config
from endeavour.errors import UserError
from untrained import TINIEST, by_hand, small_tokenizers, untrained_runs

PAIRS = [("Satz 1 hat Worte.", "Satz 2 hat  Worte."), ("Ja!", ""), ("", "Worte"), ("wie 7", "hat 😀")]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    tokenizers = small_tokenizers(run_config(TINIEST))
    short = ["model.positions=learned", "model.max_length=9"]
    runs = {"one": [], "two": [], "back": ["direction=de-en"], "short": short}
    untrained_runs(folder, tokenizers, runs | {"restorer": ["augmentation.denoising=1"]})
    return folder


def scores(root: Path, *more: object, run: str = "one") -> list[list[str]]:
    output = root / "scores"
    overrides = [f"run='{run}'", f"output_folder={root}", "device=cpu", f"output={output}", *map(str, more)]
    score(load_config("score", ScoreRoot, overrides))
    return [line.split("\t") for line in output.read_text("utf-8").splitlines()]


def test_each_pair_has_the_models_log_probability(root: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text(
        "".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in PAIRS), "utf-8"
    )
    found = scores(root, f"pairs=[{tmp_path / 'pairs.jsonl'}]", "pieces=true")
    for (source, target), (total, mean, pieces) in zip(PAIRS, found, strict=True):
        values = by_hand(root, "one", source, target)
        assert float(total) == pytest.approx(sum(values), abs=1e-3)
        assert float(mean) == pytest.approx(sum(values) / len(values), abs=1e-3)
        named = [piece.rpartition("=") for piece in pieces.split(" ")]
        assert [float(value) for _, _, value in named] == pytest.approx(values, abs=1e-3)
        assert named[-1][0] == "</s>"


def test_the_files_have_english_first_and_the_run_its_own_direction(root: Path, tmp_path: Path) -> None:
    for side, lines in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        write_lines(tmp_path / f"a.{side}", lines)
    found = scores(root, f"pairs=[{tmp_path / 'a.en'},{tmp_path / 'a.de'}]", run="back")
    for (english, german), (total, _) in zip(PAIRS, found, strict=True):
        assert float(total) == pytest.approx(sum(by_hand(root, "back", german, english)), abs=1e-3)


def test_what_is_read_is_never_the_output(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tsv").write_text("en\tde\nJa\tJa\n", "utf-8")
    words = [f"pairs=[{tmp_path / 'a.tsv'}]", f"output={tmp_path / 'a.tsv'}", f"output_folder={root}"]
    assert endeavour("score", "run=one", "device=cpu", *words) == 2
    assert "a.tsv" in capsys.readouterr().err
    assert (tmp_path / "a.tsv").read_text("utf-8") == "en\tde\nJa\tJa\n"


def test_a_run_that_restores_masked_sentences_scores_no_translations(root: Path) -> None:
    with pytest.raises(UserError, match="restorer has learnt to restore masked sentences, not to translate"):
        scores(root, "text=Ja", "translation=Ja", run="one restorer")


def test_an_ensemble_scores_with_the_mean_of_the_probabilities(root: Path) -> None:
    typed = ["text='Ja!'", "translation='Satz 1'"]
    (total, _), *_ = scores(root, *typed, run="one two")
    each = [by_hand(root, name, "Ja!", "Satz 1") for name in ("one", "two")]
    mean = sum(math.log(sum(map(math.exp, row)) / 2) for row in zip(*each, strict=True))
    assert float(total) == pytest.approx(mean, abs=1e-3)


def test_standard_input_and_the_perplexity(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()), encoding="ascii"))
    values = [by_hand(root, "one", *pair) for pair in PAIRS]
    assert [float(total) for total, _ in scores(root)] == pytest.approx(list(map(sum, values)), abs=1e-3)
    flat = [value for row in values for value in row]
    said = capsys.readouterr().err.split()
    assert float(said[said.index("perplexity") + 1]) == pytest.approx(
        math.exp(-sum(flat) / len(flat)), rel=1e-3
    )


def test_a_pair_that_does_not_fit_has_no_score(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "Satz hat Worte wie Satz hat Worte wie Satz hat Worte."
    assert scores(root, f"text='{long}'", "translation=Ja", run="short") == [["nan", "nan"]]
    assert scores(root, "text=Ja", f"translation='{long}'", run="short") == [["nan", "nan"]]
    assert scores(root, "text=Ja", "translation=Ja", run="short")[0][0] != "nan"
    assert "without a score: 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "typed", "named"),
    [
        (["text=a"], "", "translation"),
        (["translation=a"], "", "text"),
        (["text=a", "translation=b", "pairs=[x.tsv]"], "", "pairs"),
        (["pairs=[missing.tsv]"], "", "missing.tsv"),
        (["pairs=[empty.en,empty.de]"], "", "empty.en,empty.de]: no pair"),
        (["pairs=[empty.tsv]", "output=scores"], "", "empty.tsv]: no pair"),
        ([], "", "standard input: no pair"),
        ([], "a\tb\nno tab\n", "line 2"),
        ([], "a\tb\tc\n", "line 1"),
    ],
)
def test_what_is_no_pair_is_refused(
    root: Path,
    words: list[str],
    typed: str,
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()), encoding="ascii"))
    monkeypatch.chdir(tmp_path)
    for name, text in (("empty.en", ""), ("empty.de", ""), ("empty.tsv", "en\tde\n")):
        Path(name).write_text(text)
    assert endeavour("score", "run=one", f"output_folder={root}", "device=cpu", *words) == 2
    assert named in capsys.readouterr().err
    assert not Path("scores").exists()
