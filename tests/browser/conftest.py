"""The browser: one headless Chromium of this machine for the tests of a file, an empty profile for each test.

It lives as long as the file's tests and not the session: while it does, `asyncio.run` is refused in the thread of the
tests, so that commands are run in a process of their own here (tests.browser.commands). (A scope of the folder would be
that of the session, because the folder is no package.)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("PARIBUS_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
# Playwright itself turns off what Chromium does in the background; no name of another host is looked up either.
OPTIONS = (
    "--disable-gpu",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    absent = f"no Chromium: none of {', '.join(NAMES)} is on the path, and PARIBUS_CHROMIUM names none"
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))
            item.add_marker(pytest.mark.skipif(CHROMIUM is None, reason=absent))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The Chromium of this machine, headless."""
    expect.set_options(timeout=20_000)  # machines that test are busy
    with sync_playwright() as driver:
        # Chromium has no sandbox for root.
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS, chromium_sandbox=os.geteuid() != 0)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a new profile, 1000 x 800."""
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    yield context.new_page()
    context.close()


@pytest.fixture
def quiet(page: Page) -> Iterator[Page]:
    """A page that asks for nothing but itself and says nothing on its console."""
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    assert said == []
    assert [url for url in asked if not url.startswith("file:")] == []
