"""`filter`: the pairs that two runs find probable, scored once, chosen from as often as one likes."""

import json
import math
import os
from pathlib import Path

import pytest

from commands import endeavour
from configs import run_config
from endeavour.data import part, tables
from endeavour.data.cleaning import visible
from endeavour.data.files import read_pairs
from endeavour.data.normalization import normalize
from endeavour.data.scored_pairs import ScoredPair, join_scored, select_pairs, write_scored
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.pipeline.filtering import DualScorer
from endeavour.storage import atomic_folder
from untrained import TINIEST, by_hand, untrained_runs

WORDS = ["dog Hund", "cat Katze", "house Haus", "tree Baum", "river Fluss", "door Tür", "garden Garten"]
PAIRS = [
    (
        f"The {one.split()[0]} is behind the {other.split()[0]}.",
        f"{one.split()[1]} steht hinter {other.split()[1]}.",
    )
    for one in WORDS
    for other in WORDS
    if one != other
]
DIRTY = [
    ("", "leer"),
    PAIRS[3],
    ("The door is red.", "Le jardin est derrière la maison."),
    ("Yes", "Ja " * 300),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    tokenizer = train_tokenizer([text for pair in PAIRS for text in pair], run_config(TINIEST).tokenizer)
    runs = {"there": [], "back": ["direction=de-en"], "other": []}
    runs["short"] = ["model.positions=learned", "model.max_length=20"]
    runs["restorer"] = ["augmentation.denoising=1"]
    untrained_runs(folder, (tokenizer, tokenizer), runs)
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    lines = (json.dumps({"en": english, "de": german}) for english, german in [*PAIRS, *DIRTY])
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def filtered(root: Path, corpus: Path, *more: str, runs: str = "there back") -> int:
    output = corpus.parent / "filtered"
    overrides = [f"output_folder={root}", f"pairs=[{corpus}]", f"output={output}", "device=cpu", *more]
    return endeavour("filter", f"runs={runs}", *overrides, "cleaning.crawled.near_duplicates=null")


def rows_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()[1:]]


def cost(root: Path, run: str, source: str, target: str) -> float:
    """Nats a token."""
    values = by_hand(root, run, source, target)
    return -sum(values) / len(values)


def test_scores_are_the_dual_cross_entropy_of_what_cleaning_leaves(root: Path, corpus: Path) -> None:
    assert filtered(root, corpus, "keep=0.5") == 0
    folder = corpus.parent / "filtered"
    rows = rows_of(folder / "scores.tsv")
    assert [tuple(row[:2]) for row in rows] == [(normalize(a), normalize(b)) for a, b in PAIRS]
    for english, german, score, forward, backward in rows[::10]:
        there, back = cost(root, "there", english, german), cost(root, "back", german, english)
        assert (float(forward), float(backward)) == pytest.approx((there, back), abs=1e-3)
        assert float(score) == pytest.approx(math.exp(-abs(there - back) - (there + back) / 2), rel=1e-2)
    kept = rows_of(folder / "kept.tsv")
    best = sorted(rows, key=lambda row: -float(row[2]))[: len(PAIRS) // 2]
    assert kept == [row for row in rows if row in best]
    read = list(read_pairs([folder / "kept.tsv"], english_column="en", german_column="de"))
    assert read == [(row[0], row[1]) for row in kept]
    report = (folder / "report.md").read_text("utf-8")
    for line in (
        f"read: {len(PAIRS) + 4}; scored: {len(PAIRS)}; kept: {len(kept)}.",
        "| duplicate | 0 | 1 |",
    ):
        assert line in report
    assert f"| 100% | {float(min(rows, key=lambda row: float(row[2]))[2]):g} |" in report
    dropped = next(row for row in rows if row not in kept)
    assert f"- `{visible(dropped[0])}` → `{visible(dropped[1])}`" in report.split("## score below")[1]


def test_scores_are_kept_and_another_share_needs_no_model(
    root: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filtered(root, corpus) == 0
    monkeypatch.setattr(DualScorer, "score", lambda *_: pytest.fail("scored again"))
    kept = corpus.parent / "filtered" / "kept.tsv"
    rows = rows_of(corpus.parent / "filtered" / "scores.tsv")
    limit = sorted(float(row[2]) for row in rows)[5]
    for overrides, count in (
        (["keep=0.25"], round(0.25 * len(PAIRS))),
        (["keep=1"], len(PAIRS)),
        (["keep=1", f"min_score={limit}"], sum(float(row[2]) >= limit for row in rows)),
    ):
        assert filtered(root, corpus, *overrides) == 0
        assert len(rows_of(kept)) == count
    capsys.readouterr()
    assert filtered(root, corpus, runs="other back") == 2
    assert "other runs" in capsys.readouterr().err
    assert filtered(root, corpus, "cleaning.max_tokens=20", "english_column=x") == 2
    assert "other columns and cleaning" in capsys.readouterr().err


def test_there_is_no_validation_or_test_set_to_overlap_with(
    root: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filtered(root, corpus, "cleaning.drop_overlap=true") == 2
    assert "cleaning.drop_overlap=true" in capsys.readouterr().err


class Stop(Exception):
    pass


def test_what_was_scored_before_a_kill_is_not_scored_again(
    root: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert filtered(root, corpus) == 0
    folder, scratch = tmp_path / "filtered", tmp_path / ".filtered.scratch"
    names = ("scores.tsv", "kept.tsv", "report.md")
    whole = [(folder / name).read_text("utf-8") for name in names]
    folder.rename(tmp_path / "whole")
    monkeypatch.setattr(tables, "BATCH", 10)
    monkeypatch.setattr(part, "SHARD_BATCHES", 2)
    scored: list[int] = []
    score = DualScorer.score

    def stopping(self: DualScorer, pairs: list[tuple[str, str]]) -> list[ScoredPair]:
        if len(scored) == 3:
            raise Stop
        scored.append(len(pairs))
        return score(self, pairs)

    monkeypatch.setattr(DualScorer, "score", stopping)
    assert filtered(root, corpus) == 1
    assert scratch.is_dir()
    assert not folder.exists()
    scored_before = sum(scored)
    scored.clear()
    monkeypatch.setattr(
        DualScorer, "score", lambda self, pairs: (scored.append(len(pairs)), score(self, pairs))[1]
    )
    assert filtered(root, corpus) == 0
    assert sum(scored) == len(PAIRS) - scored_before
    assert [(folder / name).read_text("utf-8") for name in names] == whole
    assert not scratch.exists()


@pytest.mark.parametrize("put_back", [False, True])
def test_a_corpus_that_changes_while_it_is_scored_has_no_scores(
    root: Path,
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    put_back: bool,
) -> None:
    text, time = corpus.read_text("utf-8"), corpus.stat().st_mtime_ns
    score = DualScorer.score

    def changing(self: DualScorer, pairs: list[tuple[str, str]]) -> list[ScoredPair]:
        corpus.write_text(text if put_back else text.replace("Haus", "Heim"), "utf-8")
        os.utime(corpus, ns=(0, time + 10**9))
        return score(self, pairs)

    monkeypatch.setattr(DualScorer, "score", changing)
    assert filtered(root, corpus) == 2
    assert "changed while it was read" in capsys.readouterr().err
    assert {path.suffix for path in corpus.parent.iterdir()} == {".jsonl", ".lock"}


def test_what_a_kill_after_the_last_rename_left_is_removed(root: Path, corpus: Path) -> None:
    assert filtered(root, corpus) == 0
    scratch = corpus.parent / ".filtered.scratch"
    scratch.mkdir()
    assert filtered(root, corpus) == 0
    assert not scratch.exists()


def test_without_a_pair_nothing_is_filtered(
    root: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus.write_text("", "utf-8")
    assert filtered(root, corpus) == 2
    assert f"pairs=[{corpus}]: no pair" in capsys.readouterr().err
    assert not (corpus.parent / "filtered").exists()


def test_the_order_of_the_runs_does_not_matter_but_their_directions(
    root: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filtered(root, corpus) == 0
    assert filtered(root, corpus, runs="back there") == 0
    for runs in ("there other", "null"):
        capsys.readouterr()
        assert filtered(root, corpus, runs=runs) == 2
        assert "direction=de-en" in capsys.readouterr().err
    assert filtered(root, corpus, runs="restorer back") == 2
    assert "restorer has learnt to restore masked sentences, not to translate" in capsys.readouterr().err
    assert endeavour("filter", "runs=there back", f"output_folder={root}") == 2
    assert "pairs=" in capsys.readouterr().err


def test_a_pair_that_is_too_long_for_a_model_has_no_score_and_comes_last(root: Path, corpus: Path) -> None:
    assert filtered(root, corpus, runs="short back") == 0
    rows = rows_of(corpus.parent / "filtered" / "scores.tsv")
    long = [row for row in rows if row[3] == "nan"]
    assert 0 < len(long) < len(rows)
    assert all(float(row[2]) == 0 for row in long)


def test_what_is_no_folder_of_scores_is_neither_taken_for_one_nor_to_be_deleted(
    root: Path, corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = corpus.parent
    (parent / "full").mkdir()
    (parent / "full" / "mine.txt").write_text("")
    (parent / "empty").mkdir()
    with atomic_folder(parent / "published") as partial:
        (partial / "weights").write_text("")
    for name in ("full", "empty", "published", corpus.name):
        assert filtered(root, corpus, f"output={parent / name}") == 2
        said = capsys.readouterr().err
        assert f"output={parent / name} holds something else than scores: choose another output=…\n" in said
        assert "delete" not in said
    monkeypatch.chdir(parent / "empty")
    assert filtered(root, corpus, "output=") == 2
    assert "output=: name a folder to be made" in capsys.readouterr().err


def test_scores_that_were_altered_are_not_used(
    root: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filtered(root, corpus) == 0
    scores = corpus.parent / "filtered" / "scores.tsv"
    scores.write_text(scores.read_text("utf-8") + "a\tb\t1\t0\t0\n", "utf-8")
    assert filtered(root, corpus) == 2
    assert "altered since it was written" in (said := capsys.readouterr().err)
    assert "or delete it" in said


def test_a_filter_that_keeps_nothing_says_so(
    root: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filtered(root, corpus, "min_score=1") == 2
    assert "keep and min_score none" in capsys.readouterr().err
    assert filtered(root, corpus) == 0


def test_of_equal_scores_the_first_are_kept(tmp_path: Path) -> None:
    same = [ScoredPair((f"a {number}", "b"), 1.0, 1.0) for number in range(4)]
    better, worse = ScoredPair(("c", "d"), 0.5, 0.5), ScoredPair(("e", "f"), 0.5, 3.0)
    write_scored(tmp_path / "part", [worse, *same, better])
    join_scored([tmp_path / "part"], tmp_path / "scores.tsv")
    selection = select_pairs(tmp_path / "scores.tsv", tmp_path / "kept.tsv", keep=0.5, min_score=0)
    assert [row[0] for row in rows_of(tmp_path / "kept.tsv")] == ["a 0", "a 1", "c"]
    assert (selection.pairs, selection.kept, selection.step.dropped) == (6, 3, 3)
    assert selection.lowest == pytest.approx(math.exp(-1), rel=1e-3)


def test_a_limit_that_nothing_reaches_is_named_as_it_was_given(tmp_path: Path) -> None:
    write_scored(tmp_path / "part", [ScoredPair(("a", "b"), 0.5, 0.5)])
    join_scored([tmp_path / "part"], tmp_path / "scores.tsv")
    selection = select_pairs(tmp_path / "scores.tsv", tmp_path / "kept.tsv", keep=1, min_score=0.9999)
    assert (selection.kept, selection.step.name) == (0, "score below 0.9999")
