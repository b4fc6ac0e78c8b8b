import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from endeavour.evaluation.page import FEW_SENTENCES
from html_page import Page

from endeavour.errors import UserError
from endeavour.evaluation import metrics, report
from endeavour.storage import write_atomically


def _corpus(sentences: int = 40) -> dict[str, list[str]]:
    numbers = range(1, sentences + 1)
    return {
        "sources": [" ".join(["word"] * (number % 12 + 1)) + f" {number}" for number in numbers],
        "hypotheses": [f"wort {number} " + "ja " * (number % 3) + "ist gut ." for number in numbers],
        "references": [f"Wort {number} " + "ja " * (number % 5) + "ist gut." for number in numbers],
    }


def _write(folder: Path, corpus: dict[str, list[str]], **more: Any) -> None:
    scores = metrics.score(corpus["hypotheses"], corpus["references"], bootstrap_samples=50, seed=1)
    settings: dict[str, Any] = {
        "title": "tiny-textbook: test, beam",
        "decoding": {"name": "beam", "beam_size": 4},
        "model": {"digest": "c0ffee", "config": {"width": 64}},
        "seed": 1,
    }
    report.write_report(folder, scores=scores, **corpus, **(settings | more))


def test_the_folder_holds_the_six_files_and_no_leftovers(tmp_path: Path) -> None:
    folder = tmp_path / "evaluation" / "test-beam"
    _write(folder, _corpus())
    assert sorted(path.name for path in folder.iterdir()) == [
        "hypotheses.txt",
        "references.txt",
        "report.html",
        "report.md",
        "scores.json",
        "sources.txt",
    ]


def test_writing_again_gives_the_same_bytes_and_the_seed_changes_the_sample_only(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        _write(tmp_path / name, _corpus(), seed=seed)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    one, other = tmp_path / "one", tmp_path / "other"
    assert (one / "hypotheses.txt").read_bytes() == (other / "hypotheses.txt").read_bytes()
    assert (one / "report.html").read_bytes() != (other / "report.html").read_bytes()


def test_sources_and_references_are_written_untouched(tmp_path: Path) -> None:
    corpus = _corpus(3)
    corpus["sources"] = ["  a \u2028 b ", "c\rd", "e"]
    _write(tmp_path, corpus)
    for name in ("sources", "references"):
        assert (tmp_path / f"{name}.txt").read_bytes().decode().split("\n") == [*corpus[name], ""]


def test_hypotheses_are_one_line_a_sentence_whatever_they_hold(tmp_path: Path) -> None:
    corpus = _corpus(3)
    corpus["hypotheses"] = ["zwei\nZeilen", "", "Käse \u2028 Brot"]
    _write(tmp_path, corpus)
    text = (tmp_path / "hypotheses.txt").read_bytes().decode()
    assert text.endswith("\n")
    assert len(text.splitlines()) == 3
    assert text.splitlines()[:2] == ["zwei Zeilen", ""]


def test_scores_json_holds_scores_signatures_counts_and_settings(tmp_path: Path) -> None:
    corpus = _corpus()
    _write(tmp_path, corpus)
    scores = metrics.score(corpus["hypotheses"], corpus["references"], bootstrap_samples=50, seed=1)
    record = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert record["scores"] == {key: dataclasses.asdict(score) for key, score in scores.items()}
    assert record["sentences"] == sum(bucket["sentences"] for bucket in record["bleu_by_source_length"]) == 40
    assert record["decoding"] == {"name": "beam", "beam_size": 4}
    assert record["model"]["digest"] == "c0ffee"
    assert set(record["output_rates"]) == {"outputs", "references"}


def test_scores_json_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(report, "write_atomically", lambda path, text: written.append(path.name))
    _write(tmp_path, _corpus())
    assert written[-1] == "scores.json"


def test_both_reports_tell_scores_signatures_lengths_samples_and_settings(tmp_path: Path) -> None:
    corpus = _corpus()
    _write(tmp_path, corpus)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8")).text
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8").replace("\\", "")
    bleu = metrics.score(corpus["hypotheses"], corpus["references"], bootstrap_samples=50, seed=1)["bleu"]
    for text in (page, markdown):
        for part in ("tiny-textbook: test, beam", "40 sentences", bleu.signature, f"{bleu.value:.2f}"):
            assert part in text
        for part in ("BLEU by source length", "6–10", "Best", "Worst", "Random", "config.width", "c0ffee"):
            assert part in text


def test_text_is_shown_and_never_obeyed(tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script> | *bold* `code` &amp; 'quoted\" \\| <!--"
    corpus = {"sources": [nasty], "hypotheses": [nasty], "references": [nasty]}
    picture = ([nasty], [nasty], [[1.0]])
    _write(tmp_path, corpus, title=nasty, model={nasty: nasty}, attention=[picture])
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "script" not in page.tags
    assert page.text.count(nasty) >= 6
    rows = [line for line in (tmp_path / "report.md").read_text().splitlines() if line.startswith("| 1 |")]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", rows[0])) == 6  # five cells
    assert re.sub(r"\\(.)", r"\1", rows[0]).count(nasty) == 3


def test_the_page_is_self_contained(tmp_path: Path) -> None:
    _write(tmp_path, _corpus())
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not {"src", "href"} & set(page.attributes)
    assert "url(" not in text
    assert "@import" not in text


def test_the_chart_has_a_bar_a_bucket_pale_where_there_are_few_sentences(tmp_path: Path) -> None:
    corpus = _corpus(99)
    _write(tmp_path, corpus)
    buckets = metrics.bleu_by_source_length(*corpus.values())
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.classes.count("bar") == len(buckets)
    thin = [bucket for bucket in buckets if bucket.sentences < FEW_SENTENCES]
    assert 0 < page.classes.count("thin") == len(thin) < len(buckets)


def test_attention_is_drawn_with_the_pieces_of_both_sides(tmp_path: Path) -> None:
    corpus = _corpus(1)
    _write(tmp_path / "without", corpus)
    _write(tmp_path / "with", corpus, attention=[(["▁the", "▁cat"], ["▁Katze"], [[0.1, 0.9]])])
    without, drawn = (Page((tmp_path / name / "report.html").read_text()) for name in ("without", "with"))
    assert drawn.classes.count("bar") == without.classes.count("bar") + 2
    assert "▁Katze ← ▁cat: 0.90" in drawn.text
    assert "Cross-attention" not in without.text


@pytest.mark.parametrize("sentences", [1, 2, 3, 5, 40])
def test_no_line_is_shown_twice_and_best_are_no_worse_than_worst(sentences: int) -> None:
    corpus = _corpus(sentences)
    chrf = metrics.sentence_scores(corpus["hypotheses"], corpus["references"])
    chosen = report.pick_examples(*corpus.values(), chrf, seed=1)
    assert list(chosen) == ["best", "worst", "random"]
    shown = [example for examples in chosen.values() for example in examples]
    assert len({example.line for example in shown}) == len(shown) >= min(sentences, 3)
    for best in chosen["best"]:
        assert best.chrf == max(chrf) or best.chrf >= max(other.chrf for other in chosen["random"])
        assert all(best.chrf >= worst.chrf for worst in chosen["worst"])
    for example in shown:
        assert example.source == corpus["sources"][example.line - 1]
        assert example.hypothesis == corpus["hypotheses"][example.line - 1]
        assert example.reference == corpus["references"][example.line - 1]


def test_of_equal_translations_the_longer_is_shown_first() -> None:
    sources = ["a", "a b c", "a b", "x", "y", "z"]
    chosen = report.pick_examples(sources, sources, sources, [100.0, 100.0, 100.0, 1.0, 2.0, 3.0], seed=1)
    assert [example.source for example in chosen["best"]] == ["a b c", "a b"]


def test_differing_line_counts_write_nothing(tmp_path: Path) -> None:
    corpus = _corpus(3)
    corpus["sources"].append("one too many")
    with pytest.raises(UserError, match="4 sources, 3 hypotheses"):
        _write(tmp_path / "report", corpus)
    assert not (tmp_path / "report").exists()


def test_a_failed_write_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_atomically(path, "old\n")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud800")
    assert path.read_text() == "old\n"
