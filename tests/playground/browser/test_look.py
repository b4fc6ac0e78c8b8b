"""The Look view: pieces with their probabilities, all heads at a glance, one head large, files of each graphic."""

import json
import re

import pytest
from in_browser import SENTENCE, Visit, exported, hold_answer, until_held, until_read_out
from playwright.sync_api import Browser, Page, expect

from served import Served

PNG = b"\x89PNG\r\n\x1a\n"


def shown(visit: Visit, **state: object) -> Page:
    page = visit(**state)
    page.locator("#view-look .large .graphic").first.wait_for()
    return page


def title(page: Page) -> str:
    return page.locator("#view-look .title").inner_text()


def chosen(site: Served, text: str = SENTENCE) -> list[int]:
    """The ids of the best translation, as the server has it."""
    return site.stream("/api/search", {"text": text})[-1][1]["hypotheses"][0]["ids"]


def test_each_piece_has_its_id_probability_and_surprisal(visit: Visit, site: Served) -> None:
    page = shown(visit)
    ids = chosen(site)
    asked = {"text": SENTENCE, "target": {"ids": ids}, "alternatives": 10}
    analysis = site.post("/api/analyse", asked).json
    chips = page.locator(".chips[data-side=target] .chip:has(b[lang=de])")
    expect(chips).to_have_count(len(analysis["target"]))
    for chip, piece in zip(chips.all_inner_texts(), analysis["target"], strict=True):
        assert re.search(rf"\b{piece['id']}\b", chip)
        assert f"{piece['surprisal']:.2f}" in chip
        assert "%" in chip
    sources = page.locator(".chips[data-side=source] .chip:has(b[lang=en])")
    expect(sources).to_have_count(len(analysis["source"]))


def test_alternatives_appear_on_hover_and_on_focus(visit: Visit) -> None:
    page = shown(visit)
    chips = page.locator(".chips[data-side=target] .chip")
    chips.nth(1).hover()
    expect(page.locator("#tooltip .row")).to_have_count(6)
    page.keyboard.press("Escape")
    expect(page.locator("#tooltip")).to_be_hidden()
    chips.nth(0).focus()
    page.keyboard.press("ArrowRight")
    expect(chips.nth(1)).to_be_focused()
    expect(page.locator("#tooltip .row")).to_have_count(6)


def test_pieces_are_joined_into_words(visit: Visit) -> None:
    page = shown(visit)
    chips = page.locator(".chips[data-side=source] .chip b")
    assert chips.count() > 5
    page.get_by_role("button", name="Words", exact=True).click()
    expect(chips).to_have_text([*SENTENCE.split(), "</s>"])


def test_every_head_of_the_three_kinds_can_be_chosen(visit: Visit) -> None:
    page = shown(visit)
    thumbs = page.locator("#view-look .thumb")
    expect(thumbs).to_have_count(3 * 2 * (2 + 1))  # kinds, layers, heads and their mean
    page.get_by_role("button", name="Layer 1, head 2").nth(1).click()
    expect(page.locator("#view-look .title")).to_have_text("Decoder self-attention, layer 1, head 2")
    # What the mask hides is not drawn as a weight.
    count = page.locator(".chips[data-side=target] .chip").count()
    matrix = page.locator("#view-look .graphic").first
    masked = matrix.locator("path.masked").get_attribute("d") or ""
    assert masked.count("M") == count * (count - 1) // 2
    page.get_by_role("button", name="Gradient saliency").click()
    expect(page.locator("#view-look .title")).to_have_text("Gradient saliency")


def test_the_decoder_looks_back_at_places_before_the_one_that_it_writes(visit: Visit) -> None:
    page = shown(visit, kind="decoder", layer=0, head=0)
    habits = page.locator("#view-look figure", has_text="Where the weight goes")
    habits.locator("summary").click()
    shares = dict(re.findall(r"^(\S+)\t([\d.]+) %$", habits.locator("tbody").inner_text(), re.MULTILINE))
    assert float(shares["−1"]) > 0
    assert float(shares["0"]) == 0


def test_heads_and_layers_are_turned_by_keys(visit: Visit) -> None:
    page = shown(visit, kind="encoder", layer=0, head=0)
    assert title(page) == "Encoder self-attention, layer 1, head 1"
    for key, wanted in (
        (".", "layer 1, head 2"),
        (".", "layer 1, mean"),
        ("]", "layer 2, mean"),
        (",", "layer 2, head 2"),
    ):
        page.keyboard.press(key)
        expect(page.locator("#view-look .title")).to_contain_text(wanted)
    page.evaluate(  # as on a German keyboard of a Mac
        'document.dispatchEvent(new KeyboardEvent("keydown", { key: "[", altKey: true, cancelable: true }))'
    )
    expect(page.locator("#view-look .title")).to_contain_text("layer 1, head 2")
    page.keyboard.press("]")
    chip = page.locator(".chip").nth(2)
    chip.focus()
    page.keyboard.press("[")
    expect(page.locator("#view-look .title")).to_contain_text("layer 1, head 2")
    expect(chip).to_be_focused()
    page.keyboard.press("]")
    page.locator(".thumb[aria-pressed=true]").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator("#view-look .title")).to_contain_text("layer 1, head 2")


def test_a_target_word_lights_what_it_attends_to(visit: Visit) -> None:
    page = shown(visit, kind="cross", layer=1, head=0)
    chip = page.locator(".chips[data-side=target] .chip").nth(2)
    chip.hover()
    expect(page.locator("#view-look .graphic .label.lit")).to_have_count(2)  # in the matrix and in the lines
    assert page.locator("#view-look g.lit path.link").count() > 0
    attended = page.locator(".chips[data-side=source] .chip").evaluate_all(
        "chips => chips.reduce((sum, chip) => sum + Number(chip.style.getPropertyValue('--attended')), 0)"
    )
    assert attended == pytest.approx(1, abs=0.02)
    page.mouse.move(0, 0)
    expect(page.locator("#view-look .graphic .label.lit")).to_have_count(0)
    chip.click()
    page.mouse.move(0, 0)
    expect(page.locator("#view-look .graphic .label.lit")).to_have_count(2)


def test_the_matrix_is_read_by_arrows(visit: Visit) -> None:
    page = shown(visit)
    until_read_out(page)
    page.get_by_role("group", name="Cross-attention").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#live")).to_contain_text("percent")
    expect(page.locator("#view-look .graphic .label.lit").first).to_be_visible()


def test_another_hypothesis_shows_its_own_attention(visit: Visit) -> None:
    page = shown(visit)
    with page.expect_response("**/api/attention") as answer:
        page.locator("#hypotheses [role=option]").nth(1).click()
    pieces = [piece["piece"].replace("\u2581", "") for piece in answer.value.json()["target_out"]]
    expect(page.locator(".chips[data-side=target] .chip b")).to_have_text(pieces)


def test_a_search_that_ends_after_a_further_key_is_not_taken_for_that_of_the_new_sentence(
    visit: Visit, site: Served
) -> None:
    page, text = shown(visit, words=1), "Ja! Worte wie 7"
    hold_answer(page, "/api/search")
    page.locator("#input").fill("Satz 1")
    until_held(page)
    asked: list[object] = []
    page.on(
        "request", lambda request: asked.append(request.post_data_json) if "analyse" in request.url else None
    )
    page.evaluate(
        """(text) => {
            const input = document.getElementById("input");
            input.value = text;
            input.dispatchEvent(new Event("input"));
            release();
        }""",
        text,
    )
    expect(page.locator(".chips[data-side=source] .chip b")).to_have_text([*text.split(), "</s>"])
    target = {"ids": chosen(site, text)}
    assert asked == [
        {"system": None, "text": text, "target": target, "alternatives": 10, "length_penalty": None}
    ]


def test_each_graphic_has_its_table(visit: Visit) -> None:
    page = shown(visit)
    for figure in page.locator("#view-look figure").all():
        figure.locator("summary").click()
        expect(figure.locator("table tbody tr").first).to_be_visible()


def test_a_graphic_is_exported_in_four_formats(visit: Visit, browser: Browser) -> None:
    page = shown(visit)
    files = {}
    for kind in ("SVG", "PNG", "JSON", "HTML page"):
        path = exported(page, "Matrix", kind)
        files[path.suffix] = path
    assert files[".png"].read_bytes().startswith(PNG)
    weights = json.loads(files[".json"].read_text("utf-8"))["weights"]
    assert sum(weights[0]) == pytest.approx(1, abs=0.01)
    with browser.new_context(offline=True) as alone:
        for suffix in (".svg", ".html"):
            opened = alone.new_page()
            opened.goto(files[suffix].as_uri())
            assert opened.locator("svg rect").count() > len(weights)
            fill = opened.locator("svg rect").nth(1).evaluate("rect => getComputedStyle(rect).fill")
            assert fill.startswith("rgb")
        assert opened.locator("tbody tr").count() == len(weights)


def test_pieces_and_heads_are_exported_though_they_are_no_picture(visit: Visit) -> None:
    page = shown(visit)
    assert "<rect" in exported(page, "How sure", "SVG").read_text("utf-8")
    heads = exported(page, "All heads", "SVG").read_text("utf-8")
    assert heads.count("<image") == page.locator(".thumb").count()


def test_the_score_is_that_of_the_list_whatever_the_length_penalty(visit: Visit) -> None:
    page = shown(visit, lp=2)
    listed = page.locator("#hypotheses .score").first.inner_text()
    number = re.search("\u2212\\d+\\.\\d+", listed)
    assert number is not None
    expect(page.locator("#view-look .hint").first).to_contain_text(f"score {number[0]},")
