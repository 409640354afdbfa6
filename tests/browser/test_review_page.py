"""The page of `paribus judge sample` in a browser: what a person marks, by mouse or keys, is what the commands take."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import ConsoleMessage, Error, Page, expect

from runner.human_labels import Label, read_labels
from runner.results import read_run
from runner.spot_check import Drawn, Sample, write
from tests.browser.commands import ROOT, paribus

Opened = Callable[[Path], Page]

DEFINITION = "deepeval/faithfulness"
KEYS = {"supported": "1", "contradicted": "2", "absent": "3", "no claim": "0"}
RTL = "مرحبا بالعالم، 12 شخصا"
HOSTILE = (
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'> <!-- &amp; \"quotes\" `${window.ran = 1}` \\",
    RTL,
    "👩‍👩‍👧‍👦 emoji, e\u0301, and a line\u2028separator\u0085or two",
    "javascript:window.ran=1;" + "long" * 120,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result folder of a judged run over eight questions of the bundled test set."""
    folder = tmp_path_factory.mktemp("judged")
    judged = (f"metrics.definitions=[{DEFINITION}]", "metrics.table=null", "dataset.limit=8", "tracking=off")
    said = json.loads(paribus(folder, "run", "--json", *judged))
    return folder / str(said["folder"])


@pytest.fixture(scope="module")
def sheet(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of all eight answers."""
    folder = tmp_path_factory.mktemp("drawn")
    paribus(folder, "judge", "sample", "--share", "1.0", "--run", str(run))
    return folder / "review.html"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """The page of one answer, every text of which would do harm where it were not shown as text."""
    text = "\n".join(HOSTILE)
    drawn = Drawn(f"q{HOSTILE[0]}", text, text, (text, *HOSTILE), text, "tune", f"run/{HOSTILE[1]}", HOSTILE)
    sample = Sample("run", "mine/supported", 0, (drawn,), (), 0)
    (page,) = write(sample, tmp_path / "hostile.html")
    return page


@pytest.fixture
def opened(page: Page) -> Iterator[Opened]:
    """Opens a page as a person does, by its file. At the end: it asked for nothing but itself and met no error."""
    asked: set[str] = set()
    wrong: list[ConsoleMessage | Error] = []
    page.on("request", lambda request: asked.add(request.url))
    page.on("console", lambda said: wrong.append(said) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(error))
    files: set[str] = set()

    def open_page(file: Path) -> Page:
        files.add(file.as_uri())
        page.goto(file.as_uri())
        return page

    yield open_page
    assert {url for url in asked if not url.startswith("blob:")} == files
    assert wrong == []


def items(sheet: Path) -> list[dict[str, Any]]:
    """What the page was given."""
    found = re.search(r'id="sample">(.*?)</script>', sheet.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return list(json.loads(found[1])["items"])


def save(page: Page, by: Callable[[], None]) -> Path:
    """The file that the browser keeps once `by` has asked for it."""
    with page.expect_download() as waited:
        by()
    assert waited.value.suggested_filename == "review.jsonl"
    return Path(waited.value.path())


def verdicts(labels: list[Label]) -> list[tuple[str, str, str]]:
    return [(label.id, claim.text, claim.verdict) for label in labels for claim in label.claims or ()]


# From a person to the commands.


@pytest.mark.slow
def test_what_a_person_marks_survives_a_reload_and_is_taken_by_the_commands(
    opened: Opened, sheet: Path, run: Path, tmp_path: Path
) -> None:
    page = opened(sheet)
    given = items(sheet)
    claims = [(item["id"], claim) for item in given for claim in item["claims"]]
    assert len(given) == 8
    assert len(claims) > 8
    groups = page.get_by_role("group").filter(has=page.get_by_role("radio"))
    expect(groups).to_have_count(len(claims))
    # The lexical judge finds the answers in the contexts that they quote; of one held-out answer Ada says otherwise.
    doubted = next(item["id"] for item in given if item["split"] == "held_out")
    marks = [(id_, claim, "absent" if id_ == doubted else "supported") for id_, claim in claims]
    expect(page.get_by_role("group", name=claims[0][1], exact=True)).to_have_count(1)
    for place, (*_, word) in enumerate(marks):
        groups.nth(place).get_by_role("radio", name=word).check()
    page.get_by_label("Your name").fill("Ada Lovelace")
    expect(page.get_by_role("status")).to_contain_text("8 of 8 answers done.")

    page.reload()
    expect(page.get_by_role("status")).to_contain_text("8 of 8 answers done.")
    expect(page.get_by_label("Your name")).to_have_value("Ada Lovelace")
    for place, (*_, word) in enumerate(marks):
        expect(groups.nth(place).get_by_role("radio", name=word)).to_be_checked()
    review = save(page, page.get_by_role("button", name="Save").click)
    expect(page.get_by_role("status")).to_contain_text("Saved 8 answers.")

    labels = read_labels(review)
    assert verdicts(labels) == marks
    assert {label.who for label in labels} == {"Ada Lovelace"}
    assert all(label.when is not None for label in labels)
    assert [label.record for label in labels] == [f"{run.name}/{item['id']}" for item in given]

    (alignment,) = json.loads(paribus(tmp_path, "judge", "align", str(review), "--run", str(run), "--json"))[
        "alignments"
    ]
    scores = read_run(run).scores[DEFINITION]
    judged = {(id_, verdict.unit): verdict.ours for id_, score in scores.items() for verdict in score.evidence}
    held_out = [label for label in labels if label.split == "held_out"]
    pairs = Counter(f"{word}: {judged[id_, text]}" for id_, text, word in verdicts(held_out))
    assert alignment["n"] == len(held_out) > 1
    assert alignment["claims"]["words"] == pairs

    questions = tmp_path / "questions.jsonl"
    shutil.copy(ROOT / "runner" / "sample" / "questions.jsonl", questions)
    put = json.loads(paribus(tmp_path, "judge", "labels", str(review), "--into", str(questions), "--json"))
    assert [change["id"] for change in put["changed"]] == [item["id"] for item in given]
    rows = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()]
    found = {row["id"]: row["human"] for row in rows if row["id"] in {item["id"] for item in given}}
    assert [(id_, each["text"], each["verdict"]) for id_, human in found.items() for each in human["claims"]] == marks
    assert {human["who"] for human in found.values()} == {"Ada Lovelace"}


def test_keys_are_enough(opened: Opened, sheet: Path) -> None:
    page = opened(sheet)
    given = items(sheet)
    words = cycle(KEYS)
    marked = [(item["id"], claim, next(words)) for item in given for claim in item["claims"]]
    page.keyboard.press("j")
    for *_, word in marked:
        page.keyboard.press(KEYS[word])
    page.keyboard.press("k")  # back by one, and that one again
    page.keyboard.press(KEYS[marked[-2][2]])
    page.keyboard.press("Tab")
    page.keyboard.type("Ada 2 jk")  # letters and digits of a name mark nothing
    page.keyboard.press("Tab")
    labels = read_labels(save(page, lambda: page.keyboard.press("Enter")))
    assert verdicts(labels) == [mark for mark in marked if mark[2] != "no claim"]
    assert {label.who for label in labels} == {"Ada 2 jk"}


def test_nothing_is_saved_without_a_name_and_a_whole_answer(opened: Opened, sheet: Path) -> None:
    page = opened(sheet)
    given = items(sheet)
    told, button = page.get_by_role("status"), page.get_by_role("button", name="Save")
    button.click()
    expect(told).to_have_text("0 of 8 answers done. Write your name first: labels say who gave them.")
    expect(page.get_by_label("Your name")).to_be_focused()
    page.keyboard.type("Ada")
    button.click()
    expect(told).to_have_text("0 of 8 answers done. No answer is marked in full yet.")
    first = page.get_by_role("article").first
    for radio in first.get_by_role("radio", name="no claim").all():
        radio.check()
    button.click()
    expect(told).to_have_text("1 of 8 answers done. No answer has a claim: there is nothing to save.")
    for radio in page.get_by_role("article").nth(1).get_by_role("radio", name="absent").all():
        radio.check()
    page.get_by_role("article").nth(2).get_by_role("radio", name="absent").first.check()  # one of several
    (label,) = read_labels(save(page, button.click))
    assert label.id == given[1]["id"]
    expect(told).to_have_text("2 of 8 answers done. Saved 1 answers; 1 without a claim left out.")


def test_a_browser_that_keeps_nothing_is_told_of(opened: Opened, sheet: Path) -> None:
    opened(sheet).add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('off'); }})")
    page = opened(sheet)
    expect(page.get_by_role("status")).to_contain_text("This browser keeps no marks")
    for radio in page.get_by_role("article").first.get_by_role("radio", name="supported").all():
        radio.check()
    page.get_by_label("Your name").fill("Ada")
    assert len(read_labels(save(page, page.get_by_role("button", name="Save").click))) == 1


# Texts of others.


def test_texts_are_shown_as_they_are_and_never_run(opened: Opened, hostile: Path) -> None:
    page = opened(hostile)
    text = "\n".join(HOSTILE)
    assert page.locator("article h2").text_content() == f"1. {text}"
    assert page.locator("p.answer").text_content() == text
    assert page.locator("legend").all_text_contents() == list(HOSTILE)
    assert page.locator("details.context p").all_text_contents() == [text, *HOSTILE]
    assert page.evaluate("[typeof window.ran, document.scripts.length, document.images.length]") == ["undefined", 2, 0]
    for radio in page.get_by_role("radio", name="supported").all():
        radio.check()
    page.get_by_label("Your name").fill(HOSTILE[1])
    page.reload()
    (label,) = read_labels(save(page, page.get_by_role("button", name="Save").click))
    assert (label.id, label.question, label.answer, label.contexts) == (f"q{HOSTILE[0]}", text, text, (text, *HOSTILE))
    assert (label.reference, label.who) == (text, HOSTILE[1])
    assert [claim.text for claim in label.claims or ()] == list(HOSTILE)
    assert page.evaluate("typeof window.ran") == "undefined"


def test_a_line_reads_from_its_own_side(opened: Opened, hostile: Path) -> None:
    """An Arabic line ends at the right margin, an English one begins at the left, in one text."""
    page = opened(hostile)
    left, right = page.evaluate(
        """(lines) => {
          const text = document.querySelector("p.answer").firstChild;
          const box = text.parentElement.getBoundingClientRect();
          return lines.map((line) => {
            const range = document.createRange(), from = text.data.indexOf(line);
            range.setStart(text, from);
            range.setEnd(text, from + line.length);
            const found = range.getBoundingClientRect();
            return [found.left - box.left, box.right - found.right];
          });
        }""",
        [HOSTILE[0], RTL],
    )
    assert left[0] < 20 < left[1]
    assert right[1] < 20 < right[0]


# Screens, schemes and paper.


@pytest.mark.parametrize("which", ["sheet", "hostile"])
def test_a_phone_shows_it_without_scrolling_sideways(
    opened: Opened, which: str, request: pytest.FixtureRequest
) -> None:
    file: Path = request.getfixturevalue(which)
    opened(file).set_viewport_size({"width": 360, "height": 640})
    page = opened(file)
    page.locator("details.reference summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    sides = page.locator("body *:visible").evaluate_all(
        "(found) => found.map((e) => e.getBoundingClientRect()).map(({left, right}) => [left, right])"
    )
    assert len(sides) > 20
    assert all(0 <= left <= right <= 360 for left, right in sides)
    name, button = page.get_by_label("Your name").bounding_box(), page.get_by_role("button", name="Save").bounding_box()
    assert name
    assert button
    assert abs(name["y"] - button["y"]) < 10  # side by side: the bar leaves the screen to the texts
    assert name["width"] > 80


def test_the_bar_hides_nothing_that_has_the_focus(opened: Opened, sheet: Path) -> None:
    page = opened(sheet)
    page.set_viewport_size({"width": 360, "height": 640})
    bar = page.locator("footer").bounding_box()
    assert bar
    stops = 0
    while True:
        page.keyboard.press("Tab")
        bottom = page.evaluate(
            """() => document.querySelector("main").contains(document.activeElement)
                     ? document.activeElement.getBoundingClientRect().bottom : null"""
        )
        if bottom is None:
            break
        stops += 1
        assert bottom <= bar["y"]
    assert stops > 8 * 6  # five contexts and a claim at least, for each answer


CONTRAST = """() => {
  const channels = (color) => color.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const luminance = (color) => channels(color).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const bar = getComputedStyle(document.querySelector("footer")).backgroundColor;  // Canvas, as the page itself
  const seen = {};
  for (const name of ["h1", "h2", "p", "legend", "summary", "kbd", "label.choice", "#save", "#who", "#progress"]) {
    const style = getComputedStyle(document.querySelector(name));
    const own = style.backgroundColor === "rgba(0, 0, 0, 0)" ? bar : style.backgroundColor;
    const [light, dark] = [luminance(style.color), luminance(own)].sort((a, b) => b - a);
    seen[name] = (light + 0.05) / (dark + 0.05);
  }
  return [luminance(bar), seen];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(opened: Opened, sheet: Path, scheme: Any) -> None:
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    page = opened(sheet)
    page.emulate_media(color_scheme=scheme)
    ground, seen = page.evaluate(CONTRAST)
    assert (ground > 0.5) == (scheme == "light")
    assert min(seen.values()) >= 4.5, seen


def test_paper_has_all_that_a_person_needs_and_no_more(opened: Opened, sheet: Path) -> None:
    page = opened(sheet)
    page.get_by_label("Your name").fill("Ada")
    article = page.get_by_role("article").first
    article.get_by_text("Context 1").click()  # closes it; on paper nobody can open it again
    expect(article.locator("details.context p").first).to_be_hidden()
    page.emulate_media(media="print", color_scheme="dark")
    for text in article.locator("h2, p.answer, details.context p, legend, label.choice").all():
        assert text.evaluate("(e) => e.checkVisibility()"), text
    expect(article.locator("details.reference")).to_be_hidden()
    expect(page.get_by_role("button", name="Save")).to_be_hidden()
    expect(page.get_by_label("Your name")).to_be_visible()
    expect(page.locator("footer")).to_have_css("position", "static")
    page.emulate_media(media="screen", color_scheme="light")
    expect(page.locator("footer")).to_have_css("position", "fixed")
    article.get_by_text("Reference answer").click()
    page.emulate_media(media="print")
    expect(article.locator("details.reference p")).to_be_visible()  # opened, so wanted
    assert page.pdf().startswith(b"%PDF")
