"""The Runs view: systems on one sentence, test sets line by line, trainings as they go on, by mouse and by keyboard."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from filelock import FileLock
from in_browser import (
    SENTENCE,
    Visit,
    exported,
    hide,
    hold_answer,
    scrolls_sideways,
    translation,
    until_held,
    until_read_out,
    violations,
)
from playwright.sync_api import Locator, Page, Route, expect

from endeavour.runs.run import Run
from endeavour.storage import atomic_folder, write_atomically, write_json
from served import Served, served, small_run

LINES = 3000
TIMEOUT = 20_000  # ms after which a test has failed; none waits for it
UNTRUE = {"repetitive": 7, "empty": 11, "copied": 13}  # every so many-th line has this fault
OTHER = "other, of me@home"
WITH_OTHER = "other%2C of me@home"  # as `w` writes it


def log_line(kind: str, update: int) -> dict[str, Any]:
    numbers = {"loss": 8 / update, "perplexity": 3.0, "bleu": update / 2}
    if kind == "train":
        numbers = {"loss": 9 / update, "learning_rate": 0.001, "tokens_per_second": 1234.0}
    if kind == "attention":
        return {
            "kind": kind,
            "update": update,
            "source": ["▁a", "</s>"],
            "target": ["▁b"],
            "weights": [[0.25, 0.75]],
        }
    if kind == "samples":
        return {
            "kind": kind,
            "update": update,
            "samples": [["It rains.", f"Es {update} regnet.", "Es regnet."]],
        }
    return {"kind": kind, "update": update, **numbers}


def write_log(run: Run, updates: int) -> None:
    """A new file in the old one's place, as a run that is resumed writes it."""
    kinds = ("train", "validation", "attention", "samples")
    lines = [log_line(kind, update) for update in range(1, updates + 1) for kind in kinds]
    write_atomically(run.folder / "log.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def append_log(run: Run, update: int) -> None:
    with (run.folder / "log.jsonl").open("a", encoding="utf-8") as file:
        for kind in ("train", "validation", "attention", "samples"):
            file.write(json.dumps(log_line(kind, update)) + "\n")


def faults_of(line: int) -> list[str]:
    return [fault for fault, every in UNTRUE.items() if line % every == 0][:1]


def evaluated(run: Run, lines: int = LINES, bleu: float = 61.5) -> None:
    """An evaluation of so many lines, some of them faulty, in place of the last one."""
    columns: dict[str, list[str]] = {"sources": [], "references": [], "hypotheses": []}
    for line in range(1, lines + 1):
        source, reference = f"Line {line} has words.", f"Zeile {line} hat Worte."
        right = "Zeile hat" if line % 5 == 0 else reference
        wrong = {"repetitive": "oh oh oh oh", "empty": "", "copied": source}
        faults = faults_of(line)
        columns["sources"].append(source)
        columns["references"].append(reference)
        columns["hypotheses"].append(wrong[faults[0]] if faults else right)
    with atomic_folder(run.folder / "evaluation" / "test-beam") as folder:
        for column, texts in columns.items():
            (folder / f"{column}.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
        write_json(
            folder / "scores.json",
            {"scores": {"bleu": {"value": bleu}}, "decoding": {}, "model": {"test_set": "test"}},
        )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("outputs")
    one, other = small_run(root, "run"), small_run(root, f"'{OTHER}'", seed=1)
    evaluated(one)
    write_log(one, 6)
    write_log(other, 4)
    return root


@pytest.fixture(scope="module")
def site(root: Path) -> Iterator[Served]:
    with served(root, "run=run") as site:
        yield site


@pytest.fixture
def training(root: Path, page: Page) -> Iterator[Run]:
    """A run that is being trained: a config, the beginning of a log, and a lock that is held."""
    run = Run(root, "under way")
    run.folder.mkdir()
    shutil.copy(root / "run" / "config.yaml", run.folder / "config.yaml")
    with FileLock(root / f".{run.name}.lock"):
        write_log(run, 2)
        yield run
    page.close()  # or it would ask for the log
    shutil.rmtree(run.folder)


@pytest.fixture
def runs(visit: Visit) -> Visit:
    """Opens the view in a state and waits until the systems have answered."""

    def runs(**state: object) -> Page:
        page = visit(v="runs", **state)
        expect(page.locator(".compare:not(.stale) .systems .measures").last).to_contain_text("score")
        return page

    return runs


def best(site: Served, system: str, **settings: object) -> Any:
    """The best translation of the sentence by a system."""
    asked = {"system": system, "text": SENTENCE} | settings
    ((_, result),) = [event for event in site.stream("/api/search", asked) if event[0] == "result"]
    return result["hypotheses"][0]


def test_two_runs_side_by_side_part_where_they_part(runs: Visit, site: Served) -> None:
    ours, theirs = best(site, "run"), best(site, OTHER)
    pairs = zip(ours["pieces"], theirs["pieces"], strict=False)
    step = next(i for i, (a, b) in enumerate(pairs) if a["id"] != b["id"])
    page = runs(w=WITH_OTHER)
    expect(page.locator(".systems .name").nth(1)).to_contain_text(OTHER)
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text(f"part at piece {step + 1}")
    for letter, found in (("A", ours), ("B", theirs)):
        piece = found["pieces"][step]["piece"].replace("▁", "")
        expect(verdict).to_contain_text(f"{letter} writes “{piece}”")
    for row in page.locator(".systems li").all():
        expect(row.locator("mark.first")).to_have_count(1)
    parting = page.locator(".compare figure").first
    expect(parting.locator(".stage text", has_text="chosen")).to_have_count(2)
    expect(page.locator(".opinions tbody td")).to_have_count(4)
    expect(page.locator(".opinions th [lang=de]").first).to_have_text(ours["text"])
    own = page.locator(".opinions tbody tr").first.locator("td").first
    expect(own).to_contain_text(f"{ours['log_probability']:.2f}".replace("-", "−"))
    expect(page.locator(".attention .stage > svg")).to_have_count(2)
    for figure in page.locator(".compare figure:visible").all():
        figure.locator("summary").click()
        expect(figure.locator("tbody tr").nth(1)).to_be_visible()


@pytest.mark.parametrize(("piece", "name"), [("▁", "␣"), ("</s>", "end")])
def test_a_piece_that_is_no_text_has_a_name_where_systems_part(
    page: Page, runs: Visit, piece: str, name: str
) -> None:
    def with_piece(route: Route) -> None:
        answer = route.fetch()
        text = answer.text()
        if route.request.post_data_json["system"] == OTHER:
            text = re.sub(r'("pieces":\[{"id":\d+,"piece":)"[^"]*"', rf'\1"{piece}"', text)
        route.fulfill(response=answer, body=text)

    page.route("**/api/search", with_piece)
    runs(w=WITH_OTHER)
    expect(page.locator(".verdict")).to_contain_text(f"B writes “{name}”")


def test_a_system_is_added_and_removed(runs: Visit, site: Served) -> None:
    page = runs(w="-")
    expect(page.locator(".systems li")).to_have_count(1)
    expect(page.locator(".verdict")).to_contain_text("Add a system")
    page.get_by_label("System to compare with").select_option("run")
    page.get_by_label("Its decoding").select_option("1")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".systems .text").nth(1)).to_have_text(best(site, "run", beam_size=1)["text"])
    expect(page).to_have_url(re.compile("w=run%7E1"))
    page.get_by_label("System to compare with").focus()
    page.keyboard.type("other")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".systems li")).to_have_count(3)
    compare = page.get_by_role("button", name="Compare with A", pressed=False)
    compare.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_contain_text("C writes")
    expect(page.get_by_role("button", name="Compare with A", pressed=True)).to_be_focused()
    page.get_by_role("button", name="Remove run greedy").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".systems li")).to_have_count(2)
    expect(page.get_by_role("button", name=f"Remove {OTHER}")).to_be_focused()
    page.go_back()
    expect(page.locator(".systems li")).to_have_count(3)


def test_what_a_comparison_still_waits_for_does_not_replace_the_picture_of_a_later_one(runs: Visit) -> None:
    page = runs(w=f"run~1,{WITH_OTHER}")
    expect(page.locator(".opinions table")).to_be_visible()
    hold_answer(page, "/api/analyse")
    page.get_by_role("button", name="Compare with A", pressed=False).click()
    expect(page.locator(".verdict")).to_contain_text("C writes")
    until_held(page)
    page.get_by_role("button", name="Compare with A", pressed=False).click()
    page.evaluate("async () => { release(); await fetch('/health'); }")
    of_c = page.locator(".compare figure").first.locator("text.small", has_text=re.compile("^C "))
    expect(of_c).to_have_count(0)
    expect(page.locator(".attention .stage").nth(1)).to_contain_text("B  run greedy")


def test_a_system_that_fails_is_not_the_one_that_is_compared(runs: Visit, tolerated: list[str]) -> None:
    tolerated.append("status of 404")
    page = runs(w="run@999,run~1")
    expect(page.locator(".systems .problem")).to_contain_text("no checkpoint of update 999")
    expect(page.locator(".systems li.chosen .letter")).to_have_text("C")
    expect(page.locator(".verdict")).to_contain_text("C")


def test_a_comparison_that_fails_leaves_no_picture_of_the_one_before(
    page: Page, runs: Visit, tolerated: list[str]
) -> None:
    tolerated.append("status of 500")
    runs(w=f"run~1,{WITH_OTHER}")
    expect(page.locator(".opinions table")).to_be_visible()
    answer = {"status": 500, "json": {"error": "out of memory"}}
    page.route("**/api/attention", lambda route: route.fulfill(**answer))
    page.get_by_role("button", name="Compare with A", pressed=False).click()
    expect(page.locator("#problem")).to_contain_text("out of memory")
    expect(page.locator(".compare figure:visible")).to_have_count(0)
    expect(page.locator(".opinions")).to_be_hidden()


def test_where_translations_part_what_is_written_is_shown_however_improbable(visit: Visit) -> None:
    pieces = visit().evaluate("""async () => {
        const { partingOf } = await import("/static/runs/comparison.js");
        const alternatives = [..."abcdefghij"].map((piece) => ({ piece, log_probability: -2 }));
        const [ours, theirs] = ["x", "y"].map((piece) => ({ piece, log_probability: -9, alternatives }));
        const [a, b] = ["A", "B"].map((letter) => ({ letter, system: { name: letter }, hypothesis: { pieces: [] } }));
        return partingOf({ a, b, step: 0, ours, theirs }, 600).json.pieces.map(({ piece }) => piece);
    }""")
    assert pieces[-2:] == ["x", "y"]


def test_colours_are_exported_as_every_program_for_pictures_understands(runs: Visit) -> None:
    page = runs(w=WITH_OTHER)
    expect(page.locator(".opinions table")).to_be_visible()
    svg = exported(page, "Where they part", "SVG").read_text("utf-8")
    assert set(re.findall(r'(?:fill|stroke)="(\w+)', svg)) <= {"rgb", "none"}


def test_the_same_translation_has_no_parting(runs: Visit) -> None:
    page = runs(w="run~3")
    expect(page.locator(".verdict")).to_contain_text("the same translation")
    expect(page.locator(".compare mark")).to_have_count(0)


def first_cells(page: Page, column: str) -> list[str]:
    return page.locator(f".grid tbody .col-{column}").all_inner_texts()


def test_lines_are_sorted_and_filtered(runs: Visit) -> None:
    page = runs()
    count = page.locator(".filters [role=status]")
    expect(count).to_contain_text(f"{LINES:,} of {LINES:,}")
    assert page.locator(".grid tbody tr").count() < 60, "only rows in sight exist"
    for direction in ("ascending", "descending"):
        page.get_by_role("button", name="chrF", exact=True).click()
        expect(page.locator("th.col-chrf").first).to_have_attribute("aria-sort", direction)
        numbers = [float(text) for text in first_cells(page, "chrf")]
        assert numbers == sorted(numbers, reverse=direction == "descending")
    page.get_by_role("button", name="empty", exact=True).click()
    empty = sum("empty" in faults_of(line) for line in range(1, LINES + 1))
    expect(count).to_contain_text(f"{empty} of")
    assert set(first_cells(page, "flags")) == {"empty"}
    page.get_by_label("Filter").fill("chrf<60 WORTE. 1234")
    expect(count).to_contain_text("No line")
    page.get_by_label("Filter").fill("worte. 1234")
    expect(count).to_contain_text("1 of")
    expect(page.locator(".line dd").nth(2)).to_have_text("Zeile 1234 hat Worte.")
    expect(page).to_have_url(re.compile("filter=worte.\\+1234"))


STANDS_STILL = """() => {
    const before = window.placeOfGrid;
    window.placeOfGrid = document.querySelector("[role=grid]").getBoundingClientRect().top + scrollY;
    return before === window.placeOfGrid;
}"""


def test_a_line_is_opened_in_look_by_one_key(runs: Visit) -> None:
    page = runs(sort="-line", filter="flag:repetitive")
    grid = page.get_by_role("grid")
    # Before there are lines a key leads nowhere, and what comes above them moves them out of sight.
    expect(page.locator(".filters [role=status]")).to_contain_text(" of ")
    page.wait_for_function(STANDS_STILL, polling=500)
    grid.focus()
    page.keyboard.press("End")
    expect(page.locator(".line h3")).to_have_text("Line 7")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".line h3")).to_have_text("Line 14")
    active = page.locator(f"#{grid.get_attribute('aria-activedescendant')}")
    expect(active).to_be_in_viewport()
    expect(active).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.locator("#view-look")).to_be_visible()
    expect(page.locator("#tab-look")).to_be_focused()
    expect(page.locator("#input")).to_have_value("Line 14 has words.")
    page.go_back()
    expect(page.locator("#view-runs")).to_be_visible()


def test_an_evaluation_that_cannot_be_read_does_not_show_the_lines_of_another(
    page: Page, runs: Visit, root: Path, tolerated: list[str]
) -> None:
    tolerated.append("status of 500")
    second = root / "run" / "evaluation" / "validation-beam"
    shutil.copytree(root / "run" / "evaluation" / "test-beam", second)
    try:
        runs(set="run/test-beam")
        expect(page.locator(".sets .grid")).to_be_visible()
        answer = {"status": 500, "json": {"error": "damaged"}}
        page.route("**/api/evaluation?*validation*", lambda route: route.fulfill(**answer))
        choose = page.get_by_label("Evaluation")
        choose.select_option("run/validation-beam")
        expect(page.locator("#problem")).to_contain_text("damaged")
        expect(page.locator(".sets .grid")).to_be_hidden()
        choose.select_option("run/test-beam")
        expect(page.locator(".sets .grid")).to_be_visible()
        expect(page.locator("#problem")).to_be_hidden()
    finally:
        shutil.rmtree(second)


def test_a_line_is_opened_by_mouse(runs: Visit) -> None:
    page = runs(node=3)
    page.locator(".grid tbody tr", has_text="Line 5 has").click()
    expect(page.locator(".line mark").first).to_be_visible()
    expect(page.locator(".line [lang=de]")).to_have_count(2)
    page.get_by_role("button", name="Open in Look").click()
    expect(page.locator("#input")).to_have_value("Line 5 has words.")
    expect(page).not_to_have_url(re.compile("node="))


def test_a_line_of_another_model_than_the_pages_is_opened_under_its_own(runs: Visit, root: Path) -> None:
    shutil.copytree(root / OTHER / "model", root / "run" / "checkpoints" / "update-00000005")
    try:
        page = runs(run="run@5")
        page.locator(".grid tbody tr", has_text="Line 5 has").click()
        page.get_by_role("button", name="Open in Look").click()
        expect(page.locator("#run")).to_have_value("run")
    finally:
        shutil.rmtree(root / "run" / "checkpoints")


def test_faults_are_found_by_either_name_and_in_capitals_too(visit: Visit) -> None:
    found = visit().evaluate("""async () => {
        const { arranged } = await import("/static/runs/filter.js");
        const rows = [{ line: 1, flags: [] }, { line: 2, flags: ["repetitive"] }];
        return ["flag:loops", "FLAG:ANY", "flag:Repetitive", "flag:empty"].map(
            (filter) => arranged(rows, filter, "").map(({ line }) => line),
        );
    }""")
    assert found == [[2], [2], [2], []]


def test_capitals_are_no_difference_for_a_model_without(visit: Visit) -> None:
    marks = visit().evaluate("""async () => {
        const { h } = await import("/static/dom.js");
        const { marked } = await import("/static/diff.js");
        const { foldOf } = await import("/static/systems.js");
        const count = (run) => h("p", {}, marked("ein hund", "Ein Hund", { fold: foldOf(run) }))
            .querySelectorAll("mark").length;
        return [count({ lowercase: true }), count({ lowercase: false })];
    }""")
    assert marks == [0, 2]


def test_an_evaluation_that_is_repeated_while_the_page_is_open_is_shown_anew(runs: Visit, root: Path) -> None:
    other = Run(root, OTHER)
    evaluated(other, lines=7, bleu=50)
    page = runs(set=f"{OTHER}/test-beam", run=OTHER)
    second = page.locator("#examples button").nth(1)
    expect(second).to_have_text("Line 2 has words.")
    count = page.locator(".filters [role=status]")
    expect(count).to_contain_text("7 of 7 lines")
    evaluated(other, lines=20, bleu=70)
    expect(count).to_contain_text("20 of 20 lines", timeout=TIMEOUT)
    expect(second).to_have_text("Line 5 has words.")
    expect(page.locator("#test-set option:checked")).to_contain_text(f"{OTHER}: test, beam (BLEU 70.0)")
    shutil.rmtree(other.folder / "evaluation")


def entry(page: Page, run: str) -> Locator:
    return page.locator(f".legend [data-run='{run}']")


def test_finished_runs_are_overlaid(runs: Visit) -> None:
    page = runs(w=WITH_OTHER)
    expect(entry(page, "run")).to_contain_text("finished")
    expect(entry(page, "run")).to_contain_text("update 6 · loss 1.500 · BLEU 3.0")
    expect(entry(page, OTHER)).to_contain_text("update 4")
    curves = page.locator(".training .stage").first
    for number in (0, 1):
        expect(curves.locator(f"path.line.run-{number}")).to_have_count(4)
    until_read_out(page)
    curves.focus()
    page.keyboard.press("End")
    expect(page.locator("#live")).to_have_text("1 update 6: loss 1.33, BLEU 3.0")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#live")).to_contain_text("2 update 4")
    box = curves.locator("svg").bounding_box()
    assert box
    page.mouse.move(box["x"] + 52 + 2.5 / 6 * (box["width"] - 68), box["y"] + 60)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#live")).to_contain_text("1 update 3:")
    slider = page.get_by_role("slider", name="Validation")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator(".scrub output")).to_contain_text("update 1,")
    page.get_by_label("Run whose attention is shown").select_option(OTHER)
    expect(page.locator(".scrub output")).to_contain_text("update 4,")


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 1e-3), (0.0, 2e-3), (1e-5, 4e-3), (30.0, 40.0), (38.0, 40.0), (2.2, 2.31), (0, 1e4)],
)
def test_the_numbers_at_the_curves_stand_where_they_belong(visit: Visit, low: float, high: float) -> None:
    panels: list[list[tuple[str, float]]] = visit().evaluate(
        """async ([low, high]) => {
            const { curves } = await import("/static/runs/curves.js");
            const { panelsOf } = await import("/static/runs/panels.js");
            const line = (update, value) => ({ update, loss: value, learning_rate: value, bleu: value });
            const lines = [line(1, low), line(2, high)];
            const numbers = (panel) => [...curves([panel], 600, () => {}).node.querySelectorAll("[text-anchor=end]")];
            return panelsOf([{ train: lines, validation: lines }])
                .map((panel) => numbers(panel).map((text) => [text.textContent, Number(text.getAttribute("y"))]));
        }""",
        [low, high],
    )
    assert len(panels) == 3
    for numbers in panels:
        values = [float(text.replace("\u2212", "-")) for text, _ in numbers]
        assert len(values) >= 2
        slope = (numbers[-1][1] - numbers[0][1]) / (values[-1] - values[0])
        for (_, y), value in zip(numbers, values, strict=True):
            assert y == pytest.approx(numbers[0][1] + slope * (value - values[0]), abs=1e-3)
        assert -slope * (high - low) <= 150 + 1e-6


def test_a_flat_curve_is_as_finely_divided_as_its_value(visit: Visit) -> None:
    numbers: list[str] = visit().evaluate("""async () => {
        const { curves } = await import("/static/runs/curves.js");
        const points = [[1, 0.001], [2, 0.001]];
        const panel = { title: "", height: 60, series: [{ run: 0, kind: "thin", dots: false, points }] };
        const { node } = curves([panel], 600, () => {});
        return [...node.querySelectorAll("[text-anchor=end]")].map((text) => text.textContent);
    }""")
    assert len(set(numbers)) >= 3
    assert all(0 < float(number) < 0.002 for number in numbers)


def test_a_training_under_way_appears_moves_on_and_is_followed_when_it_is_resumed(
    runs: Visit, training: Run
) -> None:
    page = runs(w="-")
    shown = entry(page, training.name)
    expect(shown).to_contain_text("training", timeout=TIMEOUT)
    expect(shown).to_contain_text("update 2", timeout=TIMEOUT)
    append_log(training, 3)
    expect(shown).to_contain_text("update 3", timeout=TIMEOUT)
    expect(page.locator(".scrub output")).to_contain_text("update 3")
    expect(page.locator(".samples td").nth(1)).to_have_text("Es 3 regnet.")
    expect(page.locator(".samples u")).to_have_text("3")
    with (training.folder / "log.jsonl").open("a") as file:
        file.write("damaged\n")
    expect(shown).to_contain_text("damaged lines in its log: 1")
    write_log(training, 1)  # resumed from an earlier checkpoint
    expect(shown).to_contain_text("update 1 ", timeout=TIMEOUT)
    append_log(training, 2)
    expect(shown).to_contain_text("update 2", timeout=TIMEOUT)


def test_the_log_of_a_training_is_followed_while_somebody_can_see_it(runs: Visit, training: Run) -> None:
    page = runs(w="-")
    expect(entry(page, training.name)).to_contain_text("update 2", timeout=TIMEOUT)
    hide(page, True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    append_log(training, 3)
    page.wait_for_timeout(2500)  # twice as long as between two requests
    assert not [url for url in asked if "/api/log" in url]
    hide(page, False)
    expect(entry(page, training.name)).to_contain_text("update 3", timeout=TIMEOUT)


def test_logs_that_are_followed_in_several_windows_leave_connections_for_others(
    visit: Visit, page: Page, training: Run, root: Path, tolerated: list[str]
) -> None:
    """Browsers open six to a server, for all windows together."""
    tolerated.append("status of 404")  # these runs have no model to compare
    names = [training.name, "second", "third"]
    for name in names[1:]:
        shutil.copytree(training.folder, root / name)
    for window in (page.context.new_page(), page.context.new_page()):
        window.goto("/#" + urlencode({"v": "runs", "w": ",".join(names)}))
        for name in names:
            expect(entry(window, name)).to_contain_text("update 2", timeout=TIMEOUT)
    assert translation(visit())
    for name in names[1:]:
        shutil.rmtree(root / name)


def test_a_log_goes_on_at_the_next_server(
    runs: Visit, page: Page, training: Run, tolerated: list[str]
) -> None:
    tolerated.append("ERR_CONNECTION_REFUSED")
    shown = entry(runs(w="-"), training.name)
    expect(shown).to_contain_text("update 2", timeout=TIMEOUT)
    page.route("**/api/log?*", lambda route: route.abort("connectionrefused"))
    expect(shown).to_contain_text("server does not answer", timeout=TIMEOUT)
    page.unroute("**/api/log?*")
    append_log(training, 3)
    expect(shown).to_contain_text("update 3", timeout=TIMEOUT)
    expect(shown.locator(".state")).to_have_text("training")


def test_a_training_that_begins_while_the_page_is_open_appears_and_moves_nothing(
    runs: Visit, request: pytest.FixtureRequest
) -> None:
    page = runs(w="-")
    expect(page.locator(".legend li")).to_have_count(1)
    expect(page.locator(".filters [role=status]")).to_contain_text("lines")
    grid = page.locator(".grid")
    grid.evaluate("grid => (grid.scrollTop = 5000)")
    run: Run = request.getfixturevalue("training")
    expect(entry(page, run.name)).to_contain_text("training", timeout=TIMEOUT)
    model = page.locator("#run")
    expect(model.locator(f"option[value='{run.name}']")).to_have_count(1)
    expect(model).to_have_value("run")
    assert grid.evaluate("grid => grid.scrollTop") > 0


def test_whether_a_run_is_being_trained_is_shown_in_every_view(visit: Visit, root: Path) -> None:
    facts = visit().locator("#run-facts")
    with FileLock(root / ".run.lock"):
        expect(facts).to_contain_text("still training", timeout=TIMEOUT)
    expect(facts).not_to_contain_text("still training", timeout=TIMEOUT)


def test_a_run_is_chosen_before_its_first_checkpoint_and_translates_from_then_on(
    page: Page, root: Path, site: Served, training: Run, tolerated: list[str]
) -> None:
    tolerated.append("status of 404")
    page.goto("/#" + urlencode({"run": training.name, "q": SENTENCE}))
    expect(page.locator("#problem")).to_contain_text("no checkpoint yet")
    expect(page.locator("#run")).to_have_value(training.name)
    expect(page.locator("#run-facts")).to_have_text(re.compile(r"^\w+ · still training$"))
    shutil.copytree(root / "run" / "model", training.checkpoint_folder / "update-00000020")
    assert translation(page)
    expect(page.locator("#problem")).to_be_hidden()
    page.locator("#view-look .large .graphic").first.wait_for()  # until nothing is asked of the run any more
    later = shutil.copytree(root / OTHER / "model", root / "later")
    later.rename(training.checkpoint_folder / "update-00000040")
    expect(page.locator("#output")).to_contain_text(best(site, OTHER)["text"], timeout=TIMEOUT)
    page.locator("#view-look .large .graphic").first.wait_for()


def test_a_run_that_was_trained_again_while_nobody_looked_translates_anew(
    visit: Visit, root: Path, site: Served
) -> None:
    run = small_run(root, "again")
    later = shutil.copytree(root / OTHER / "model", root / "later")
    page = visit(run=run.name)
    page.locator("#view-look .large .graphic").first.wait_for()  # the last of what it asks for
    hide(page, True)
    run.model_folder.rename(root / "earlier")
    later.rename(run.model_folder)
    hide(page, False)
    expect(page.locator("#output")).to_contain_text(best(site, OTHER)["text"], timeout=TIMEOUT)
    page.close()  # or it would ask for the run
    shutil.rmtree(run.folder)
    shutil.rmtree(root / "earlier")


def test_a_system_that_is_compared_translates_anew_with_its_next_checkpoint(
    runs: Visit, root: Path, site: Served, training: Run
) -> None:
    shutil.copytree(root / "run" / "model", training.checkpoint_folder / "update-00000020")
    page = runs(w=training.name)
    second = page.locator(".systems .text").nth(1)
    expect(second).to_have_text(best(site, "run")["text"])
    later = shutil.copytree(root / OTHER / "model", root / "later")
    later.rename(training.checkpoint_folder / "update-00000040")
    expect(second).to_have_text(best(site, OTHER)["text"], timeout=TIMEOUT)
    expect(page.locator(".opinions table")).to_be_visible()


def test_a_run_that_is_damaged_while_the_page_is_open_is_named(runs: Visit, root: Path) -> None:
    page = runs()
    line = page.locator(".runs > .problem")
    expect(line).to_be_hidden()
    damaged = Run(root, "broken")
    shutil.copytree(root / "run", damaged.folder)
    (damaged.folder / "config.yaml").write_text("damaged")
    expect(line).to_contain_text(str(damaged.folder / "config.yaml"))
    shutil.rmtree(damaged.folder)
    expect(line).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(runs: Visit, scheme: str) -> None:
    page = runs(w=WITH_OTHER)
    expect(page.locator(".attention .stage > svg")).to_have_count(2)
    assert violations(page) == ""


def test_a_narrow_window_scrolls_in_one_direction_only(runs: Visit) -> None:
    page = runs(w=WITH_OTHER)
    assert not scrolls_sideways(page, 360)
    expect(page.locator(".runs .parts")).to_be_visible()
