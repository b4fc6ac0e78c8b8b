"""The Search view: the beam as a tree, its settings and its time, steering it, and scoring a given translation."""

import json
import re

import pytest
from in_browser import SENTENCE, Visit, exported, hold_answer, translation, until_held
from playwright.sync_api import Page, Route, expect

from served import Served


def searched(visit: Visit, **state: object) -> Page:
    page = visit(v="search", **state)
    page.locator("#view-search .node").nth(3).wait_for()
    return page


def nodes_of(site: Served, **asked: object) -> list[dict[str, object]]:
    events = site.stream("/api/search", {"text": SENTENCE, "beam_size": 3, "pruned": 4} | asked)
    return [node for name, data in events if name == "step" for node in data["nodes"]]


def test_every_node_is_drawn_with_its_status_and_the_reason(visit: Visit, site: Served) -> None:
    page = searched(visit)
    nodes = nodes_of(site)
    expect(page.locator("#view-search .node")).to_have_count(len(nodes))
    pruned = next(node for node in nodes if node["status"] == "pruned")
    node = page.locator(f"#node-{pruned['id']}")
    assert "pruned" in (node.get_attribute("class") or "")
    node.click()
    expect(page.locator(".details .status")).to_contain_text(str(pruned["why"]))
    kept = page.locator("#view-search .node.kept:not(.best) .shape").nth(1)
    dashes = [
        one.evaluate("shape => getComputedStyle(shape).strokeDasharray")
        for one in (kept, node.locator(".shape"))
    ]
    assert dashes[0] != dashes[1]  # not by colour alone


def test_the_path_of_the_translation_is_emphasised(visit: Visit) -> None:
    page = searched(visit)
    length = page.locator("#output .piece").count()
    assert page.locator("#view-search .node.best").count() >= length
    page.locator("#hypotheses [role=option]").nth(1).click()
    selected = page.locator("#view-search .node[aria-selected=true]")
    expect(selected).to_have_count(1)
    assert "best" in (selected.get_attribute("class") or "")


def test_the_tree_is_walked_by_arrows_and_continued_from_by_enter(visit: Visit) -> None:
    page = searched(visit)
    tree = page.get_by_role("tree")
    tree.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    selected = page.locator("#view-search .node[aria-selected=true]")
    expect(selected).to_have_attribute("aria-level", "2")
    assert tree.get_attribute("aria-activedescendant") == selected.get_attribute("id")
    before = translation(page)
    page.keyboard.press("Enter")
    expect(page.locator("#output:not(.stale) .piece.forced")).to_have_count(1)
    assert translation(page) != before
    expect(tree).to_be_focused()
    page.keyboard.press("Backspace")
    expect(page.locator("#output .piece.forced")).to_have_count(0)
    assert translation(page) == before


def test_what_is_left_of_another_sentence_cannot_be_continued(visit: Visit, tolerated: list[str]) -> None:
    tolerated.append("status of 400")
    page = searched(visit)
    page.locator("#view-search .node.best").nth(2).click()
    expect(page.locator(".details")).not_to_have_attribute("inert", "")
    page.locator("#input").fill("dog " * 400)
    expect(page.locator("#problem")).to_be_visible()
    expect(page.locator(".details")).to_have_attribute("inert", "")
    page.locator("#output .piece").first.press("a")
    expect(page.locator("#output input, #output [contenteditable]")).to_have_count(0)


def test_an_alternative_in_a_nodes_place_is_forced(visit: Visit) -> None:
    page = searched(visit)
    page.locator("#view-search .node.best").nth(2).click()
    rows = page.locator(".details .rows .row")
    expect(rows).to_have_count(10)
    rows.filter(has_not=page.locator(".current")).filter(has_not_text="end").first.click()
    expect(page.locator("#output:not(.stale) .piece.forced")).not_to_have_count(0)
    expect(page.locator("#view-search .node.forced")).not_to_have_count(0)
    page.go_back()
    translation(page)
    expect(page.locator("#output .piece.forced")).to_have_count(0)


def test_beam_size_and_length_penalty_change_the_search_live(visit: Visit) -> None:
    page = searched(visit)
    beam = page.get_by_role("slider", name="Beam size")
    beam.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#hypotheses [role=option]")).to_have_count(2)
    expect(beam).to_have_attribute("aria-valuetext", "2")
    scores = page.locator("#hypotheses .score").all_inner_texts()
    penalty = page.get_by_role("slider", name="Length penalty")
    penalty.focus()
    page.keyboard.press("End")
    expect(page.locator("#hypotheses .score").first).not_to_have_text(scores[0])
    page.get_by_role("button", name="As the model was configured").click()
    expect(page.locator("#hypotheses [role=option]")).to_have_count(3)


def test_the_runs_own_beam_may_be_wider_than_one_may_ask_for(
    visit: Visit, site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.playground.settings, "beam_size", 2)
    page = searched(visit)
    expect(page.locator("#timing")).to_contain_text("beam 3")


def test_the_search_is_played_step_by_step(visit: Visit, site: Served) -> None:
    page = searched(visit)
    nodes = nodes_of(site)
    time = page.get_by_role("slider", name="Step of the search")
    time.focus()
    page.keyboard.press("Home")
    expect(page.locator("#view-search .node")).to_have_count(1)
    page.get_by_role("button", name="One step on").click()
    expect(page.locator("#view-search .node")).to_have_count(sum(node["step"] in (0, 1) for node in nodes))
    time.press("End")
    time.press("ArrowLeft")
    time.press("ArrowLeft")
    expect(page.locator("#view-search .node")).not_to_have_count(len(nodes))
    play = page.get_by_role("button", name="Play")
    assert play.evaluate("button => (button.click(), button.title)") == "Pause"
    expect(page.locator("#view-search .node")).to_have_count(len(nodes))
    expect(play).to_be_visible()
    time.press("Home")
    page.locator("#tab-look").click()
    page.locator("#input").fill("Ja!")
    translation(page)
    page.locator("#tab-search").click()
    expect(page.locator("#view-search .node")).to_have_count(len(nodes_of(site, text="Ja!")))


def test_what_is_pruned_at_the_end_was_kept_until_then(visit: Visit, page: Page) -> None:
    def prune_a_kept_node(route: Route) -> None:
        answer = route.fetch()
        events = [json.loads(line[6:]) for line in answer.text().splitlines() if line.startswith("data: ")]
        last_but_one = events[-3]["nodes"]
        late.append(next(node["id"] for node in last_but_one if node["status"] == "kept"))
        body = answer.text().replace('"pruned_late":[', f'"pruned_late":[{{"id":{late[-1]},"why":"late"}},')
        route.fulfill(response=answer, body=body.replace("},]", "}]"))

    late: list[int] = []
    page.route("**/api/search", prune_a_kept_node)
    searched(visit)
    node = page.locator(f"#node-{late[-1]}")
    expect(node).to_have_class(re.compile(r"\bpruned\b"))
    page.get_by_role("slider", name="Step of the search").press("ArrowLeft")
    expect(node).to_have_class(re.compile(r"\bkept\b"))


def test_an_address_restores_the_step_that_is_shown(visit: Visit) -> None:
    page = searched(visit, at=2)
    time = page.get_by_role("slider", name="Step of the search")
    expect(time).to_have_attribute("aria-valuetext", re.compile("step 2 of"))
    time.press("ArrowRight")
    page.wait_for_url("**at=3**")
    time.press("End")
    page.wait_for_url(lambda url: "at=" not in url)


def test_after_a_reload_undo_takes_the_last_piece_back(visit: Visit) -> None:
    page = searched(visit)
    page.locator("#view-search .node.best").nth(3).dblclick()
    forced = page.locator("#output:not(.stale) .piece.forced")
    expect(forced).to_have_count(3)
    page.wait_for_url("**p=**")
    page.reload()
    expect(forced).to_have_count(3)
    page.keyboard.press("Backspace")
    expect(forced).to_have_count(2)


def test_what_was_found_for_the_last_sentence_cannot_be_chosen_for_the_next(visit: Visit) -> None:
    page = searched(visit)
    options = page.locator("#hypotheses [role=option]")
    hold_answer(page, "/api/search")
    page.locator("#input").fill("Ja!")
    until_held(page)
    options.nth(1).click()
    page.locator("#view-search .node").last.dispatch_event("click", {"bubbles": True})
    page.evaluate("release()")
    translation(page)
    expect(options.first).to_have_attribute("aria-selected", "true")


def test_a_translation_that_was_not_found_is_shown_with_its_own_score_and_path(
    visit: Visit, site: Served
) -> None:
    found = site.stream("/api/search", {"text": SENTENCE, "beam_size": 3})[-1][1]["hypotheses"]
    ids = found[0]["ids"][:2]
    assert ids not in [hypothesis["ids"] for hypothesis in found]
    page = searched(visit, t=".".join(map(str, ids)))
    own = site.post("/api/analyse", {"text": SENTENCE, "target": {"ids": ids}}).json
    expect(page.locator("#timing")).to_contain_text(f"score {own['score']:.2f}".replace("-", "\u2212"))
    expect(page.locator("#live")).to_have_text(own["text"])
    expect(page.locator("#view-search .node.best")).to_have_count(1 + len(ids))
    page.locator("#tab-runs").click()
    expect(page.locator(".systems .text").first).to_have_text(own["text"])
    expect(page.locator(".systems .measures").first).to_contain_text(
        f"{own['score']:.3f}".replace("-", "\u2212")
    )
    page.locator("#hypotheses [role=option]").nth(1).click()
    expect(page.locator("#timing")).to_contain_text(f"score {found[1]['score']:.2f}".replace("-", "\u2212"))


def test_a_translation_is_scored_and_where_it_left_the_beam(visit: Visit, site: Served) -> None:
    page = searched(visit)
    page.get_by_label("Score a translation").fill("Ja! Worte")
    page.keyboard.press("Enter")
    reference = site.stream("/api/search", {"text": SENTENCE, "beam_size": 3, "reference": "Ja! Worte"})[-1][
        1
    ]["reference"]
    expect(page.locator(".verdict")).to_contain_text(f"{reference['score']:.3f}".replace("-", "\u2212"))
    expect(page.locator(".verdict")).to_contain_text(f"left the beam at step {reference['left_at']}")
    expect(page.locator(".scored .chip")).to_have_count(len(reference["pieces"]))
    assert "left" in (
        page.locator(".scored .chip").nth(reference["left_at"] - 1).get_attribute("class") or ""
    )
    expect(page.locator(".scored b[lang=de]")).to_have_count(len(reference["pieces"]))
    expect(page.locator("#reference")).to_have_attribute("lang", "de")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".scored .chip")).to_have_count(0)
    expect(page.get_by_label("Score a translation")).to_have_value("")
    expect(page.get_by_label("Score a translation")).to_be_focused()


def test_a_translation_that_is_too_long_to_score_is_named_beside_the_search(visit: Visit) -> None:
    page = searched(visit, ref="Worte " * 500)
    expect(page.locator(".verdict")).to_contain_text("reference has")
    expect(page.locator(".node").first).to_be_visible()


def test_the_tree_is_exported_with_its_table(visit: Visit, site: Served) -> None:
    page = searched(visit)
    count = len(nodes_of(site))
    data = json.loads(exported(page, "The search", "JSON").read_text("utf-8"))
    assert len(data["nodes"]) == count
    html = exported(page, "The search", "HTML page").read_text("utf-8")
    assert html.count("<tr>") == count  # the root has none, the heading one


def test_a_long_search_is_zoomed(visit: Visit) -> None:
    page = searched(visit)
    graphic = page.locator("#view-search .stage > svg")
    width = float(graphic.get_attribute("width") or 0)
    page.get_by_role("button", name="Larger").click()
    assert float(graphic.get_attribute("width") or 0) > width
    page.get_by_role("button", name="Smaller").click()
    page.get_by_role("button", name="Smaller").click()
    assert float(graphic.get_attribute("width") or 0) < width
