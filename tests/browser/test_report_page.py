"""The page of a report in a browser: on a phone, in the dark, in print, by keyboard, and with hostile texts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from runner import phrases
from tests.browser.looks import contrast, overflowing
from tests.report import made


@pytest.fixture(params=made.SWEEPS)
def sheet(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return made.written(made.SWEEPS[request.param](), tmp_path)[2]


def opened(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")


def test_the_page_never_scrolls_sideways_and_runs_nothing_foreign(quiet: Page, sheet: Path) -> None:
    quiet.goto(sheet.as_uri())
    opened(quiet)
    for width in (360, 700, 800, 1060, 1400):
        quiet.set_viewport_size({"width": width, "height": 800})
        assert overflowing(quiet) == 0, width
    assert quiet.evaluate("window.ran") is None


def test_in_print_everything_is_open_and_fits_the_sheet(quiet: Page, sheet: Path) -> None:
    quiet.set_viewport_size({"width": 718, "height": 1000})  # A4 between margins of 1 cm
    quiet.emulate_media(media="print", color_scheme="dark")
    quiet.goto(sheet.as_uri())
    assert overflowing(quiet) == 0
    assert quiet.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for heading in quiet.locator("details.variant h3").all()[:5]:
        expect(heading).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_marks_stand_out(quiet: Page, tmp_path: Path, scheme: str) -> None:
    quiet.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    quiet.goto(made.written(made.sizes(), tmp_path)[2].as_uri())
    for text in ("ink", "soft", "for", "against"):
        assert contrast(quiet, f"--{text}", "--ground") >= 4.5
    for text in ("ink", "soft"):
        assert contrast(quiet, f"--{text}", "--raised") >= 4.5
    for mark in ("part-1", "heat"):
        assert contrast(quiet, f"--{mark}", "--ground") >= 3


def test_the_numbers_of_tables_and_figures_are_those_of_the_data(quiet: Page, tmp_path: Path) -> None:
    data, _, sheet, *_ = made.written(made.sizes(), tmp_path)
    quiet.set_viewport_size({"width": 1400, "height": 900})
    quiet.goto(sheet.as_uri())
    recommended = json.loads(data.read_text("utf-8"))["recommendation"]
    drawn = quiet.locator("svg[aria-label^='Scores over chunker.size']")
    spoken = drawn.get_attribute("aria-label") or ""
    for run in recommended["runs"]:
        line = quiet.locator("table.means").first.get_by_role("row").filter(has_text=run["label"])
        recall = next((row for row in run["rows"] if row["definition"] == "labels/recall"), None)
        cell = " ".join(line.locator("td").inner_text().split())
        assert cell.startswith(phrases.number(run["means"].get("labels/recall")))
        if recall and recall["changed"]:
            assert phrases.signed(recall["delta"]) in cell
            assert phrases.interval(recall["low"], recall["high"]) in cell
        if recall and run["variable"] == "chunker.size":
            told = f"{phrases.number(recall['candidate'])} {phrases.signed(recall['delta'])} {recall['word']}"
            assert f"{run['value']} {told}" in spoken
    # The marks lie where the numbers are: 512 at 1 is as far above the baseline at .5 as the ticks say.
    ticks = {
        float(told): text.bounding_box()
        for text in drawn.locator("text.soft").all()
        if re.fullmatch(r"[\d.]+", told := text.text_content() or "") and float(told) <= 1
    }
    better = drawn.locator("circle.dot").first.bounding_box()
    assert better
    one = ticks[1.0]
    assert one
    assert abs((better["y"] + better["height"] / 2) - (one["y"] + one["height"] / 2)) < 4


def test_a_decision_leads_to_its_variant_by_keyboard(quiet: Page, tmp_path: Path) -> None:
    quiet.goto(made.written(made.sizes(), tmp_path)[2].as_uri())
    link = quiet.get_by_role("link", name="chunker.size=512")
    link.focus()
    quiet.keyboard.press("Enter")
    variant = quiet.locator("details.variant").filter(has=quiet.locator("summary", has_text="chunker.size=512"))
    expect(variant).to_be_in_viewport()
    variant.locator("> summary").focus()
    quiet.keyboard.press("Enter")
    expect(variant.get_by_text("What differs in the settings")).to_be_visible()
    expect(variant.get_by_text("Questions that got better: 5 of 10")).to_be_visible()
    change = variant.locator("details").filter(has_text="Question q1?").last
    change.locator("summary").focus()
    quiet.keyboard.press("Enter")
    expect(change.get_by_text("relevant chunk gained (at 1)").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_figure_alone_has_a_size_and_its_own_ground(quiet: Page, tmp_path: Path, scheme: str) -> None:
    charts = made.written(made.sizes(), tmp_path)[3:]
    quiet.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for chart in charts:
        quiet.goto(chart.as_uri())
        ground = quiet.evaluate("getComputedStyle(document.querySelector('rect')).fill")
        ink = quiet.evaluate("getComputedStyle(document.querySelector('text:not(.soft)')).fill")
        assert (ground, ink) == (
            ("rgb(20, 24, 28)", "rgb(232, 235, 238)") if scheme == "dark" else ("rgb(255, 255, 255)", "rgb(27, 31, 36)")
        )
    # As MLflow shows it: a picture in a page.
    shown = tmp_path / "shown.html"
    shown.write_text(f"<img src='{charts[0].relative_to(tmp_path)}' alt=''>", encoding="utf-8")
    quiet.goto(shown.as_uri())
    assert quiet.evaluate("document.images[0].decode().then(() => document.images[0].naturalWidth)") == 540
