"""The Learn view: a story of steps with the model's own numbers, by mouse and by keyboard, restored by an address."""

import json
import math
import re
from typing import Any

import pytest
from in_browser import (
    SENTENCE,
    Visit,
    exported,
    hold_answer,
    scrolls_sideways,
    until_held,
    until_read_out,
    violations,
)
from playwright.sync_api import Locator, Page, Route, expect

from served import Served

STEPS = 19


@pytest.fixture
def learn(visit: Visit) -> Visit:
    """Opens the view in a state and waits until its pictures are drawn."""

    def learn(**state: object) -> Page:
        page = visit(v="learn", **state)
        expect(page.locator("#view-learn .step .stage > svg")).to_have_count(STEPS)
        expect(page.locator("#view-learn.stale")).to_have_count(0)
        return page

    return learn


def step(page: Page, name: str) -> Locator:
    return page.locator(f"[data-step={name}]")


def numbers(site: Served, page: Page, **changes: object) -> Any:
    """What the server says of the sentence and the best translation that the page shows."""
    ids = page.evaluate(
        """async (text) => {
            const { stream } = await import("/static/api.js");
            let found = null;
            await stream("/api/search", { system: null, text, prefix: null, beam_size: null, length_penalty: null,
                pruned: 0, reference: null }, { onEvent: (name, data) => name === "result" && (found = data) });
            return found.hypotheses[0].ids;
        }""",
        SENTENCE,
    )
    asked = {"text": SENTENCE, "target": {"ids": ids}, "kind": "cross", "layer": 1, "head": 0} | changes
    return site.post("/api/learn", asked).json


def test_every_step_has_its_picture_table_formula_and_code(learn: Visit) -> None:
    page = learn()
    steps = page.locator("#view-learn .step")
    expect(steps).to_have_count(STEPS)
    for one in steps.all():
        name = one.get_attribute("data-step")
        assert one.locator("h2").inner_text()
        assert len(one.locator(".told p").all_inner_texts()) in (2, 3)
        assert one.locator(".code summary").inner_text().startswith("Code: ")
        assert (one.locator("math").count() > 0) == (name != "pieces")
        one.locator("details.table").evaluate("element => element.open = true")
        expect(one.locator("details.table tbody tr").first).to_be_attached()
        assert "NaN" not in one.inner_text()
        assert "undefined" not in one.inner_text()
        assert "NaN" not in one.locator(".stage").inner_html()
    expect(step(page, "mask").locator(".told")).to_contain_text(
        "2 of them"
    )  # the padding of a short sentence
    step(page, "mask").locator(".code summary").click()
    expect(step(page, "mask").locator(".code")).to_contain_text("def padding_mask(")


def test_padding_is_counted_where_there_is_some(visit: Visit) -> None:
    told: list[str] = visit().evaluate("""async () => {
        const { stepsOf } = await import("/static/learn/story.js");
        const { text } = stepsOf({ norm: "pre" }).find(({ id }) => id === "mask");
        return [1, 2].map((real) => text({ data: { kind: "encoder" }, labels: { keys: ["a", "b"] }, real })[0]);
    }""")
    assert "here 1 of them" in told[0]
    assert "of them" not in told[1]


def test_tables_hold_the_numbers_of_the_model(learn: Visit, site: Served) -> None:
    page = learn()
    expected = numbers(site, page)
    step(page, "scores").locator("summary", has_text="Table").click()
    expect(step(page, "scores").locator("tbody tr").first).to_be_visible()
    rows = step(page, "scores").locator("tbody tr").all()
    shown = [[float(cell.replace("−", "-")) for cell in row.locator("td").all_inner_texts()] for row in rows]
    count = len(expected["tokens"]["source"])
    assert shown == [row[:count] for row in expected["attention"]["scores"]]


def test_the_map_and_the_list_lead_to_steps(learn: Visit) -> None:
    page = learn()
    page.get_by_role("button", name="feed-forward, encoder").or_(
        page.get_by_role("button", name="feed-forward", exact=True)
    ).first.click()
    expect(step(page, "feed_forward").locator("h2")).to_be_focused()
    expect(page.locator(".map .block.lit")).to_contain_text("feed-forward")
    page.locator(".map").get_by_role("button", name="self-attention", exact=True).click()
    expect(page.get_by_role("button", name="Encoder", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(step(page, "project")).to_be_in_viewport()
    page.get_by_role("button", name="Next step").click()
    expect(page.get_by_role("combobox", name="Step")).to_have_value("scores")
    page.get_by_role("combobox", name="Step").select_option("probability")
    expect(step(page, "probability")).to_be_in_viewport()
    expect(page).to_have_url(re.compile("kind=encoder&step=17"))


def test_the_map_is_walked_by_arrows(learn: Visit) -> None:
    page = learn()
    page.locator(".map [tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")  # the model is drawn from its foot up
    expect(page.locator(".map :focus")).to_have_attribute("aria-label", "embedding, encoder")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".map :focus")).to_have_attribute("aria-label", "embedding, encoder")
    page.keyboard.press(" ")
    expect(step(page, "embedding").locator("h2")).to_be_focused()


def test_an_address_restores_the_step(learn: Visit) -> None:
    page = learn(step=9, kind="decoder", layer=0, head=1)
    expect(step(page, "softmax")).to_be_in_viewport()
    expect(page.get_by_role("combobox", name="Step")).to_have_value("softmax")
    expect(page.locator(".steppers")).to_contain_text("Layer 1 of 2")
    expect(page.locator(".steppers")).to_contain_text("Head 2 of 2")


def test_an_address_with_numbers_that_make_no_sense_has_the_defaults(learn: Visit) -> None:
    page = learn(step=-1, layer=1.5)
    expect(page.get_by_role("combobox", name="Step")).to_have_value("pieces")
    expect(page.locator(".steppers")).to_contain_text("Layer 2 of 2")


def test_the_step_is_still_there_after_a_look_at_another_view(learn: Visit) -> None:
    page = learn(step=9)
    expect(step(page, "softmax")).to_be_in_viewport()
    page.keyboard.press("1")
    page.locator("#view-look .large .graphic").first.wait_for()
    page.keyboard.press("4")
    expect(step(page, "softmax").locator("h2")).to_be_in_viewport()
    expect(page.get_by_role("combobox", name="Step")).to_have_value("softmax")


def test_the_step_stays_when_another_model_is_shown(learn: Visit) -> None:
    page = learn(step=9)

    def as_of_another(route: Route) -> None:
        response = route.fetch()
        found = response.json()
        route.fulfill(response=response, json=found | {"model": found["model"] | {"other": True}})

    page.route("**/api/learn", as_of_another)
    page.keyboard.press("]")
    expect(page.locator(".steppers")).to_contain_text("Layer 1 of 2")
    expect(page.get_by_role("combobox", name="Step")).to_have_value("softmax")
    expect(step(page, "softmax").locator("h2")).to_be_in_viewport()


def test_keys_change_layer_and_head_and_what_is_followed(learn: Visit) -> None:
    page = learn(kind="encoder", layer=0, head=0)
    until_read_out(page)
    page.keyboard.press("]")
    expect(page.locator(".steppers")).to_contain_text("Layer 2 of 2")
    page.keyboard.press(".")
    expect(page.locator(".steppers")).to_contain_text("Head 2 of 2")
    page.keyboard.press("[")
    expect(page.locator(".steppers")).to_contain_text("Layer 1 of 2")
    chips = page.locator(".follow").first.locator("button")
    chosen = page.locator(".follow").first.locator("[aria-pressed=true]")
    before = chosen.inner_text()
    step(page, "softmax").locator(".stage").focus()
    page.keyboard.press("ArrowDown")
    expect(chosen).not_to_have_text(before)
    after = chips.all_inner_texts()[chips.all_inner_texts().index(before) + 1]
    expect(chosen).to_have_text(after)
    expect(step(page, "softmax").locator(".told")).to_contain_text(f"“{after}”")
    expect(page.locator("#live")).to_contain_text("percent")


@pytest.mark.parametrize("name", ["cross", "logits", "probability", "search"])
def test_arrows_in_a_picture_of_the_translation_follow_it_whatever_attention_is_chosen(
    learn: Visit, name: str
) -> None:
    page = learn(kind="encoder")
    until_read_out(page)
    source, target = (page.locator(".follow").nth(side) for side in (0, 1))
    chosen = source.locator("[aria-pressed=true]").inner_text()
    pieces = target.locator("button").all_inner_texts()
    target.locator("button").first.click()
    step(page, name).locator(".stage").focus()
    page.keyboard.press("ArrowRight")
    expect(target.locator("button").nth(1)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#live")).to_contain_text(f"after {pieces[1]}")
    expect(source.locator("[aria-pressed=true]")).to_have_text(chosen)


def test_an_answer_that_was_overtaken_does_not_replace_a_later_one(learn: Visit) -> None:
    page = learn(kind="encoder", layer=0, head=0)
    until_read_out(page)
    hold_answer(page, "/api/learn")
    page.keyboard.press("]")
    until_held(page)
    page.keyboard.press(".")
    expect(page.locator(".steppers")).to_contain_text("Head 2 of 2")
    page.evaluate("async () => { release(); await fetch('/health'); }")
    expect(page.locator(".learn:not(.stale) .steppers")).to_have_text("‹Layer 2 of 2›‹Head 2 of 2›")


def test_a_piece_is_followed_by_mouse(learn: Visit) -> None:
    page = learn()
    target = page.locator(".follow").nth(1).locator("button")
    target.first.click()
    expect(target.first).to_have_attribute("aria-pressed", "true")
    expect(step(page, "logits").locator(".told")).to_contain_text("After “<s>”")


def test_an_address_restores_what_is_followed(learn: Visit) -> None:
    page = learn(kind="cross")
    step(page, "softmax").locator(".stage").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    told = step(page, "softmax").locator(".told")
    chosen = page.locator(".follow").nth(1).locator("[aria-pressed=true]")
    followed, said = chosen.inner_text(), told.text_content() or ""
    page.wait_for_url("**key=**")
    page.reload()
    expect(chosen).to_have_text(followed)
    expect(told).to_have_text(said)


def test_another_translation_is_followed_through(learn: Visit) -> None:
    page = learn()
    pieces = page.locator(".follow").nth(1).locator("button")
    before = pieces.all_inner_texts()
    page.locator("#hypotheses [role=option]").nth(1).click()
    expect(pieces).not_to_have_text(before)


def test_a_temperature_flattens_the_probabilities(learn: Visit) -> None:
    page = learn()
    picture = step(page, "probability")
    picture.locator("summary", has_text="Table").click()
    highest = picture.locator("tbody tr").first.locator("td").nth(2)

    def percent() -> float:
        return float(highest.inner_text().strip("<%\u2009 "))

    plain = percent()
    slider = page.get_by_role("slider", name="Temperature")
    slider.focus()
    page.keyboard.press("End")
    assert percent() < plain
    page.keyboard.press("Home")
    assert percent() > plain


def test_steps_lead_to_the_other_views(learn: Visit) -> None:
    page = learn(kind="encoder")
    page.get_by_role("button", name="Take cross-attention apart").click()
    expect(page.get_by_role("button", name="Cross", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Watch the search").click()
    expect(page.locator("#view-search")).to_be_visible()


def test_a_sentence_too_long_to_be_shown_is_explained(visit: Visit, tolerated: list[str]) -> None:
    tolerated.append("status of 400")
    page = visit(v="learn", q="Satz Worte " * 40)
    expect(page.locator("#view-learn .pages > .problem")).to_contain_text("64 pieces")
    page.locator("#input").fill(SENTENCE)
    expect(page.locator("#view-learn .pages > .problem")).to_be_hidden()


ROTARY = """async (half) => {
    const { positions } = await import("/static/learn/positions.js");
    const names = [...Array(61).keys()].map(String);
    const rounded = (of) => names.map((t) => [...Array(half).keys()].map(
        (pair) => Number(of(t * 10000 ** (-pair / half)).toFixed(4)),
    ));
    const rotation = { cosine: rounded(Math.cos), sine: rounded(Math.sin) };
    const { graphic, table } = positions({
        data: { rotation, kind: "cross" }, labels: { target: names }, side: "target", q: 60, width: 600, follow() {},
    });
    return {
        degrees: [...table().rows].slice(1).map((row) => row.lastChild.textContent),
        hands: [...graphic.querySelectorAll(".hand.thick")].map((hand) => hand.getAttribute("transform")),
    };
}"""


def test_how_far_a_position_turns_is_told_of_slow_hands_too(visit: Visit) -> None:
    degrees = visit().evaluate(ROTARY, 32)["degrees"]
    assert degrees == [f"{math.degrees(60 * 10_000 ** (-pair / 32)):.1f}" for pair in range(32)]


def test_the_hands_are_turned_as_every_program_for_pictures_understands(visit: Visit) -> None:
    hands = visit().evaluate(ROTARY, 32)["hands"]
    angles = [float(re.fullmatch(r"rotate\((\S+) \S+ \S+\)", hand)[1]) for hand in hands]
    expected = [-math.degrees(60 * 10_000 ** (-pair / 32)) for pair in (0, 2, 4, 8, 16, 24)]
    assert [angle % 360 for angle in angles] == pytest.approx([angle % 360 for angle in expected], abs=0.1)


def test_nothing_moves_when_little_motion_is_asked_for(learn: Visit) -> None:
    page = learn()
    assert page.evaluate("document.getAnimations().length") == 0


def test_a_picture_that_cannot_be_exported_says_so(learn: Visit) -> None:
    page = learn()
    page.evaluate("() => { HTMLCanvasElement.prototype.toBlob = (take) => take(null); }")
    page.get_by_role("button", name="Export Pieces and their ids").click()
    page.locator(".menu:popover-open").get_by_role("button", name="PNG").click()
    expect(step(page, "pieces").locator(".problem")).to_contain_text("too large")


def test_a_picture_is_exported_with_its_numbers(learn: Visit) -> None:
    page = learn()
    title = step(page, "softmax").locator("h3").inner_text()
    keys = json.loads(exported(page, title, "JSON").read_text("utf-8"))
    assert abs(sum(key["weight"] for key in keys) - 1) < 0.01


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(learn: Visit, scheme: str) -> None:
    page = learn()
    for name in ("scores", "softmax"):
        for details in step(page, name).locator("summary").all():
            details.click()
    assert violations(page) == ""


def test_a_narrow_window_scrolls_in_one_direction_only(learn: Visit) -> None:
    page = learn()
    assert not scrolls_sideways(page, 360)
    expect(page.locator(".reading")).to_be_visible()


def test_a_narrow_window_breaks_the_names_of_sublayers_and_cuts_none(learn: Visit) -> None:
    page = learn(step=3)
    page.set_viewport_size({"width": 390, "height": 844})
    picture = step(page, "stream").locator(".stage > svg")
    expect(picture.locator("text", has_text=re.compile("^attention$"))).to_have_count(2)
    expect(picture.locator("text", has_text=re.compile("^forward$"))).to_have_count(1)
    expect(picture.locator("text", has_text="…")).to_have_count(0)
