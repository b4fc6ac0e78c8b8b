"""The page around the views: typing, hypotheses, forced beginnings, the address, keys, help, errors, accessibility."""

import json
import re
from urllib.parse import urlencode

import pytest
from in_browser import (
    SENTENCE,
    Visit,
    force_alternative,
    hold_answer,
    scrolls_sideways,
    translation,
    until_held,
    violations,
)
from playwright.sync_api import Browser, Page, Route, expect

from served import Served


def test_a_sentence_is_translated_as_it_is_typed(page: Page) -> None:
    page.goto("/")
    expect(page.locator("#output")).to_contain_text("as you type")
    page.locator("#input").press_sequentially("Satz 1")
    first = translation(page)
    assert page.locator("#hypotheses [role=option]").count() == 3
    page.locator("#input").fill("Ja! Worte wie 7")
    expect(page.locator("#hypotheses .text").first).not_to_have_text(first)
    page.locator("#view-look .large .graphic").first.wait_for()
    for key in ("2", "4", "3"):
        page.locator("#input").blur()
        page.keyboard.press(key)
        page.locator("section.view:not([hidden]) .graphic").first.wait_for()
    page.locator("#input").fill("")
    expect(page.locator("#output")).to_contain_text("as you type")
    expect(page.locator("#hypotheses [role=option]")).to_have_count(0)
    expect(page.locator("#timing")).to_have_text("")
    for view in ("look", "search", "runs", "learn"):
        assert page.locator(f"#view-{view}.stale, #view-{view} .stale").count(), "of the last sentence"


def test_a_hypothesis_is_chosen_by_mouse_and_by_keyboard(visit: Visit) -> None:
    page = visit()
    options = page.locator("#hypotheses [role=option]")
    texts = [text.strip() for text in page.locator("#hypotheses .text").all_inner_texts()]
    options.nth(1).click()
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    assert translation(page) == texts[1]
    options.nth(1).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(options.nth(2)).to_have_attribute("aria-selected", "true")
    assert translation(page) == texts[2]
    page.go_back()
    assert translation(page) == texts[1]


def test_an_empty_hypothesis_can_be_chosen(page: Page, visit: Visit) -> None:
    def with_empty(route: Route) -> None:
        answer = route.fetch()
        start, result = answer.text().split("event: result\ndata: ")
        data = json.loads(result)
        data["hypotheses"][1] |= {"ids": [], "text": "", "pieces": data["hypotheses"][1]["pieces"][-1:]}
        route.fulfill(response=answer, body=f"{start}event: result\ndata: {json.dumps(data)}\n\n")

    page.route("**/api/search", with_empty)
    option = visit().locator("#hypotheses [role=option]").nth(1)
    option.focus()
    expect(page.locator("#tooltip")).to_contain_text("log-probability")
    page.keyboard.press(" ")
    expect(option).to_have_attribute("aria-selected", "true")
    expect(page.locator("#output")).to_have_text("end")
    expect(page.locator(".chips[data-side=target] .chip")).to_have_count(1)


def test_an_alternative_forces_the_beginning_and_undo_restores_the_translation(visit: Visit) -> None:
    page = visit()
    before = translation(page)
    for undo in (
        lambda: page.locator("#undo").click(),
        lambda: page.keyboard.press("Backspace"),
        page.go_back,
    ):
        force_alternative(page)
        expect(page.locator("#output .piece.forced")).to_have_count(2)
        assert translation(page) != before
        expect(page.locator("#output .piece").nth(2)).to_be_focused()
        undo()
        expect(page.locator("#output .piece.forced")).to_have_count(0)
        assert translation(page) == before


def test_undo_takes_one_choice_back_wherever_back_and_forward_led(visit: Visit) -> None:
    page = visit()
    forced = page.locator("#output:not(.stale) .piece.forced")
    force_alternative(page)
    expect(forced).to_have_count(2)
    once = translation(page)
    page.locator("#output .piece:not(.forced)").first.click()
    page.locator(".alternatives .rows .row:not(:has(.current)):not(:has-text('end'))").first.click()
    expect(forced).to_have_count(3)
    for ways, left in (((page.go_back, page.go_forward), 2), ((page.go_back,), 3)):
        for way in ways:
            before = page.url
            way()
            page.wait_for_url(lambda url, before=before: url != before)
        if left == 3:  # undo itself was taken back
            expect(forced).to_have_count(3)
        page.keyboard.press("Backspace")
        expect(forced).to_have_count(2)
        assert translation(page) == once
    page.keyboard.press("Backspace")
    expect(forced).to_have_count(0)


def test_an_open_list_takes_the_keys_and_goes_with_escape(visit: Visit) -> None:
    page = visit()
    force_alternative(page)
    expect(page.locator("#output:not(.stale) .piece.forced")).to_have_count(2)
    page.locator("#view-look:not(.stale) .chips").first.wait_for()
    chip = page.locator(".chips .chip").first
    chip.click()  # which Look would let go at Escape
    page.locator("#output .piece").first.click()
    expect(page.locator(".alternatives .rows .row")).to_have_count(10)
    for key in ("2", "Backspace", "Escape"):
        page.keyboard.press(key)
    expect(page.locator(".alternatives")).to_have_count(0)
    expect(page.locator("#view-look")).to_be_visible()
    expect(page.locator("#output .piece.forced")).to_have_count(2)
    page.mouse.move(0, 0)
    expect(chip).to_have_class(re.compile("lit"))
    page.keyboard.press("Escape")
    expect(chip).not_to_have_class(re.compile("lit"))


def test_a_list_closes_when_the_focus_leaves_it_and_the_keys_lead_to_the_views_again(visit: Visit) -> None:
    page = visit()
    opener = page.get_by_role("button", name="Export How sure")
    for opening, opened in (
        (opener, ".menu:popover-open"),
        (page.locator("#output .piece").nth(1), ".alternatives"),
    ):
        for way_out, presses in (("Tab", 5), ("Shift+Tab", 1)):
            page.keyboard.press("1")
            opening.click()
            expect(page.locator(opened)).to_be_visible()
            for _ in range(presses):
                page.keyboard.press(way_out)
            expect(page.locator(opened)).to_have_count(0)
            page.keyboard.press("2")
            expect(page.locator("#view-search")).to_be_visible()


def test_what_opens_beside_something_stays_in_the_window_and_hides_nothing_of_it(visit: Visit) -> None:
    page = visit()
    page.set_viewport_size({"width": 1280, "height": 240})
    for place, block, opened in (
        (page.get_by_role("button", name="Export Lines"), "end", ".menu:popover-open"),
        (page.locator("#output .piece").nth(1), "end", ".alternatives"),
        (page.locator(".chips[data-side=target] .chip").nth(1), "center", "#tooltip:has(.row)"),
    ):
        place.evaluate("(element, block) => element.scrollIntoView({ block })", block)
        place.hover()
        if opened != "#tooltip:has(.row)":
            place.click()
        page.locator(opened).wait_for()
        page.wait_for_function(  # a menu is placed a moment after it has opened
            """([opened, place]) => {
                const [box, anchor] = [document.querySelector(opened), place].map((one) => one.getBoundingClientRect());
                const apart = box.bottom <= anchor.top || box.top >= anchor.bottom;
                return box.height > 40 && box.top >= 0 && box.bottom <= innerHeight && apart;
            }""",
            arg=[opened, place.element_handle()],
        )
        page.keyboard.press("Escape")


def test_a_translation_may_be_ended_where_it_begins(page: Page, visit: Visit) -> None:
    def with_end(route: Route) -> None:
        answer = route.fetch()
        data = answer.json()
        data["target"][0]["alternatives"][1]["piece"] = "</s>"
        route.fulfill(response=answer, json=data)

    page.route("**/api/analyse", with_end)
    visit().locator("#output .piece").first.click()
    page.locator(".alternatives .row", has_text="end").first.click()
    expect(page.locator("#output")).to_have_text("end")


def test_there_is_nothing_to_export_where_nothing_is_shown(page: Page) -> None:
    page.goto("/")
    for key in ("1", "2", "3"):
        page.keyboard.press(key)
        figure = page.locator("section.view:not([hidden]) figure").first
        figure.wait_for(state="attached")
        for part in (
            page.locator("#view-look, #view-search, .compare").locator(".table, [aria-label^=Export]").all()
        ):
            expect(part).to_be_hidden()


def test_typing_over_a_word_forces_what_was_typed(visit: Visit) -> None:
    page = visit()
    before = translation(page)
    page.locator("#output .piece").first.focus()
    page.keyboard.type("Wor")
    expect(page.locator("#output input")).to_have_value("Wor")
    page.keyboard.press("Enter")
    expect(page.locator("#output")).to_contain_text(re.compile("^Wor"))
    assert page.locator("#output .piece.forced").count() >= 1
    assert translation(page).startswith("Wor")
    page.locator("#undo").click()
    expect(page.locator("#output .piece.forced")).to_have_count(0)
    assert translation(page) == before


def test_the_way_out_of_typing_over_restores_the_translation(visit: Visit) -> None:
    page = visit()
    before = translation(page)
    page.locator("#output .piece").first.focus()
    page.keyboard.press("W")
    page.locator("#output input").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator("#output .piece").first).to_be_focused()
    assert translation(page) == before


def test_characters_spelt_in_bytes_are_one_forced_text(visit: Visit) -> None:
    page = visit(v="search", p="~éé")
    assert translation(page).startswith("éé")
    expect(page.locator("#view-search .node.best.forced")).to_have_count(5)  # the space, and two bytes each
    page.locator("#output .piece:not(.forced)").first.click()
    expect(page.locator(".alternatives .hint")).to_have_text("after éé")
    expect(page.locator(".alternatives q")).to_have_attribute("lang", "de")
    page.keyboard.press("Escape")
    page.locator("#view-search .node.best.forced").last.click()
    expect(page.locator(".details .path")).to_have_text("éé")


def test_spaces_that_close_a_word_force_no_further_piece(visit: Visit) -> None:
    forced = {"~Hau": 1, "~Hau ": 1, "~ Hau  ist": 3, "5": 1, "5~ ": 1, "5~ ist ": 3, "": 0}
    forced["~Ha\u0075\u0300"] = 1  # three letters as they are read, however they were typed
    counts = visit().evaluate(
        """async (forced) => {
            const { forcedCount } = await import("/static/forcing.js");
            const pieces = ["▁Hau", "▁i", "st", "▁gut", "</s>"].map((piece) => ({ piece }));
            return forced.map((p) => forcedCount(p, pieces));
        }""",
        list(forced),
    )
    assert dict(zip(forced, counts, strict=True)) == forced


def test_the_way_out_of_typing_over_takes_back_nothing_else(visit: Visit) -> None:
    page = visit()
    force_alternative(page)
    expect(page.locator("#output .piece.forced")).to_have_count(2)
    expect(page.locator("#output .piece").nth(2)).to_be_focused()
    for key in ("W", "Backspace", "Escape"):
        page.keyboard.press(key)
    translation(page)
    expect(page.locator("#output .piece.forced")).to_have_count(2)
    page.locator("#undo").click()
    expect(page.locator("#output .piece.forced")).to_have_count(0)


HALF_A_SEARCH = """() => {
    const fetched = window.fetch;
    window.fetch = async (path, options) => {
        const answer = await fetched(path, options);
        if (path !== "/api/search") return answer;
        window.fetch = fetched;
        const events = (await answer.text()).split(/(?=event: result)/).map((part) => new TextEncoder().encode(part));
        return new Response(new ReadableStream({
            start(stream) {
                stream.enqueue(events[0]);
                window.release = () => (stream.enqueue(events[1]), stream.close());
            },
        }));
    };
}"""


def test_the_last_translation_cannot_be_typed_over_while_the_next_is_searched_for(visit: Visit) -> None:
    page = visit(v="search")
    before = translation(page)
    page.evaluate(HALF_A_SEARCH)
    force_alternative(page)
    # Its steps are there, but no result.
    expect(page.locator("#view-search .node.forced")).not_to_have_count(0)
    expect(page.locator("#output.stale .piece").nth(1)).to_be_focused()
    page.keyboard.press("W")
    expect(page.locator("#output.stale .piece.end")).to_have_count(1)
    page.evaluate("release()")
    assert translation(page) != before
    expect(page.locator("#output .piece").nth(2)).to_be_focused()
    page.evaluate(HALF_A_SEARCH)
    page.keyboard.press("W")
    field = page.locator("#output:not(.stale) input")
    expect(field).to_have_value("W")
    page.keyboard.press("o")
    expect(field).to_have_value("Wo")
    page.keyboard.press("Enter")
    assert "Wo" in translation(page)


def test_alternatives_are_those_of_the_translation_that_is_shown(visit: Visit) -> None:
    page = visit(v="learn")  # which asks for no analysis of what the search found
    hold_answer(page, "/api/analyse")
    page.evaluate("() => { location.hash += '&t=-'; }")
    until_held(page)
    page.locator("#output .piece").nth(1).click()
    page.evaluate("release()")
    expect(page.locator("#output")).to_have_text("end")
    expect(page.locator(".alternatives")).to_have_count(0)
    page.locator("#output .piece").click()
    page.locator(".alternatives .row").first.wait_for()


def test_the_focus_stays_where_the_visitor_put_it(visit: Visit) -> None:
    page = visit()
    page.locator("#output .piece").first.focus()
    page.keyboard.type("W")
    page.locator("#input").click()
    assert translation(page).startswith("W")
    expect(page.locator("#input")).to_be_focused()
    hold_answer(page, "/api/search")
    force_alternative(page)
    page.locator("#input").click()
    until_held(page)
    page.evaluate("release()")
    translation(page)
    expect(page.locator("#input")).to_be_focused()


def test_alternatives_open_and_close_by_keyboard(visit: Visit) -> None:
    page = visit()
    pieces = page.locator("#output .piece")
    pieces.first.focus()
    page.keyboard.press("ArrowRight")
    expect(pieces.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".alternatives .row").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".alternatives .row").nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".alternatives")).to_have_count(0)
    expect(pieces.nth(1)).to_be_focused()
    for way_out in ("Escape", "Enter"):
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Type something else").click()
        expect(page.locator("#output input")).to_be_focused()
        page.keyboard.press(way_out)
        expect(pieces.nth(1)).to_be_focused()


def test_alternatives_that_are_overtaken_are_no_problem(visit: Visit) -> None:
    page = visit(v="learn")  # which does not ask for them itself
    hold_answer(page, "/api/analyse")
    first = page.locator("#output .piece").first
    first.click()
    until_held(page)
    page.locator("#hypotheses [role=option]").nth(1).click()
    first.click()
    page.locator(".alternatives .row").first.wait_for()
    expect(page.locator("#problem")).to_be_hidden()


def test_an_address_restores_everything_in_a_fresh_browser(
    visit: Visit, browser: Browser, site: Served
) -> None:
    page = visit(v="search", beam=2, lp=1.5)
    force_alternative(page)
    expect(page.locator("#output .piece.forced")).to_have_count(2)
    wanted = translation(page)
    page.locator("#copy-link").click()
    expect(page.locator("#copy-link")).to_have_text("Copied")
    address = page.evaluate("navigator.clipboard.readText()")
    assert "run=run" in address, "whatever the default of the server that it is opened at"
    with browser.new_context() as context:
        other = context.new_page()
        other.goto(address)
        assert translation(other) == wanted
        expect(other.locator("#output .piece.forced")).to_have_count(2)
        expect(other.locator("#tab-search")).to_have_attribute("aria-selected", "true")
        expect(other.locator("#timing")).to_contain_text("beam 2")
        assert other.locator("#hypotheses [role=option]").count() == 2


def test_keys_lead_to_the_views_the_sentence_and_the_help(visit: Visit) -> None:
    page = visit()
    for key, view in (("2", "search"), ("1", "look")):
        page.keyboard.press(key)
        expect(page.locator(f"#view-{view}")).to_be_visible()
        expect(page.locator(f"#tab-{view}")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("/")
    expect(page.locator("#input")).to_be_focused()
    page.keyboard.type("2?")
    expect(page.locator("#input")).to_have_value(re.compile(r"2\?"))
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_keys_of_one_sign_can_be_switched_off_for_good(visit: Visit) -> None:
    page = visit()
    page.keyboard.press("?")
    page.get_by_label("anywhere on the page").uncheck()
    page.get_by_role("button", name="Close").click()
    for key in ("2", "/", "?"):
        page.keyboard.press(key)
    expect(page.locator("#view-look")).to_be_visible()
    expect(page.locator("#help")).to_be_hidden()
    page.reload()
    translation(page)
    page.keyboard.press("2")
    expect(page.locator("#view-look")).to_be_visible()
    page.get_by_role("button", name="Help").click()
    page.get_by_label("anywhere on the page").check()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("2")
    expect(page.locator("#view-search")).to_be_visible()


def test_tabs_follow_the_arrows_and_the_skip_link_leads_to_them(visit: Visit) -> None:
    page = visit()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#tab-look")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#view-search")).to_be_visible()
    assert "v=search" in page.url


def test_what_is_typed_is_never_html(page: Page) -> None:
    page.goto("/")
    page.locator("#input").fill("<img src=x onerror=alert(1)> Satz")
    translation(page)
    assert page.locator("main img").count() == 0


def test_a_request_that_fails_is_explained(visit: Visit, tolerated: list[str]) -> None:
    tolerated.append("status of 400")
    page = visit()
    page.locator("#input").fill("Satz " * 300)
    expect(page.locator("#problem")).to_contain_text("pieces")
    expect(page.locator("#hypotheses")).to_have_class(re.compile("stale"))
    page.locator("#input").fill("")
    expect(page.locator("#problem")).to_be_hidden()
    page.locator("#input").fill("Satz " * 300)
    expect(page.locator("#problem")).to_contain_text("pieces")
    page.locator("#input").fill(SENTENCE)
    expect(page.locator("#problem")).to_be_hidden()


def test_an_address_with_a_translation_that_cannot_be_is_explained(page: Page, tolerated: list[str]) -> None:
    tolerated.append("status of 400")
    page.goto("/#" + urlencode({"q": SENTENCE, "t": "99999", "v": "search"}))
    expect(page.locator("#problem")).to_contain_text("99999")


def test_a_server_that_is_gone_is_explained_and_asked_again_when_it_is_back(
    visit: Visit, tolerated: list[str]
) -> None:
    tolerated.append("net::ERR_FAILED")
    page = visit()
    page.route("**/api/*", lambda route: route.abort())
    with page.expect_event("requestfailed", lambda request: "/api/runs" in request.url):
        page.locator("#input").fill("Ja!")
        expect(page.locator("#problem")).to_contain_text("does not answer")
    page.unroute("**/api/*")
    assert translation(page)
    expect(page.locator("#problem")).to_be_hidden()


def test_overtaken_requests_are_cancelled(visit: Visit) -> None:
    page = visit()
    page.evaluate("""() => {
        const fetched = window.fetch;
        window.fetch = (path, options) => {
            options.signal?.addEventListener("abort", () => console.info("aborted", options.body));
            return fetched(path, options);
        };
    }""")
    with page.expect_request("**/api/search"):
        page.locator("#input").fill("Satz 1")
    with page.expect_console_message(lambda message: "aborted" in message.text and "Satz 1" in message.text):
        page.locator("#input").fill("Worte")
    assert translation(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_on_a_fill_can_be_read_whatever_its_strength(visit: Visit) -> None:
    """The contrast of WCAG 2, from the colours that the browser has computed."""
    colours = visit().evaluate(
        """async () => {
            const { diverging, el, onFill, svg } = await import("/static/drawing.js");
            const graphic = svg(10, 10);
            document.querySelector("main").append(graphic);
            const colour = (node) => getComputedStyle(node).fill.match(/\\d+/g).map(Number);
            const ground = el("rect", { fill: "var(--surface)" });
            graphic.append(ground);
            const found = [];
            for (let step = -200; step <= 200; step++) {
                const fill = diverging(step / 200);
                const [square, text] = [el("rect", fill), el("text", { class: `value ${onFill(fill)}` })];
                graphic.append(square, text);
                found.push([colour(ground), colour(square), fill["fill-opacity"], colour(text)]);
            }
            return found;
        }"""
    )

    def luminance(colour: list[float]) -> float:
        parts = [
            part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in colour
        ]
        return sum(part * share for part, share in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))

    for ground, square, opacity, text in colours:
        mixed = [below + (above - below) * opacity for below, above in zip(ground, square, strict=True)]
        dark, light = sorted((luminance(mixed), luminance(text)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, opacity


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit: Visit, scheme: str) -> None:
    page = visit()
    page.locator("#view-look .thumb").first.wait_for()
    assert violations(page) == ""
    page.keyboard.press("2")
    force_alternative(page)
    expect(page.locator("#output .piece.forced")).to_have_count(2)
    assert violations(page) == ""


def test_axe_finds_nothing_on_a_narrow_screen_nor_in_what_opens(visit: Visit) -> None:
    page = visit()
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#output .piece").nth(1).click()
    page.locator(".alternatives .row").first.wait_for()
    assert violations(page) == ""
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert violations(page) == ""


def test_a_narrow_page_does_not_scroll_sideways(visit: Visit) -> None:
    page = visit()
    for view in ("look", "search"):
        page.locator(f"#tab-{view}").click()
        page.locator(f"#view-{view} .graphic").first.wait_for()
        assert not scrolls_sideways(page, 360)


def test_a_checkpoint_is_found_by_the_name_of_its_run_whose_scores_are_not_its_own(visit: Visit) -> None:
    found = visit().evaluate("""async () => {
        const { createSystems } = await import("/static/systems.js");
        const model = { name: "tiny", parameters: null };
        const runs = ["a", "a@5", "me@home"].map((name, i) => ({ name, model, bleu: i, training: false }));
        const systems = createSystems({ default: "a", runs, damaged: [] });
        return ["", "a", "a@7", "a@5", "me@home", "me@home@9"].map(
            (name) => [systems.runOf(name).name, systems.facts(name)[0]],
        );
    }""")
    assert found == [
        ["a", "tiny · BLEU 0.0"],
        ["a", "tiny · BLEU 0.0"],
        ["a", "tiny"],
        ["a@5", "tiny · BLEU 1.0"],
        ["me@home", "tiny · BLEU 2.0"],
        ["me@home", "tiny"],
    ]


def test_a_long_name_of_a_run_does_not_widen_the_page(visit: Visit) -> None:
    page = visit()
    page.locator("#run option").first.evaluate("option => (option.textContent = 'name'.repeat(20))")
    page.locator("#run-facts").evaluate("facts => (facts.textContent += ' · still training')")
    for width in (400, 761, 800, 894):
        assert not scrolls_sideways(page, width)


def test_the_theme_is_chosen_and_kept(visit: Visit) -> None:
    page = visit()
    page.locator("#theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
