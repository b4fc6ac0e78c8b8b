"""What tests in a browser share beside the fixtures."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

SENTENCE = "Satz 7 hat Worte."

Visit = Callable[..., Page]


def translation(page: Page) -> str:
    """The translation that is shown, once it is there; without the sign of its end."""
    page.locator("#output:not(.stale) .piece.end").wait_for()
    return page.locator("#output").inner_text().removesuffix("end").strip()


def until_read_out(page: Page) -> None:
    """Waits for the translation's turn at the screen reader: it comes a moment after the translation."""
    expect(page.locator("#live")).to_have_text(translation(page))


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
