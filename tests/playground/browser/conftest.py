"""A real browser on the page of an untrained run. A test fails if the page asks another host or logs an error.

The browser is Debian's Chromium, the one that ENDEAVOUR_BROWSER names, or the one of `playwright install`. Where there
is none these tests are skipped, unless ENDEAVOUR_BROWSER=required.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
import torch
from in_browser import SENTENCE, Visit
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, sync_playwright

from endeavour.runs.run import Run
from endeavour.special import EOS
from endeavour.storage import atomic_folder
from endeavour.training.checkpoint import load_model, write_model
from served import Served, served, small_run

NO_BROWSER = "no Chromium here: install it, or run `playwright install chromium`"
FLAGS = ["--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
TIMEOUT = 20_000  # ms after which a test has failed; none waits for it
BYTES = 256  # pieces of a vocabulary, after the special ones


def executable(playwright: Playwright) -> str | None:
    """The browser's path, None where there is none."""
    asked = os.environ.get("ENDEAVOUR_BROWSER", "required")
    found = asked if asked != "required" else shutil.which("chromium")
    own = playwright.chromium.executable_path
    return found or (own if Path(own).exists() else None)


def spell_in_letters(run: Run) -> None:
    """Makes the pieces that are single bytes improbable, so that what the model writes can be read."""
    model, tokenizers = load_model(run.model_folder, torch.device("cpu"))
    with torch.no_grad():
        # Zero is no probable logit: those of all others are spread around it.
        model.output_weight[EOS + 1 : EOS + 1 + BYTES] = 0.0
    shutil.rmtree(run.model_folder)
    with atomic_folder(run.model_folder) as partial:
        write_model(partial, model, tokenizers)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    run = small_run(tmp_path_factory.mktemp("outputs"), "run")
    spell_in_letters(run)
    with served(run.root, "run=run") as site:
        yield site


# Not for the session: while Playwright runs, no other test in this process may start an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = executable(playwright)
        if path is None and os.environ.get("ENDEAVOUR_BROWSER") == "required":
            pytest.fail(f"ENDEAVOUR_BROWSER=required, but {NO_BROWSER}")
        if path is None:
            pytest.skip(NO_BROWSER)
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        with playwright.chromium.launch(executable_path=path, args=FLAGS + root) as browser:
            yield browser


@pytest.fixture
def scheme() -> str:
    """Tests of both colour schemes override this by parametrizing it."""
    return "light"


@pytest.fixture
def tolerated() -> list[str]:
    """Parts of what the page may log: to be filled by a test in which requests fail on purpose."""
    return []


@pytest.fixture
def page(browser: Browser, site: Served, scheme: str, tolerated: list[str]) -> Iterator[Page]:
    """An empty tab in a browser that remembers nothing."""
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{site.port}",
        viewport={"width": 1280, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(TIMEOUT)
    foreign: list[str] = []
    complaints: list[str] = []

    def note_request(url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.netloc != f"127.0.0.1:{site.port}":
            foreign.append(url)

    def note_message(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    context.on("request", lambda request: note_request(request.url))
    context.on("console", note_message)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    yield context.new_page()
    context.close()
    assert not foreign
    assert not [one for one in complaints if not any(part in one for part in tolerated)]


@pytest.fixture
def visit(page: Page) -> Visit:
    """Opens the page in a state, given by the keys of its address, and waits for the translation."""

    def visit(**state: object) -> Page:
        page.goto("/#" + urlencode({"q": SENTENCE} | state))
        page.locator("#output .piece").first.wait_for()
        return page

    return visit
