"""The folder of an evaluation: its files, what they tell, and the charts of its page."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from html_page import Page
from invented import corpus, evaluation

from endeavour import storage
from endeavour.reports import evaluation_report
from endeavour.reports.evaluation_report import write_evaluation
from endeavour.reports.figures import FEW_SENTENCES
from endeavour.storage import write_atomically

FILES = ["hypotheses.txt", "references.txt", "report.html", "report.md", "scores.json", "sources.txt"]


def test_the_same_result_gives_the_same_bytes_and_the_seed_changes_the_sample_only(tmp_path: Path) -> None:
    picture = (["▁the", "▁cat"], ["▁Katze"], [[0.1, 0.9]])
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        write_evaluation(tmp_path / name, evaluation(seed=seed), [picture])
    one, again, other = (tmp_path / name for name in ("one", "again", "other"))
    assert sorted(path.name for path in one.iterdir()) == FILES  # and no leftovers
    assert all(path.read_bytes() == (again / path.name).read_bytes() for path in one.iterdir())
    assert (one / "hypotheses.txt").read_bytes() == (other / "hypotheses.txt").read_bytes()
    assert (one / "report.html").read_bytes() != (other / "report.html").read_bytes()


def test_the_lines_are_written_untouched(tmp_path: Path) -> None:
    lines = corpus(3) | {"sources": ["  a  b ", "c\td", "e"]}
    write_evaluation(tmp_path, evaluation(lines))
    for name in ("sources", "hypotheses", "references"):
        assert (tmp_path / f"{name}.txt").read_bytes().decode().split("\n") == [*lines[name], ""]


def test_scores_json_holds_scores_signatures_counts_and_settings(tmp_path: Path) -> None:
    result = evaluation()
    write_evaluation(tmp_path, result)
    record = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert record["scores"] == {key: asdict(score) for key, score in result.scores.items()}
    assert record["sentences"] == sum(bucket["sentences"] for bucket in record["bleu_by_source_length"]) == 40
    assert record["decoding"] == {"name": "beam", "beam_size": 4}
    assert record["model"]["digest"] == "c0ffee"
    assert set(record["output_rates"]) == {"outputs", "references"}


def test_scores_json_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scores.json").write_text("of an earlier evaluation")
    written: list[str] = []

    def write(path: Path, text: str) -> None:
        assert not (tmp_path / "scores.json").exists()
        written.append(path.name)

    for module in (evaluation_report, storage):  # which writes the JSON
        monkeypatch.setattr(module, "write_atomically", write)
    write_evaluation(tmp_path, evaluation())
    assert sorted(written) == FILES
    assert written[-1] == "scores.json"


def test_both_reports_tell_scores_signatures_lengths_samples_and_settings(tmp_path: Path) -> None:
    result = evaluation()
    write_evaluation(tmp_path, result, play="endeavour play run=a-1")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8")).text
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8").replace("\\", "")
    bleu = result.scores["bleu"]
    for text in (page, markdown):
        for part in (result.title, "40 sentences", bleu.signature, f"{bleu.value:.2f}", f"{bleu.low:.2f}"):
            assert part in text
        for part in (
            "BLEU by source length",
            "6–10",
            "Best",
            "Worst",
            "Random",
            "config.width",
            "c0ffee",
            "play run=a-1",
        ):
            assert part in text
        for example in (one for part in result.examples.values() for one in part):
            assert all(line in text for line in (example.source, example.reference, example.hypothesis))


def test_only_of_a_model_without_capitals_it_is_said_what_ignores_them(tmp_path: Path) -> None:
    for name, lowercase in (("cased", False), ("small", True)):
        write_evaluation(tmp_path / name, evaluation(lowercase=lowercase))
        for report in ("report.html", "report.md"):
            text = (tmp_path / name / report).read_text("utf-8")
            assert ("writes no capitals" in text) == lowercase


def test_the_chart_has_a_bar_a_bucket_pale_where_there_are_few_sentences(tmp_path: Path) -> None:
    result = evaluation(corpus(99))
    write_evaluation(tmp_path, result)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text).text
    for bucket in result.buckets:
        assert f"{bucket.label}: {bucket.bleu:.2f}" in page
        assert f"n = {bucket.sentences}" in page
    assert f"all {result.scores['bleu'].value:.1f}" in page
    few = [bucket for bucket in result.buckets if bucket.sentences < FEW_SENTENCES]
    assert 0 < text.count("opacity: 0.4") == len(few) < len(result.buckets)


def test_attention_is_drawn_with_the_pieces_of_both_sides(tmp_path: Path) -> None:
    write_evaluation(tmp_path / "without", evaluation())
    write_evaluation(tmp_path / "with", evaluation(), [(["▁the", "▁cat"], ["▁Katze"], [[0.001, 0.999]])])
    without, drawn = (Page((tmp_path / name / "report.html").read_text()) for name in ("without", "with"))
    assert "▁Katze ← ▁cat: 1.00" in drawn.text
    assert "▁the" in drawn.text
    assert "← ▁the" not in drawn.text  # too little to be seen
    assert "Cross-attention" not in without.text


def test_a_failed_write_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_atomically(path, "old\n")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud800")
    assert path.read_text() == "old\n"
