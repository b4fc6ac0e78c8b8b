"""How long a page takes to load in a real browser. Knows an address only; needs Playwright and Chromium."""

import os
import shutil
import time
from collections.abc import Callable


def open_pages(url: str, repeats: int, done: Callable[[], None]) -> list[float]:
    """Seconds until a page and all that it loads are there, each time with nothing in the browser's cache.

    Empty where there is no Playwright or no browser.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return []
    seconds: list[float] = []
    with sync_playwright() as playwright:
        user = os.geteuid() if hasattr(os, "geteuid") else None
        root = ["--no-sandbox"] if user == 0 else []
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=root)
        except Error:
            return []
        with browser:
            for turn in range(repeats + 1):
                context = browser.new_context()
                page = context.new_page()
                started = time.perf_counter()
                page.goto(url, wait_until="load")
                if turn > 0:  # the first one warms up the browser itself
                    seconds.append(time.perf_counter() - started)
                    done()
                context.close()
    return seconds
