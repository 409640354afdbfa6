"""Charts of a report: where their marks lie, their scales, and that they stand as files of their own."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from runner import charts
from runner.report.figures import figures, number
from runner.report.material import material
from tests.report import made


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0.0, 1.0, 5, [0.0, 0.25, 0.5, 0.75, 1.0]),  # 1 / 4 is a round step
        (0.406, 0.787, 5, [0.4, 0.5, 0.6, 0.7, 0.8]),  # .381 / 4 = .095, so steps of .1 from .4 to .8
        (-0.03, 0.05, 4, [-0.05, 0.0, 0.05]),  # .08 / 3 = .027, so steps of .05: -.05 to .05
        (886, 6322, 5, [0.0, 2000.0, 4000.0, 6000.0, 8000.0]),  # 5436 / 4 = 1359, so steps of 2000
        (0.5, 0.5, 4, [0.45, 0.5, 0.55]),  # one value: a tenth of it to both sides, .1 / 3 = .033, so steps of .05
        (0.0, 0.0, 4, [-0.1, 0.0, 0.1]),
    ],
)
def test_ticks_are_round_and_hold_both_ends(low: float, high: float, most: int, expected: list[float]) -> None:
    assert charts.ticks(low, high, most) == expected


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6])
def test_ticks_hold_what_they_are_asked_for_at_any_scale(scale: float) -> None:
    for part in range(1, 40):
        low, high = -scale * part / 7, scale * (part * part) / 11
        found = charts.ticks(low, high)
        assert found[0] <= low * (1 - 1e-9)
        assert found[-1] >= high * (1 - 1e-9)
        assert 2 <= len(found) <= 7
        gaps = [after - before for before, after in pairwise(found)]
        assert max(gaps) == pytest.approx(min(gaps))


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([128, 256, 512], True),
        ([200, 400, 800, 1600], True),
        ([1, 10, 100], True),
        ([3, 5, 10], False),  # ten is less than four times three
        ([1, 2, 3, 4, 5], False),
        ([10, 20, 30, 40], False),
        ([0, 256, 512], False),  # 0 has no logarithm
        ([5, 50], False),
    ],
)
def test_places_that_double_are_seen(places: list[float], expected: bool) -> None:
    assert charts.doubling(places) is expected


def at(svg: str, mark: str) -> list[tuple[float, float]]:
    """Where the marks of a kind are; a diamond by its tip."""
    if mark == "baseline":
        return [(float(x), float(y) + 6.5) for x, y in re.findall(r'class="baseline" d="M([\d.]+) ([\d.]+)l', svg)]
    return [(float(x), float(y)) for x, y in re.findall(rf'<circle class="{mark}" cx="([\d.]+)" cy="([\d.]+)"', svg)]


def test_doubling_sizes_are_as_far_apart_as_each_other() -> None:
    dots = [
        charts.Dot(512, 1.0, 0.5, 1.0, "1.000 better", sure=True),
        charts.Dot(128, 0.0, None, None, "0.000 cannot tell"),
        charts.Dot(256, 0.5, None, None, "0.500 (baseline)", baseline=True),
    ]
    drawn = charts.lines([charts.Panel("recall", dots, 0.5)], "chunker.size", "t")
    (sure,), (hollow,), (baseline,) = at(drawn, "dot"), at(drawn, "hollow"), at(drawn, "baseline")
    # The axis reaches from 46 to 330, with 12 left free at both ends: 58, 188 and 318.
    assert (hollow[0], baseline[0], sure[0]) == (58.0, 188.0, 318.0)
    # 0 to 1 over 78 units: .5 is 39 below 1.
    assert sure[1] == pytest.approx(baseline[1] - 39)
    assert hollow[1] == pytest.approx(baseline[1] + 39)
    assert 'aria-label="t. recall: 128 0.000 cannot tell, 256 0.500 (baseline), 512 1.000 better"' in drawn
    assert re.findall(r'class="zero dashed" x1="46.0" y1="([\d.]+)"', drawn) == [f"{baseline[1]:.1f}"]


def test_differences_lie_on_both_sides_of_zero() -> None:
    rows = [
        charts.Delta("up", 0.3, 0.15, 0.6, "+0.300 better", sure=True),
        charts.Delta("down", -0.3, -0.6, 0.0, "-0.300", sure=False),
    ]
    drawn = charts.deltas({"recall": rows}, "t")
    # -.6 to .6 over 324 units from 8: 0 is at 170, .3 at 251, -.3 at 89.
    assert [x for x, _ in at(drawn, "dot")] == [251.0]
    assert [x for x, _ in at(drawn, "hollow")] == [89.0]
    assert re.findall(r'class="interval" x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"', drawn) == [
        ("210.5", "332.0"),
        ("8.0", "170.0"),
    ]
    assert all(told in drawn for told in ("−0.6", "−0.3", ">0<", "+0.3", "+0.6"))


def test_the_front_is_joined_from_cheap_to_dear_and_what_has_no_room_is_named() -> None:
    places = [
        charts.Place(0.0, 0.0, "cheap", "0 at 0", front=True),
        charts.Place(100.0, 1.0, "good", "1 at 100", front=True),
        charts.Place(50.0, 0.25, "worse", "0.25 at 50", front=False, baseline=True),
        charts.Place(50.0, 0.25, "as worse", "0.25 at 50", front=False),
    ]
    drawn = charts.front(places, "characters", "recall", "t")
    # Across: 0 to 100 over 282 units from 50. Up: 0 to 1 over 280 units down to 292.
    assert 'class="front" d="M50.0 292.0H332.0V12.0"' in drawn
    assert at(drawn, "baseline") == [(191.0, 222.0)]
    assert "worse, as worse" in drawn
    assert "worse: 0.25 at 50; as worse: 0.25 at 50" in drawn
    crowd = [charts.Place(n % 7, n // 7, f"a rather long name {n}", "", front=False) for n in range(63)]
    assert "Not named for lack of room: " in charts.front([*places, *crowd], "x", "y", "t")


@pytest.mark.parametrize("name", made.SWEEPS)
def test_every_figure_is_a_file_that_needs_nothing_else(name: str) -> None:
    drawn = figures(material(made.SWEEPS[name]()))
    assert drawn or name == "alone"
    for figure in drawn:
        file = charts.standalone(figure.svg)
        root = ElementTree.fromstring(file)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        left, top, width, height = (float(part) for part in root.attrib["viewBox"].split())
        assert (left, top) == (-10, -10)
        assert float(root.attrib["width"]) / float(root.attrib["height"]) == pytest.approx(width / height)
        style = root.find("{http://www.w3.org/2000/svg}style")
        assert style is not None
        assert "prefers-color-scheme: dark" in str(style.text)
        assert not re.search(r"url\(|@import", str(style.text))
        for element in root.iter():
            assert element.tag.rpartition("}")[2] in {
                *("svg", "g", "title", "style", "rect", "circle", "line", "path", "polyline", "text")
            }
            assert not [key for key in element.attrib if "href" in key or key.startswith("on")]
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.svg", figure.file)
        assert root.attrib["aria-label"]
        rightmost = max((x for kind in ("dot", "hollow") for x, _ in at(file, kind)), default=0)
        assert rightmost <= charts.WIDTH


def test_what_no_question_changed_is_told_and_not_drawn() -> None:
    drawn = {figure.variable: figure for figure in figures(material(made.sizes()))}
    assert set(drawn) == {"chunker.size", "retriever", None}
    assert "refusal_rate" not in drawn["chunker.size"].svg
    assert drawn["chunker.size"].caption.endswith("Unchanged in every question: refusal_rate.")
    assert "Not drawn, because one of the two is unknown: retriever=broken." in drawn[None].caption


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5", 5.0), ("1e-3", 0.001), ("none", None), ("nan", None), ("inf", None), (None, None), ("true", None)],
)
def test_only_finite_numbers_are_numbers(text: str | None, expected: float | None) -> None:
    assert number(text) == expected
