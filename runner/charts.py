"""Charts as inline SVG: pure functions from numbers to text, with no library.

Every chart is drawn WIDTH units wide, which is the width of a phone, and grows with the page through STYLE. Each mark
has a <title>; text is text. The colours of the parts differ in lightness too, so that they can be told apart in grey.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

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
  .chart .part-1 { fill: var(--part-1); } .chart .part-2 { fill: var(--part-2); }
  .chart .part-3 { fill: var(--part-3); }
  .chart rect.part-1, .chart rect.part-2, .chart rect.part-3 { stroke: var(--soft); stroke-width: .75; }
  .chart text.on-1 { fill: var(--part-1-ink); } .chart text.on-2 { fill: var(--part-2-ink); }
  .chart text.on-3 { fill: var(--part-3-ink); }
"""
"""The style that the charts need. It stands in a <style> element, and its colours are for the page around them too."""


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


def _broken(text: str, width: int) -> list[str]:
    from textwrap import wrap

    lines = wrap(text, width) or [""]
    return lines if len(lines) <= 3 else [*lines[:2], f"{lines[2][: width - 1]}…"]


def _svg(height: float, title: str, marks: Sequence[str], width: float = WIDTH) -> str:
    told = _text(title)
    return (
        f'<svg class="chart" role="img" aria-label="{told}" viewBox="0 0 {width:g} {height:g}">'
        f"<title>{told}</title>{''.join(marks)}</svg>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _label(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_text(text)}</text>'


def _text(text: str) -> str:
    """`text` for a file of XML, which holds neither control characters nor lone surrogates."""
    return escape("".join(char if char.isprintable() else " " for char in text))
