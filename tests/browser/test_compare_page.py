"""The page of a comparison in a browser: on a phone, in the dark, in print, by keyboard, and with hostile texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from adapters.schema import JudgeCard, Verdict
from runner import phrases
from runner.compare import files
from runner.compare.findings import Comparison
from runner.compare.paired import compare
from tests.browser.looks import contrast, overflowing
from tests.compare.runs import run
from tests.compare.test_compare_texts import FAITHFUL, compared, hostile, swapped


def nothing() -> Comparison:
    return compared(run({"labels/a": {"q": 1.0}}), run({"labels/b": {"q": 1.0}}))


def better() -> Comparison:
    """Ten questions, of which eight gain and one loses; one verdict turned round."""
    ids = [f"q{n}" for n in range(10)]
    sides = [
        run(
            {"labels/recall": dict.fromkeys(ids, value) | {"q9": 1 - value}, "ragas/faithfulness": {"q0": value}},
            definitions=[FAITHFUL],
            judge=JudgeCard("labels", "people"),
            evidence={("ragas/faithfulness", "q0"): (Verdict("It is free.", word, word),)},
            config={"retriever": {"k": k}},
            name=name,
        )
        for name, value, word, k in (("baseline", 0.0, "absent", 5), ("retriever.k=10", 1.0, "supported", 10))
    ]
    return compare(*sides, names=("baseline", "latest"))


COMPARISONS: dict[str, Callable[[], Comparison]] = {
    "swapped": swapped,
    "better": better,
    "hostile": lambda: hostile(12),
    "nothing": nothing,
}


@pytest.fixture(params=COMPARISONS)
def sheet(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return files.write(COMPARISONS[request.param](), tmp_path)[2]


def test_the_page_never_scrolls_sideways_and_runs_nothing_foreign(quiet: Page, sheet: Path) -> None:
    quiet.goto(sheet.as_uri())
    quiet.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    for width in (360, 700, 800, 1060, 1400):
        quiet.set_viewport_size({"width": width, "height": 800})
        assert overflowing(quiet) == 0, width
    assert quiet.evaluate("window.ran") is None


def test_in_print_every_question_is_open_and_fits_the_sheet(quiet: Page, sheet: Path) -> None:
    quiet.set_viewport_size({"width": 718, "height": 1000})  # A4 between margins of 1 cm
    quiet.emulate_media(media="print", color_scheme="dark")
    quiet.goto(sheet.as_uri())
    assert overflowing(quiet) == 0
    assert quiet.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for answer in quiet.locator("details p.text").all()[:5]:
        expect(answer).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out(quiet: Page, tmp_path: Path, scheme: str) -> None:
    quiet.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    quiet.goto(files.write(better(), tmp_path)[2].as_uri())
    for text in ("ink", "soft", "for", "against"):
        assert contrast(quiet, f"--{text}", "--ground") >= 4.5


def test_a_person_reads_the_numbers_of_the_data_and_the_word(quiet: Page, tmp_path: Path) -> None:
    data, _, sheet = files.write(better(), tmp_path)
    row = json.loads(data.read_text("utf-8"))["rows"][0]
    quiet.set_viewport_size({"width": 1400, "height": 900})
    quiet.goto(sheet.as_uri())
    expect(quiet.locator("p.headline")).to_contain_text("Better: recall (+0.800).")
    line = quiet.locator("tr").filter(has_text="labels/recall").first
    told = " ".join(line.inner_text().split())
    for part in (
        "✓ better",
        phrases.number(row["baseline"]),
        phrases.number(row["candidate"]),
        phrases.signed(row["delta"]),
        phrases.interval(row["low"], row["high"]),
        f"{row['wins']}/{row['ties']}/{row['losses']}",
    ):
        assert part in told
    figure = quiet.locator("svg").first
    hollow, dot = (figure.locator(f"circle.{kind}").first.bounding_box() for kind in ("hollow", "dot"))
    assert hollow
    assert dot
    assert hollow["x"] < dot["x"]


def test_a_question_opens_by_keyboard(quiet: Page, tmp_path: Path) -> None:
    quiet.goto(files.write(better(), tmp_path)[2].as_uri())
    (worse,) = quiet.locator("details").filter(has_text="Question q9?").all()
    expect(worse).to_have_attribute("open", "")  # the worst are open
    worse.locator("summary").focus()
    quiet.keyboard.press("Enter")
    expect(worse).not_to_have_attribute("open", "")
