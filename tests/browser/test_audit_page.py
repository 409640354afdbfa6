"""The page of an audit in a browser: on a phone, in the dark, in print, without scripts, and with hostile texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from runner.audit import files
from runner.audit.findings import Audit
from tests.audit import stored
from tests.browser.looks import contrast, overflowing

AUDITS = {"router": stored.router, "many": lambda: stored.many(60), "hostile": stored.hostile}


@pytest.fixture(params=AUDITS)
def sheet(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    audit: Audit = AUDITS[request.param]()
    return files.write(audit, tmp_path)[2]


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
