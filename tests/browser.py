"""The headless Chromium of this machine, which playwright drives."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MISSING = f"no browser ({', '.join(PROGRAMS)}): apt-get install chromium-headless-shell"

expect.set_options(timeout=30_000)  # as long as playwright's actions wait: a busy machine is slow


def program() -> str | None:
    """Return the path of a browser, if there is one."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser, which ends with the block; without one, the test is skipped.

    Until then `asyncio.run` fails in this thread, in which playwright has a loop of its own.
    """
    path = program()
    if path is None:
        pytest.skip(MISSING)
    with sync_playwright() as driver, driver.chromium.launch(executable_path=path) as browser:
        yield browser


@contextmanager
def tab(browser: Browser, address: str | None = None) -> Iterator[Page]:
    """Give an empty page, in which links start at an address; at the end, what went wrong in it fails.

    Those are exceptions of scripts, errors in the console, and requests to other machines.
    """
    errors, asked = list[str](), list[str]()
    console = list[tuple[str, str]]()
    with browser.new_context(base_url=address, viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: console.append((said.type, f"{said.text} {said.location['url']}")))
        page.on("request", lambda request: asked.append(request.url))
        yield page
        page.title()  # with its answer comes what happened before
    elsewhere = [url for url in asked if url.startswith("http") and "//127.0.0.1:" not in url]
    faults = [*errors, *(text for kind, text in console if kind == "error"), *elsewhere]
    assert not faults, "; ".join(faults)
