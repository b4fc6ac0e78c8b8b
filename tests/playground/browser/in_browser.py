"""What tests in a browser share beside the fixtures."""

from collections.abc import Callable
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SENTENCE = "Satz 7 hat Worte."

Visit = Callable[..., Page]


def translation(page: Page) -> str:
    """The translation that is shown, once it is there; without the sign of its end."""
    page.locator("#output:not(.stale) .piece.end").wait_for()
    return page.locator("#output").inner_text().removesuffix("end").strip()


def force_alternative(page: Page) -> None:
    """Puts the best alternative in the place of the second piece, which forces it and the first one."""
    page.locator("#output .piece").nth(1).click()
    page.locator(".alternatives .rows .row:not(:has(.current)):not(:has-text('end'))").first.click()


def exported(page: Page, graphic: str, kind: str) -> Path:
    """The file of a graphic, found by the beginning of its title, that its menu saves."""
    page.get_by_role("button", name=f"Export {graphic}").click()
    with page.expect_download() as download:
        page.locator(".menu:popover-open").get_by_role("button", name=kind).click()
    path = download.value.path().with_name(download.value.suggested_filename)
    download.value.save_as(path)
    return path


def scrolls_sideways(page: Page, width: int) -> bool:
    """Whether there is more of the page than a window of this width shows."""
    page.set_viewport_size({"width": width, "height": 740})
    return page.evaluate("document.documentElement.scrollWidth") > width


def violations(page: Page) -> str:
    """What axe finds, as text; "" if it finds nothing."""
    results = Axe().run(page, options={"runOnly": {"type": "tag", "values": LEVELS}})
    return results.generate_report() if results.violations_count else ""


def until_read_out(page: Page) -> None:
    """Waits for the translation's turn at the screen reader: it comes a moment after the translation."""
    expect(page.locator("#live")).to_have_text(translation(page))
    expect(page.locator("#live")).to_have_attribute("lang", "de")


def hide(page: Page, hidden: bool) -> None:
    """What happens when another tab is chosen, or this one again."""
    page.evaluate(
        """(hidden) => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def hold_answer(page: Page, path: str) -> None:
    """The next answer to a request for `path` reaches the page when the page's `release()` is called."""
    page.evaluate(
        """(held) => {
            const fetched = window.fetch;
            window.fetch = async (path, options) => {
                if (path !== held) return fetched(path, options);
                window.fetch = fetched;
                const body = await (await fetched(path, options)).text();
                await new Promise((resolve, reject) => {
                    window.release = resolve;
                    options?.signal?.addEventListener("abort", () => reject(options.signal.reason));
                });
                return new Response(body);
            };
        }""",
        path,
    )


def until_held(page: Page) -> None:
    page.wait_for_function("() => Boolean(window.release)")
