"""The page of an audit: its numbers, its charts, and that no text of a record is more than text."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from adapters.schema import Score
from runner import charts, pages
from runner.audit import page
from tests.audit import stored

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Seen(HTMLParser):
    """The elements of a page with their attributes, and its text as a reader sees it; every element must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def test_the_router_example_shows_its_numbers_and_whose_they_are() -> None:
    # Five claims: three supported, one contradicted, one absent. Ragas 3 / 5, DeepEval (3 + 1) / 5: the absent one.
    text = Seen(page.html(stored.router())).text
    assert (
        "Ragas faithfulness 0.60 and DeepEval 0.80 on the same 5 claims: the whole 0.20 is the formula: a claim that "
        "is neither supported nor contradicted (absent, 1 of 5) counts against the score in Ragas faithfulness and for "
        "it in DeepEval." in text
    )
    assert "For example: Shipping is free of charge. absent: Ragas faithfulness counts it against; DeepEval" in text
    assert "A Ragas faithfulness − B DeepEval The whole 0.20" in text
    assert "1 0.600 0.800 −0.200 −0.200 none none" in text
    assert "ragas/response_groundedness does not count verdicts on units" in text
    assert "0.375" in text
    assert "trec_eval 0.5.10" in text


def test_the_claims_show_the_word_of_each_source_and_what_its_formula_makes_of_it() -> None:
    text = Seen(page.html(stored.router())).text
    shipping = text[text.rindex("Shipping is free of charge.") :]
    assert (
        "✗ against 0 (not supported) ragas finds it absent ✓ for borderline (absent) deepeval finds it absent "
        "✗ against borderline (absent) deepeval finds it absent" in shipping
    )
    assert "TruLens (splitter-llm) count it against; DeepEval counts it for" in shipping


def test_nothing_is_fetched_and_only_its_own_script_and_style_run() -> None:
    html = page.html(stored.router())
    for tag, attributes in Seen(html).elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "image", "use"}
        assert not {"src", "style", "xlink:href"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?:", html)
    policy = next(each["content"] for tag, each in Seen(html).elements if "http-equiv" in each)
    assert policy
    for text in re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", html, re.DOTALL):
        assert pages.policy_hash(text) in policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


def test_hostile_texts_are_text() -> None:
    html = page.html(stored.hostile())
    html.encode()  # no lone surrogate is left
    seen = Seen(html)
    assert [tag for tag, _ in seen.elements].count("script") == 1
    assert not {"img", "b:x", "noscript"} & {tag for tag, _ in seen.elements}
    assert "</script><script>window.ran = 1</script>" in seen.text
    assert "{{ 7 * 7 }} {% raw %}" in seen.text
    assert "49" not in re.findall(r"owned.{0,30}", seen.text)[0]
    assert "more characters)" in seen.text
    assert len(html) < 200_000  # an answer of 100 kB is cut


def test_five_hundred_records_are_a_small_page_and_soon_there() -> None:
    audit = stored.many(500)
    page.html(audit)
    began = time.process_time()
    html = page.html(audit)
    assert time.process_time() - began < 2
    assert len(html.encode()) < 3_000_000
    text = Seen(html).text
    assert "100 records, those first on which the definitions are furthest apart; 400 more are in audit.json." in text
    assert html.count('<table class="stack claims">') == 100


def test_records_with_many_claims_are_left_out_and_counted() -> None:
    claims = [(f"Claim {n} of a long answer", "supported") for n in range(40)]
    # Four definitions on the 30 claims shown are 120 verdicts a record; 50 records fill WORDS = 6,000.
    audit = stored.audited({f"q{n}": dict.fromkeys(stored.SAYS, claims) for n in range(60)})
    text = Seen(page.html(audit)).text
    assert "50 records, those first on which the definitions are furthest apart; 10 more are in audit.json." in text
    assert "10 more are in audit.json." in text


def test_parts_that_are_open_say_so() -> None:
    # Only Ragas has the second claim, and its word for it may be contradicted or absent: DeepEval's formula needs that.
    audit = stored.audited(
        {"q": {"ragas": [("The sky is blue.", "supported"), ("Bees can fly.", "absent")], "deepeval": stored.ROUTER}}
    )
    text = Seen(page.html(audit)).text
    assert "1 verdict says less than the other formula must know" in text
    assert "2 of Ragas alone and 5 of DeepEval alone" in text


def test_the_winner_that_changes_is_told() -> None:
    # a: 1 of 2 supported, none contradicted (Ragas 0.5, DeepEval 1); b: 2 of 3 supported, one contradicted (2/3, 2/3).
    one, red, two, up = (
        ("One is so.", "supported"),
        ("Red is so.", "supported"),
        ("Two.", "absent"),
        ("Up.", "contradicted"),
    )
    judged = {"qa": (one, two), "qb": (one, red, up)}
    audit = stored.audited(
        {id: dict.fromkeys(stored.SAYS, claims) for id, claims in judged.items()},
        (stored.RAGAS, stored.DEEPEVAL),
        systems={"qa": "a", "qb": "b"},
    )
    assert (
        "The winner changes: b by Ragas (0.667; a 0.500), a by DeepEval (1.000; b 0.667)" in Seen(page.html(audit)).text
    )


def test_an_audit_in_which_nothing_was_scored_is_a_page_too() -> None:
    audit = stored.audited({"q": {}}, judge=None)
    assert "No definition has a value: nothing here to judge." in Seen(page.html(audit)).text


@pytest.mark.parametrize(
    "chart",
    [
        charts.scatter([charts.Point(0.2, 0.4, "<q1>"), charts.Point(1.0, 1.0, "q2")], "a & b", "<c>", "title", 0.5),
        charts.heat_map(["<r>"], ["c"], [[charts.Cell(0.5, "0.500", "<t>", "0.4–0.6", True)]], "<title>"),
        charts.stacked(
            [charts.Bar("<a> − b", {"formula": (0.3, "+0.300"), "verdicts": (-0.1, "−0.100")}, "+0.2")], "t"
        ),
        charts.intervals([charts.Interval("<a>", 0.5, 0.4, 0.6, "0.500")], "t", 0.5),
    ],
    ids=["scatter", "heat_map", "stacked", "intervals"],
)
def test_a_chart_is_well_formed_and_names_its_marks(chart: str) -> None:
    from xml.etree import ElementTree

    drawn = ElementTree.fromstring(chart)
    marks = [each for each in drawn.iter() if each.tag == "circle" or "part-" in each.get("class", "")]
    titled = {id(child) for parent in drawn.iter() if parent.find("title") is not None for child in parent.iter()}
    assert all(id(mark) in titled for mark in marks)
    assert drawn.get("role") == "img"


def test_the_parts_of_a_bar_lie_end_to_end_on_their_sides_of_zero() -> None:
    # From -0.1 to 0.3 over 328 units: 820 a unit, zero at 6 + 82 = 88.
    parts = {"formula": (0.2, "+0.200"), "verdicts": (-0.1, "−0.100"), "splitting": (0.1, "+0.100")}
    drawn = charts.stacked([charts.Bar("a − b", parts, "+0.200")], "t")
    bars = re.findall(r'<rect class="(part-\d)" x="([\d.]+)" y="18" width="([\d.]+)"', drawn)
    assert bars == [("part-1", "88.0", "164.0"), ("part-2", "6.0", "82.0"), ("part-3", "252.0", "82.0")]


def test_a_mean_below_zero_is_drawn_at_the_end_of_its_line() -> None:
    drawn = charts.intervals([charts.Interval("a", -0.2, -0.4, 0.5, "−0.200")], "t")
    # The line goes from 6 to 334.
    assert 'cx="6.0"' in drawn
    assert '<line class="interval" x1="6.0" y1="24.0" x2="170.0" y2="24.0"/>' in drawn


def test_a_cosine_is_told_to_stand_for_itself() -> None:
    cosine = replace(stored.RATED, key="ragas/similarity", id="ragas/similarity", range=(-1.0, 1.0))
    audit = stored.audited(
        {"q": {"ragas": stored.ROUTER}}, (stored.RAGAS, cosine), extra=[Score("q", cosine.key, "f", -0.2)]
    )
    assert "a cosine stands for itself" in page.html(audit)
    assert "a cosine stands for itself" not in page.html(stored.router())


def test_points_of_one_place_are_one_larger_mark() -> None:
    drawn = charts.scatter([charts.Point(0.5, 0.5, f"q{n}") for n in range(5)], "a", "b", "t")
    assert drawn.count("<circle") == 1
    assert "q0, q1, q2 and 2 more" in drawn
