"""The figures of a report: one for each swept variable, and quality against cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from runner import charts, phrases
from runner.compare.findings import Row
from runner.compare.wording import shown
from runner.recommendation.findings import Considered
from runner.recommendation.wording import COSTS
from runner.report import wording
from runner.report.findings import Report
from runner.run_log import safe_artifact_name

ROWS = 60
"""Options times definitions of one figure; further definitions are left out of it."""
FRONT = "quality_and_cost.svg"


@dataclass(frozen=True)
class Figure:
    """file: its name in the folder charts; variable: what it is about, None for quality against cost; caption: how it
    is to be read."""

    file: str
    variable: str | None
    svg: str
    caption: str


def figures(report: Report) -> tuple[Figure, ...]:
    """All figures that the report's numbers allow, the swept variables in their order first."""
    found = [_of_variable(report, name, runs) for name, runs in wording.variables(report).items()]
    return tuple(figure for figure in (*found, _front(report)) if figure)


def number(value: str | None) -> float | None:
    """A value of a variable as a number; None where it is no finite one."""
    try:
        found = float(value) if value is not None else None
    except ValueError:
        return None
    return found if found is not None and isfinite(found) else None


def _of_variable(report: Report, variable: str, runs: Sequence[Considered]) -> Figure | None:
    if all(number(run.value) is not None for run in runs):
        return _lines(report, variable, runs)
    return _differences(report, variable, runs)


def _lines(report: Report, variable: str, runs: Sequence[Considered]) -> Figure | None:
    baseline = report.recommendation.baseline
    panels, unchanged = [], []
    for key in report.recommendation.decisive:
        rows = [row for run in runs if (row := wording.row(run, key))]
        if rows and not any(row.changed for row in rows):
            unchanged.append(shown(key))
            continue
        level = baseline.means.get(key)
        dots = [dot for run in runs if (dot := _dot(run, key, level)) is not None]
        if level is not None and (at := number(runs[0].from_value)) is not None:
            dots.append(charts.Dot(at, level, None, None, f"{phrases.number(level)} (baseline)", baseline=True))
        if dots:
            panels.append(charts.Panel(_called(report, key), dots, level))
    if not panels:
        return None
    caption = (
        "Diamond and dashed line: the baseline. Stroke: the 95% interval of the difference from the baseline, drawn "
        "from its line. Filled: better or worse beyond chance; hollow: this test set cannot tell."
    )
    if unchanged:
        caption += f" Unchanged in every question: {', '.join(unchanged)}."
    svg = charts.lines(panels, variable, f"Scores over {variable}")
    return Figure(f"{safe_artifact_name(variable)}.svg", variable, svg, caption)


def _dot(run: Considered, key: str, level: float | None) -> charts.Dot | None:
    at, value, row = number(run.value), run.means.get(key), wording.row(run, key)
    if at is None or value is None:
        return None
    if row is None or level is None:
        return charts.Dot(at, value, None, None, f"{phrases.number(value)}, not compared")
    low, high = (None if end is None else level + end for end in (row.low, row.high))
    return charts.Dot(at, level + row.delta, low, high, f"{phrases.number(value)} {_told(row)}", _sure(row))


def _differences(report: Report, variable: str, runs: Sequence[Considered]) -> Figure | None:
    most = max(1, ROWS // len(runs))
    groups: dict[str, list[charts.Delta]] = {}
    unchanged = []
    for key in report.recommendation.decisive:
        found = [(run, row) for run in runs if (row := wording.row(run, key))]
        if any(row.changed for _, row in found):
            groups[_called(report, key)] = [_delta(run, row) for run, row in found]
        elif found:
            unchanged.append(shown(key))
    drawn = dict(list(groups.items())[:most])
    if not drawn:
        return None
    caption = (
        f"Differences from the baseline ({variable}={runs[0].from_value}) with 95% intervals, as shares of the range "
        "of a definition. Filled: better or worse beyond chance; hollow: this test set cannot tell."
    )
    if left_out := list(groups)[most:]:
        caption += f" Not drawn for lack of room: {', '.join(left_out)}."
    if unchanged:
        caption += f" Unchanged in every question: {', '.join(unchanged)}."
    svg = charts.deltas(drawn, f"Differences by {variable}")
    return Figure(f"{safe_artifact_name(variable)}.svg", variable, svg, caption)


def _delta(run: Considered, row: Row) -> charts.Delta:
    width = row.range[1] - row.range[0]
    low, high = (None if end is None else end / width for end in (row.low, row.high))
    return charts.Delta(phrases.shortened(run.value or run.label), row.delta / width, low, high, _told(row), _sure(row))


def _front(report: Report) -> Figure | None:
    recommended = report.recommendation
    places, missing = [], []
    for run in recommended.runs:
        cost = getattr(run.cost, recommended.cost) if run.cost else None
        quality = run.means.get(recommended.quality)
        if cost is None or quality is None:
            missing.append(run.name)
            continue
        told = f"{phrases.number(quality)} at {wording.cost(recommended.cost, run.cost)}"
        places.append(charts.Place(cost, quality, run.name, told, run.front, run is recommended.baseline))
    if len(places) < 2 or not any(place.front for place in places):
        return None
    price = COSTS[recommended.cost]
    better = "lower" if wording.lower(report, recommended.quality) else "higher"
    caption = (
        f"Up: {shown(recommended.quality)} ({better} is better); across: {price}, fewer is better. Filled, and "
        "joined by the line: the front, runs that no other equals in both and beats in one. Diamond: the baseline. "
        "Chance is not taken off here: two runs close together may be equal."
    )
    if missing:
        caption += f" Not drawn, because one of the two is unknown: {phrases.some(missing, 6)}."
    svg = charts.front(places, price, shown(recommended.quality), f"{shown(recommended.quality)} against {price}")
    return Figure(FRONT, None, svg, caption)


def _called(report: Report, key: str) -> str:
    return f"{shown(key)}{' (lower is better)' if wording.lower(report, key) else ''}"


def _told(row: Row) -> str:
    return f"{phrases.signed(row.delta)} {row.word}"


def _sure(row: Row) -> bool:
    return row.word in ("better", "worse")


def by_file(found: Iterable[Figure]) -> Mapping[str, str]:
    """The figures as files of their own, by name."""
    return {figure.file: charts.standalone(figure.svg) for figure in found}
