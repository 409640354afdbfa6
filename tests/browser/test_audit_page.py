"""The page of an audit in a browser: on a phone, in the dark, in print, without scripts, and with hostile texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from runner.audit import files
from runner.audit.findings import Audit
from tests.audit import stored

AUDITS = {"router": stored.router, "many": lambda: stored.many(60), "hostile": stored.hostile}


@pytest.fixture(params=AUDITS)
def sheet(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    audit: Audit = AUDITS[request.param]()
    return files.write(audit, tmp_path)[2]


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


def overflowing(page: Page) -> int:
    found: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found


@pytest.mark.parametrize("width", [360, 700, 1060, 1400])
def test_the_page_never_scrolls_sideways_and_runs_nothing_foreign(quiet: Page, sheet: Path, width: int) -> None:
    quiet.set_viewport_size({"width": width, "height": 800})
    quiet.goto(sheet.as_uri())
    quiet.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    assert overflowing(quiet) == 0
    assert quiet.evaluate("window.ran") is None


def test_in_print_every_record_is_open_and_fits_the_sheet(quiet: Page, sheet: Path) -> None:
    quiet.set_viewport_size({"width": 718, "height": 1000})  # A4 between margins of 1 cm
    quiet.emulate_media(media="print", color_scheme="dark")
    quiet.goto(sheet.as_uri())
    assert overflowing(quiet) == 0
    assert quiet.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    expect(quiet.locator("table.claims").last).to_be_visible()


def contrast(page: Page, text: str, ground: str) -> float:
    """The contrast of two colours of the style by WCAG 2.2, 1 to 21."""
    found: float = page.evaluate(
        """([text, ground]) => {
          const light = (name) => {
            const rgb = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
            const parts = [1, 3, 5].map((at) => parseInt(rgb.slice(at, at + 2), 16) / 255);
            const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const [a, b] = [light(text), light(ground)].sort((x, y) => y - x);
          return (a + 0.05) / (b + 0.05);
        }""",
        [text, ground],
    )
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_and_parts_differ_without_colour(quiet: Page, tmp_path: Path, scheme: str) -> None:
    quiet.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    quiet.goto(files.write(stored.router(), tmp_path)[2].as_uri())
    for text, ground in (("ink", "ground"), ("soft", "ground"), ("ink", "raised"), ("soft", "raised")):
        assert contrast(quiet, f"--{text}", f"--{ground}") >= 4.5
    for text in ("for", "against"):
        assert contrast(quiet, f"--{text}", "--raised") >= 4.5
    for part in (1, 2, 3):
        assert contrast(quiet, f"--part-{part}-ink", f"--part-{part}") >= 4.5
    for one, other in ((1, 2), (1, 3), (2, 3)):
        assert contrast(quiet, f"--part-{one}", f"--part-{other}") >= 1.5


def test_one_pair_is_drawn_at_a_time_and_can_be_chosen(quiet: Page, tmp_path: Path) -> None:
    quiet.goto(files.write(stored.router(), tmp_path)[2].as_uri())
    figures = quiet.locator(".scatters figure")
    assert figures.count() == 10
    expect(figures.locator("visible=true")).to_have_count(1)
    quiet.get_by_label("Pair of definitions").select_option("B DeepEval against D TruLens (splitter-llm)")
    expect(figures.locator("visible=true")).to_have_count(1)
    expect(figures.locator("visible=true")).to_have_attribute(
        "data-name", "B DeepEval against D TruLens (splitter-llm)"
    )


def test_the_page_is_whole_without_scripts(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(files.write(stored.router(), tmp_path)[2].as_uri())
    expect(page.locator(".scatters figure").first).to_be_visible()
    expect(page.get_by_text("9 more pairs are drawn where scripts may run.")).to_be_visible()
    expect(page.get_by_text("Shipping is free of charge.").last).to_be_visible()
    context.close()
