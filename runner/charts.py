"""Charts as inline SVG: pure functions from numbers to text, with no library.

Every chart is drawn WIDTH units wide, which is the width of a phone, and grows with the page through STYLE. Each mark
has a <title>; text is text. The colours of the parts differ in lightness too, so that they can be told apart in grey.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

WIDTH = 340
"""Units of a chart, which are pixels on the narrowest phone."""
GRID = 0.01
"""Points of a scatter that fall into one cell of this size are one mark."""
SHORTEST_LABELLED = 34
"""Width of a bar from which on its number fits into it."""

STYLE = """
  :root { --ink: #1b1f24; --soft: #59636e; --line: #c9d0d7; --ground: #ffffff; --raised: #f4f6f8; --heat: #2f6fd0;
    --part-1: #17407f; --part-1-ink: #ffffff; --part-2: #e08b1a; --part-2-ink: #1b1f24; --part-3: #cfe3f5;
    --part-3-ink: #1b1f24; }
  @media screen and (prefers-color-scheme: dark) {
    :root { --ink: #e8ebee; --soft: #a3adb8; --line: #434c56; --ground: #14181c; --raised: #1e242a; --heat: #4f8ff0;
      --part-1: #a9cdfb; --part-1-ink: #14181c; --part-2: #d9822b; --part-2-ink: #14181c; --part-3: #3c4d66;
      --part-3-ink: #e8ebee; }
  }
  .chart { display: block; width: 100%; max-width: 27rem; height: auto; font-family: system-ui, sans-serif; }
  .chart text { font-size: 11px; fill: var(--ink); }
  .chart .soft { fill: var(--soft); }
  .chart .strong { font-weight: 600; }
  .chart .small { font-size: 9px; }
  .chart .rule { stroke: var(--line); stroke-width: 1; fill: none; }
  .chart .zero, .chart .frame { stroke: var(--soft); stroke-width: 1; fill: none; }
  .chart .dashed { stroke-dasharray: 4 3; }
  .chart .point { fill: var(--heat); fill-opacity: .55; stroke: var(--ground); stroke-width: .75; }
  .chart .interval { stroke: var(--heat); stroke-width: 3; stroke-linecap: round; }
  .chart .dot { fill: var(--part-1); stroke: var(--ground); stroke-width: 1.5; }
  .chart .hollow { fill: var(--ground); stroke: var(--part-1); stroke-width: 1.75; }
  .chart .heat { fill: var(--heat); }
  .chart .own { fill: none; stroke: var(--ink); stroke-width: 1.75; }
  .chart .baseline { fill: var(--ground); stroke: var(--ink); stroke-width: 2; }
  .chart .way { fill: none; stroke: var(--heat); stroke-width: 1.25; stroke-opacity: .6; }
  .chart .front { fill: none; stroke: var(--part-2); stroke-width: 2.5; }
  .chart .halo { paint-order: stroke; stroke: var(--ground); stroke-width: 3px; }
  .chart .part-1 { fill: var(--part-1); } .chart .part-2 { fill: var(--part-2); }
  .chart .part-3 { fill: var(--part-3); }
  .chart rect.part-1, .chart rect.part-2, .chart rect.part-3 { stroke: var(--soft); stroke-width: .75; }
  .chart text.on-1 { fill: var(--part-1-ink); } .chart text.on-2 { fill: var(--part-2-ink); }
  .chart text.on-3 { fill: var(--part-3-ink); }
"""
"""The style that the charts need. It stands in a <style> element, and its colours are for the page around them too."""
MARGIN = 10
"""Ground around a chart that is a file of its own."""
LETTER = 5.9
"""Width of a letter of a label, by the wider ones of common fonts."""


@dataclass(frozen=True, slots=True)
class Point:
    """A mark of a scatter, 0 to 1 on both axes. name: what it is."""

    x: float
    y: float
    name: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a heat map, 0 to 1. text: its number; note: a second, smaller line. own: framed."""

    value: float
    text: str
    title: str
    note: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of signed parts: part -> (length, its number as text), at most three parts. total: what they sum to."""

    name: str
    parts: Mapping[str, tuple[float, str]]
    total: str


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, 0 to 1, with the ends of its interval where it has one. told: the numbers as text."""

    name: str
    value: float
    low: float | None
    high: float | None
    told: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two means of one thing, 0 to 1, before and after. told: the difference as text."""

    name: str
    before: float
    after: float
    told: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A value at a place of an axis, with the ends of its interval where it has one. told: the numbers as text. sure:
    drawn filled; the others are hollow. baseline: what the others are compared with."""

    x: float
    y: float
    low: float | None
    high: float | None
    told: str
    sure: bool = False
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a figure. name: what is measured; level: where the dashed line of the baseline lies."""

    name: str
    dots: Sequence[Dot]
    level: float | None


@dataclass(frozen=True, slots=True)
class Delta:
    """A difference around 0 with the ends of its interval where it has one. told: the numbers as text; sure: drawn
    filled."""

    name: str
    value: float
    low: float | None
    high: float | None
    told: str
    sure: bool


@dataclass(frozen=True, slots=True)
class Place:
    """What something costs (x) and how good it is (y). told: the numbers as text."""

    x: float
    y: float
    name: str
    told: str
    front: bool
    baseline: bool = False


def scatter(points: Sequence[Point], x: str, y: str, title: str, threshold: float | None = None) -> str:
    """One value against another: on the dashed diagonal they are equal. Marks of many points are larger."""
    left, top, side = 50, 16, 272
    bottom = top + side

    def at(value: float) -> float:
        return min(max(value, 0.0), 1.0) * side

    marks = [f'<rect class="frame" x="{left}" y="{top}" width="{side}" height="{side}"/>']
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        marks.append(_line(left + at(tick), top, left + at(tick), bottom, "rule"))
        marks.append(_line(left, bottom - at(tick), left + side, bottom - at(tick), "rule"))
        marks.append(_label(left + at(tick), bottom + 14, f"{tick:g}", "soft", "middle"))
        marks.append(_label(left - 6, bottom - at(tick) + 4, f"{tick:g}", "soft", "end"))
    marks.append(_line(left, bottom, left + side, top, "zero dashed"))
    if threshold is not None:
        marks.append(_line(left + at(threshold), top, left + at(threshold), bottom, "zero"))
        marks.append(_line(left, bottom - at(threshold), left + side, bottom - at(threshold), "zero"))
    together: dict[tuple[float, float], list[str]] = {}
    for point in points:
        cell = (round(point.x / GRID) * GRID, round(point.y / GRID) * GRID)
        together.setdefault(cell, []).append(point.name)
    # The largest first, so that none is hidden.
    for (across, up), names in sorted(together.items(), key=lambda item: -len(item[1])):
        radius = min(4.5 + 1.5 * math.sqrt(len(names) - 1), 16)
        told = f"{x} {across:.2f}, {y} {up:.2f}: {_some(names)}"
        marks.append(
            f'<circle class="point" cx="{left + at(across):.1f}" cy="{bottom - at(up):.1f}" r="{radius:.1f}">'
            f"<title>{_text(told)}</title></circle>"
        )
    marks.append(_label(left + side / 2, bottom + 32, shortened(x, 46), "strong", "middle"))
    middle = top + side / 2
    marks.append(
        f'<text class="strong" text-anchor="middle" transform="translate(11 {middle:g}) rotate(-90)">'
        f"{_text(shortened(y, 42))}</text>"
    )
    return _svg(bottom + 40, title, marks)


def heat_map(
    rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[Cell]], title: str, names: int = 132
) -> str:
    """Numbers on a ground that is the darker the larger they are. names: units that the names of the rows take."""
    width = max(34.0, (WIDTH - names) / max(len(columns), 1))
    height, top = 36, 20
    marks = [
        _label(names + width * (place + 0.5), top - 6, name, "strong", "middle") for place, name in enumerate(columns)
    ]
    for down, (name, row) in enumerate(zip(rows, cells, strict=True)):
        y = top + height * down
        lines = _broken(name, 21)
        for place, line in enumerate(lines):
            marks.append(_label(0, y + height / 2 + 4 + 12 * (place - (len(lines) - 1) / 2), line))
        for across, cell in enumerate(row):
            x = names + width * across
            strength = 0.04 + 0.6 * min(max(cell.value, 0.0), 1.0)
            marks.append(
                f'<g><title>{_text(cell.title)}</title><rect class="heat" fill-opacity="{strength:.3f}" '
                f'x="{x + 1:.1f}" y="{y + 1}" width="{width - 2:.1f}" height="{height - 2}"/>'
            )
            marks.append(_label(x + width / 2, y + (17 if cell.note else 22), cell.text, "strong", "middle"))
            if cell.note:
                marks.append(_label(x + width / 2, y + 29, cell.note, "small", "middle"))
            marks.append("</g>")
            if cell.own:
                marks.append(
                    f'<rect class="own" x="{x + 2:.1f}" y="{y + 2}" width="{width - 4:.1f}" height="{height - 4}"/>'
                )
    return _svg(top + height * len(rows) + 2, title, marks, max(WIDTH, names + width * len(columns)))


def stacked(bars: Sequence[Bar], title: str) -> str:
    """Bars of parts that go right of zero where they are positive and left where they are negative."""
    high = max((sum(max(size, 0.0) for size, _ in bar.parts.values()) for bar in bars), default=0.0)
    low = min((sum(min(size, 0.0) for size, _ in bar.parts.values()) for bar in bars), default=0.0)
    scale = (WIDTH - 12) / max(high - low, 1e-9)
    zero = 6 - low * scale
    height, marks = 46, []
    for down, bar in enumerate(bars):
        y = height * down
        marks.append(_label(0, y + 12, _beside(bar.name, bar.total)))
        marks.append(_label(WIDTH, y + 12, bar.total, "strong", "end"))
        ends = {True: zero, False: zero}
        for number, (part, (size, told)) in enumerate(bar.parts.items(), 1):
            if size == 0:
                continue
            length = abs(size) * scale
            start = ends[size > 0] if size > 0 else ends[False] - length
            ends[size > 0] += length if size > 0 else -length
            marks.append(
                f'<g><title>{_text(f"{bar.name}: {part} {told}")}</title><rect class="part-{number}" '
                f'x="{start:.1f}" y="{y + 18}" width="{length:.1f}" height="18"/>'
            )
            if length >= SHORTEST_LABELLED:
                marks.append(_label(start + length / 2, y + 31, told, f"on-{number}", "middle"))
            marks.append("</g>")
        marks.append(_line(zero, y + 15, zero, y + 39, "zero"))
    return _svg(height * len(bars), title, marks)


def intervals(rows: Sequence[Interval], title: str, threshold: float | None = None) -> str:
    """Means as dots on a line from 0 to 1, with their intervals; what lies outside is drawn at the end."""
    height, left, width = 36, 6, WIDTH - 12
    bottom, marks = height * len(rows), []

    def at(value: float) -> float:
        return left + width * min(max(value, 0.0), 1.0)

    for down, row in enumerate(rows):
        y = height * down + 24
        marks.append(_label(0, y - 12, _beside(row.name, row.told)))
        marks.append(_label(WIDTH, y - 12, row.told, "strong", "end"))
        marks.append(_line(left, y, left + width, y, "rule"))
        if threshold is not None:
            marks.append(_line(at(threshold), y - 7, at(threshold), y + 7, "zero"))
        marks.append(f"<g><title>{_text(f'{row.name}: {row.told}')}</title>")
        if row.low is not None and row.high is not None:
            marks.append(_line(at(row.low), y, at(row.high), y, "interval"))
        marks.append(f'<circle class="dot" cx="{at(row.value):.1f}" cy="{y}" r="4.5"/></g>')
    return _svg(bottom + 14, title, [*marks, *_ticks(bottom + 10, left, width)])


def pairs(rows: Sequence[Pair], title: str) -> str:
    """Two dots a row on a line from 0 to 1, the hollow one before and the filled one after, with a line between."""
    height, left, width = 36, 6, WIDTH - 12
    marks = []
    for down, row in enumerate(rows):
        y = height * down + 24
        before, after = (left + width * min(max(value, 0.0), 1.0) for value in (row.before, row.after))
        marks.append(_label(0, y - 12, _beside(row.name, row.told)))
        marks.append(_label(WIDTH, y - 12, row.told, "strong", "end"))
        marks.append(_line(left, y, left + width, y, "rule"))
        marks.append(f"<g><title>{_text(f'{row.name}: {row.before:.3f} to {row.after:.3f}, {row.told}')}</title>")
        marks.append(_line(before, y, after, y, "interval"))
        marks.append(f'<circle class="hollow" cx="{before:.1f}" cy="{y}" r="4.5"/>')
        marks.append(f'<circle class="dot" cx="{after:.1f}" cy="{y}" r="4.5"/></g>')
    return _svg(height * len(rows) + 14, title, [*marks, *_ticks(height * len(rows) + 10, left, width)])


def lines(panels: Sequence[Panel], x: str, title: str) -> str:
    """Values over a numeric variable, a panel each, with a common axis: of logarithms where the places double."""
    height, left, right = 138, 46, WIDTH - 10
    places = sorted({dot.x for panel in panels for dot in panel.dots})
    scale = math.log if doubling(places) else float
    ends = [scale(places[0]), scale(places[-1])] if places else [0.0, 0.0]
    room = 12  # so that the first and the last mark are not on the frame

    def across(value: float) -> float:
        if ends[0] == ends[1]:
            return (left + right) / 2
        return left + room + (right - left - 2 * room) * (scale(value) - ends[0]) / (ends[1] - ends[0])

    marks = []
    for down, panel in enumerate(panels):
        top = height * down + 28
        bottom = top + 78
        values = [end for dot in panel.dots for end in (dot.y, dot.low, dot.high) if end is not None]
        steps = ticks(*_ends([*values, *([] if panel.level is None else [panel.level])]))

        def up(value: float, low: float = steps[0], high: float = steps[-1], bottom: float = bottom) -> float:
            return bottom - 78 * (value - low) / (high - low)

        marks.append(_label(0, top - 13, shortened(panel.name, 52), "strong"))
        for tick in steps:
            marks.append(_line(left, up(tick), right, up(tick), "rule"))
            marks.append(_label(left - 6, up(tick) + 4, _tick(tick), "soft", "end"))
        if panel.level is not None:
            marks.append(_line(left, up(panel.level), right, up(panel.level), "zero dashed"))
        free = -math.inf
        for place in places:
            told = _tick(place)
            if across(place) - len(told) * LETTER / 2 > free:
                marks.append(_label(across(place), bottom + 15, told, "soft", "middle"))
                free = across(place) + len(told) * LETTER / 2 + 4
        dots = sorted(panel.dots, key=lambda dot: dot.x)
        way = " ".join(f"{across(dot.x):.1f},{up(dot.y):.1f}" for dot in dots)
        marks.append(f'<polyline class="way" points="{way}"/>')
        for dot in dots:
            marks.append(f"<g><title>{_text(f'{panel.name}, {x} {_tick(dot.x)}: {dot.told}')}</title>")
            if dot.low is not None and dot.high is not None:
                marks.append(_line(across(dot.x), up(dot.low), across(dot.x), up(dot.high), "interval"))
            marks.append(f"{_mark(across(dot.x), up(dot.y), dot.sure, dot.baseline)}</g>")
    last = height * len(panels)
    marks.append(_label((left + right) / 2, last + 2, shortened(x, 46), "strong", "middle"))
    told = "; ".join(
        f"{panel.name}: {', '.join(f'{_tick(dot.x)} {dot.told}' for dot in sorted(panel.dots, key=lambda dot: dot.x))}"
        for panel in panels
    )
    return _svg(last + 8, title, marks, told=told)


def deltas(groups: Mapping[str, Sequence[Delta]], title: str) -> str:
    """Differences with their intervals on one line around 0, in groups that have a heading each."""
    reach = max((abs(end) for rows in groups.values() for row in rows for end in _all(row)), default=0.0)
    end = _round_end(reach)
    steps = [-end, -end / 2, 0.0, end / 2, end]
    left, width, y = 8, WIDTH - 16, 0.0

    def at(value: float) -> float:
        return left + width * (value - steps[0]) / (steps[-1] - steps[0])

    marks = []
    for name, rows in groups.items():
        y += 18
        marks.append(_label(0, y, shortened(name, 52), "strong"))
        for row in rows:
            y += 34
            marks.append(_label(left, y - 13, shortened(row.name, int((width - 7 * len(row.told)) / 6.4))))
            marks.append(_label(WIDTH, y - 13, row.told, "", "end"))
            marks.append(_line(left, y, left + width, y, "rule"))
            marks.append(_line(at(0), y - 7, at(0), y + 7, "zero"))
            marks.append(f"<g><title>{_text(f'{name}, {row.name}: {row.told}')}</title>")
            if row.low is not None and row.high is not None:
                marks.append(_line(at(row.low), y, at(row.high), y, "interval"))
            marks.append(f"{_mark(at(row.value), y, row.sure)}</g>")
        y += 12
    for place, tick in enumerate(steps):
        anchor = "start" if place == 0 else "end" if place == len(steps) - 1 else "middle"
        marks.append(
            _label({"start": 0.0, "end": WIDTH}.get(anchor, at(tick)), y + 6, _tick(tick, True), "soft", anchor)
        )
    told = "; ".join(f"{name}: {', '.join(f'{row.name} {row.told}' for row in rows)}" for name, rows in groups.items())
    return _svg(y + 12, title, marks, told=told)


def front(places: Sequence[Place], x: str, y: str, title: str) -> str:
    """Quality (up) against cost (across), with a line through the front and names at the marks."""
    left, top, right, bottom = 50, 12, WIDTH - 8, 292
    across_steps, up_steps = (ticks(*_ends([getattr(place, axis) for place in places]), most=5) for axis in ("x", "y"))

    def across(value: float) -> float:
        return left + (right - left) * (value - across_steps[0]) / (across_steps[-1] - across_steps[0])

    def up(value: float) -> float:
        return bottom - (bottom - top) * (value - up_steps[0]) / (up_steps[-1] - up_steps[0])

    marks = []
    for tick in across_steps:
        marks.append(_line(across(tick), top, across(tick), bottom, "rule"))
        last = tick == across_steps[-1]
        marks.append(
            _label(WIDTH if last else across(tick), bottom + 14, _tick(tick), "soft", "end" if last else "middle")
        )
    for tick in up_steps:
        marks.append(_line(left, up(tick), right, up(tick), "rule"))
        marks.append(_label(left - 6, up(tick) + 4, _tick(tick), "soft", "end"))
    on_it = sorted((place for place in places if place.front), key=lambda place: (place.x, place.y))
    if on_it:
        steps = "".join(f"H{across(place.x):.1f}V{up(place.y):.1f}" for place in on_it[1:])
        marks.append(f'<path class="front" d="M{across(on_it[0].x):.1f} {up(on_it[0].y):.1f}{steps}"/>')
    # Those of one spot are one mark, which the most important of them draws.
    spots: dict[tuple[int, int], list[Place]] = {}
    for place in sorted(places, key=lambda place: (not place.baseline, not place.front)):
        spot = (round(across(place.x) / 4), round(up(place.y) / 4))
        spots.setdefault(spot, []).append(place)
    taken = [
        (across(each[0].x) - 6, up(each[0].y) - 6, across(each[0].x) + 6, up(each[0].y) + 6) for each in spots.values()
    ]
    unnamed, labels = [], []
    for together in spots.values():
        first = together[0]
        mark = across(first.x), up(first.y)
        names = ", ".join(shortened(place.name, 30) for place in together[:2])
        name = names if len(together) <= 2 else f"{names} +{len(together) - 2}"
        told = "; ".join(f"{place.name}: {place.told}" for place in together)
        marks.append(
            f"<g><title>{_text(told)}</title>{_mark(*mark, first.front, any(p.baseline for p in together))}</g>"
        )
        box = _free(
            mark,
            len(name) * (0.97 if first.front or first.baseline else 0.87) * LETTER,
            taken,
            (left, top, right, bottom),
        )
        if box is None:
            unnamed.append(name)
            continue
        taken.append(box)
        nearest = min(max(mark[0], box[0]), box[2]), min(max(mark[1], box[1]), box[3])
        if math.dist(mark, nearest) > 12:  # or it could be another mark's
            marks.append(_line(*mark, *nearest, "zero"))
        kind = "small halo strong" if first.front or first.baseline else "small halo"
        labels.append(_label(box[0], box[3] - 3, name, kind))
    marks += labels
    marks.append(_label((left + right) / 2, bottom + 32, shortened(x, 46), "strong", "middle"))
    marks.append(
        f'<text class="strong" text-anchor="middle" transform="translate(11 {(top + bottom) / 2:g}) rotate(-90)">'
        f"{_text(shortened(y, 42))}</text>"
    )
    foot = bottom + 40.0
    for line in _broken(f"Not named for lack of room: {', '.join(unnamed)}", 62, 6) if unnamed else ():
        foot += 12
        marks.append(_label(0, foot, line, "small soft"))
    named = "; ".join(f"{place.name}{' (on the front)' if place.front else ''} {place.told}" for place in places)
    return _svg(foot + 4, title, marks, told=named)


def standalone(svg: str) -> str:
    """A chart as a file of its own, on its own ground, in the colours of light and dark."""
    inner = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if inner is None:
        raise ValueError("a chart of this module has a viewBox")
    width, height = (float(size) + 2 * MARGIN for size in inner.groups())
    box = f'x="{-MARGIN}" y="{-MARGIN}" width="{width:g}" height="{height:g}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{1.5 * width:g}" height="{1.5 * height:g}" '
        f'viewBox="{-MARGIN} {-MARGIN} {width:g} {height:g}"'
    )
    # The size is in the attributes: CSS would leave a picture of it without one.
    style = f"<style>{STYLE}  svg.chart {{ width: auto; max-width: none; height: auto; }}</style>"
    ground = f'<rect {box} style="fill: var(--ground)"/>'
    start, _, rest = svg.replace(inner[0], "", 1).partition(">")
    return f"{head}{start.removeprefix('<svg')}>{style}{ground}{rest}\n"


def is_ours(file: Path) -> bool:
    """Whether a file holds what `standalone` made."""
    with file.open(encoding="utf-8", errors="replace") as start:
        return bool(_OURS.match(start.read(300)))


_OURS = re.compile(r'<svg xmlns="http://www\.w3\.org/2000/svg" [^<>]*class="chart" role="img"')


def ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Round numbers at equal steps, about `most` of them, the first at or below `low`, the last at or above `high`."""
    if high <= low:
        room = abs(low) * 0.1 or 0.1
        low, high = low - room, high + room
    raw = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (1.0, 2.0, 2.5, 5.0, 10.0) if size * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{place * step:.12g}") for place in range(first, max(last, first + 1) + 1)]


def _round_end(reach: float) -> float:
    """A round number at or above `reach`, of which a half is round too."""
    if reach <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(reach) + 1e-9)
    sizes = (1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    return float(f"{next(size * power for size in sizes if size * power >= reach * (1 - 1e-9)):.12g}")


def doubling(places: Sequence[float]) -> bool:
    """Whether sorted places are more evenly spread as logarithms, as 128, 256, 512 are."""
    if len(places) < 3 or places[0] <= 0 or places[-1] < 4 * places[0]:
        return False
    gaps = [after - before for before, after in pairwise(places)]
    ratios = [math.log(after / before) for before, after in pairwise(places)]
    return max(ratios) / min(ratios) < max(gaps) / min(gaps)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values, default=0.0), max(values, default=1.0)


def _all(row: Delta) -> tuple[float, ...]:
    return tuple(end for end in (row.value, row.low, row.high) if end is not None)


def _mark(x: float, y: float, sure: bool, baseline: bool = False) -> str:
    """A filled or a hollow dot; a diamond for the baseline."""
    if baseline:
        return f'<path class="baseline" d="M{x:.1f} {y - 6.5:.1f}l6.5 6.5-6.5 6.5-6.5-6.5z"/>'
    return f'<circle class="{"dot" if sure else "hollow"}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def _free(spot: tuple[float, float], width: float, taken: Sequence[Box], frame: Box) -> Box | None:
    """Where beside a mark a label of one line has room; None where it has none."""
    x, y = spot
    for far in (8, 15, 24, 36):
        for left, middle in (
            (x + far, y),
            (x - far - width, y),
            (x - width / 2, y - far - 4),
            (x - width / 2, y + far + 4),
            (x + far / 2, y - far),
            (x + far / 2, y + far),
            (x - far / 2 - width, y - far),
            (x - far / 2 - width, y + far),
        ):
            box = (left, middle - 6, left + width, middle + 6)
            inside = box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]
            if inside and not any(_touch(box, other) for other in taken):
                return box
    return None


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _tick(value: float, signs: bool = False) -> str:
    told = f"{value:,.10g}".replace("-", "−")
    return f"+{told}" if signs and value > 0 else told


def _ticks(y: float, left: float, width: float) -> list[str]:
    """The ends and the middle of a line from 0 to 1."""
    ends = ((0.0, 0.0, "start"), (0.5, left + width * 0.5, "middle"), (1.0, float(WIDTH), "end"))
    return [_label(at, y, f"{tick:g}", "soft", anchor) for tick, at, anchor in ends]


def shortened(text: str, length: int) -> str:
    """At most `length` characters, the middle left out: names of one family differ at their ends."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


def _beside(name: str, other: str) -> str:
    """`name` as long as it leaves room on its line for `other`, by the widest letters of common fonts."""
    return shortened(name, int((WIDTH - 7.2 * len(other)) / 6.6))


def _some(names: Sequence[str]) -> str:
    told = ", ".join(shortened(name, 60) for name in names[:3])
    return told if len(names) <= 3 else f"{told} and {len(names) - 3} more"


def _broken(text: str, width: int, most: int = 3) -> list[str]:
    from textwrap import wrap

    lines = wrap(text, width) or [""]
    return lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1][: width - 1]}…"]


def _svg(height: float, title: str, marks: Sequence[str], width: float = WIDTH, told: str = "") -> str:
    """told: the numbers of the chart as text, for those who do not see it."""
    spoken = f"{title}. {told}" if told else title
    return (
        f'<svg class="chart" role="img" aria-label="{_text(spoken)}" viewBox="0 0 {width:g} {height:g}">'
        f"<title>{_text(title)}</title>{''.join(marks)}</svg>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _label(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_text(text)}</text>'


def _text(text: str) -> str:
    """`text` for a file of XML, which holds neither control characters nor lone surrogates."""
    return escape(text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text))
