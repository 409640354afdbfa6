"""MLflow's pages in a browser: served by `paribus ui`, opened, and gone through as a person does."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

WAIT = 120_000
"""Milliseconds. The pages load some ten MB of scripts from a server that has just started; machines that test are
busy."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address that `paribus ui` says for the tracking data in `folder`; afterwards Ctrl-C ends it and the server
    with it."""
    command = [sys.executable, "-m", "runner", "ui", "--no-open", f"tracking.folder='{folder}'"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        assert said.endswith("/runs?viewStateShareKey=paribus"), process.communicate()
        yield said
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        (port,) = re.findall(r":(\d+)/", said)
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", int(port)), 5):
            pass
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def opened(browser: Browser, width: int = 1300, height: int = 680) -> Iterator[Page]:
    """A page without MLflow's offers of help, which would cover what is looked for."""
    context = browser.new_context(viewport={"width": width, "height": height})
    context.add_init_script(
        'localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");'
        'localStorage.setItem("mlflow.assistant.panelOpen_v1", "false");'
    )
    page = context.new_page()
    page.set_default_timeout(WAIT)
    yield page
    context.close()


def unfold(page: Page, address: str, sweep: str, variant: str) -> None:
    """Go to the list of runs and unfold a sweep, so that this variant of it can be seen."""
    page.goto("about:blank")
    page.goto(address)
    parent = page.get_by_role("gridcell").filter(has_text=sweep).first
    parent.locator("button").first.click()
    expect(link(page, variant)).to_be_visible()


def link(page: Page, name: str) -> Locator:
    """The first link with exactly this text."""
    return page.get_by_role("link", name=name, exact=True).first


def follow(page: Page, name: str) -> None:
    """Go where a link of a description leads; MLflow opens it in a new tab."""
    target = link(page, name).get_attribute("href")
    assert target
    page.goto(f"{page.url.partition('#')[0]}{target}")


def open_run(page: Page, name: str) -> None:
    """Go from the list of runs to the page of one, with its whole description."""
    link(page, name).click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_text("Description", exact=True).first).to_be_visible()
    more = page.get_by_text("Show more", exact=True)
    if more.count():
        more.first.click()


def unfold_reason(page: Page, assessment: str, value: str) -> None:
    """Unfold why an assessment of the trace that is shown has the value that begins so."""
    expect(page.get_by_text(assessment, exact=True).first).to_be_visible()
    shown = f"//*[text()='{assessment}']/following::*[starts-with(text(), '{value}')][1]"
    page.locator(f"xpath={shown}/preceding::button[1]").last.click()
