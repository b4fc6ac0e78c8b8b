"""The playground is measured as a browser and programs meet it; these figures mean nothing."""

import statistics
from pathlib import Path

import pytest
from bench_config import load_bench

from endeavour.benchmark import playground as module
from endeavour.benchmark.browser import open_pages
from endeavour.benchmark.played_site import PlayedRun, play
from endeavour.benchmark.playground import Request, measure_page, measure_serving
from endeavour.benchmark.tables import TABLES, part_table
from endeavour.commands.bench import played_run
from endeavour.errors import UserError
from endeavour.storage import write_json
from served import small_run

SENTENCES = [f"Satz {number} hat Worte wie {number}." for number in range(6)]
SENTENCES.insert(0, "Satz mit mehr Worten, als die Seite zeigt. " * 40)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run that has an evaluation."""
    root = tmp_path_factory.mktemp("outputs")
    folder = small_run(root, "run").folder / "evaluation" / "test-beam"
    folder.mkdir(parents=True)
    for column in ("sources", "references", "hypotheses"):
        (folder / f"{column}.txt").write_text("".join(f"{line}\n" for line in SENTENCES))
    write_json(folder / "scores.json", {"scores": {}, "decoding": {}, "model": {"test_set": "test"}})
    return root


def test_the_page_has_a_row_for_each_thing_that_one_waits_for(
    outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "open_pages", lambda url, repeats, done: [0.25] * repeats)
    rows = measure_page(PlayedRun("run", outputs, "cpu"), repeats=4, steps=lambda _: lambda: None)
    assert [row["what"] for row in rows] == ["page ready", "first result", "beam of 5", "attention"]
    assert rows[0]["median_milliseconds"] == rows[0]["percentile_95_milliseconds"] == 250
    for row in rows:
        assert row["count"] == 4
        assert 0 < row["median_milliseconds"] <= row["percentile_95_milliseconds"]
    assert part_table("playground", rows).row_count == 4


@pytest.mark.parametrize(("count", "rank"), [(1, 1), (2, 2), (19, 19), (20, 19), (21, 20), (100, 95)])
def test_95_percent_of_the_times_are_at_most_their_percentile(count: int, rank: int) -> None:
    found = module._percentiles([*range(count, 0, -1)])  # pyright: ignore[reportPrivateUsage]
    assert found["percentile_95_milliseconds"] == 1000 * rank


def test_a_page_is_opened_as_often_as_is_said_or_an_error_is_raised() -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    done: list[None] = []
    seconds = open_pages("data:text/html,page", 2, lambda: done.append(None))
    if not seconds:
        pytest.skip("no browser")
    assert len(seconds) == len(done) == 2
    with pytest.raises(sync_api.Error):
        open_pages("http://127.0.0.1:9", 2, lambda: None)


def test_every_client_is_answered_as_if_it_had_asked_alone(
    outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    asked: list[tuple[list[Request], float]] = []
    ask = module._ask_together  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(module, "_ask_together", lambda *given: asked.append(ask(*given)) or asked[-1])
    rows = measure_serving(
        PlayedRun("run", outputs, "cpu"),
        clients=[1, 4],
        seconds=0.2,
        joined_lines=[8],
        steps=lambda total: lambda: steps.append(total),
    )
    assert steps == [2, 2]
    assert [(row["joined_lines"], row["clients"]) for row in rows] == [(8, 1), (8, 4)]
    for row, (requests, elapsed) in zip(rows, asked, strict=True):
        assert (row["failed"], row["wrong"]) == (0, 0)
        assert row["requests_per_second"] == len(requests) / elapsed > 0
        assert row["median_milliseconds"] == 1000 * statistics.median(one.seconds for one in requests)
        assert min(row["memory_before"], row["memory_after"]) > 10_000_000
    assert part_table("serving", rows).row_count == 2
    assert len(TABLES["serving"][1]) == 9


def test_a_run_is_played_whatever_it_and_its_folder_are_called(tmp_path: Path) -> None:
    folder = small_run(tmp_path / "plain", "run").folder
    folder.parent.rename(tmp_path / "o (1)")
    (tmp_path / "o (1)" / "run").rename(tmp_path / "o (1)" / "first run")
    config = load_bench([f"output_folder='{tmp_path}/o (1)'", "device=cpu", "bench.played_run=first run"])
    with play(played_run(config)) as site:
        assert site.get("/api/runs")["default"] == "first run"


def test_a_run_that_is_not_there_is_named(outputs: Path) -> None:
    with pytest.raises(UserError, match="none"):
        measure_page(PlayedRun("none", outputs, "cpu"), repeats=1, steps=lambda _: lambda: None)
