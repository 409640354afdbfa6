"""The audit as one HTML page (see runner.pages)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner import charts, pages, phrases
from runner.audit import wording
from runner.audit.findings import Audit, Claim, Cross, Group, Pair, View
from runner.audit.wording import Name, Told

if TYPE_CHECKING:
    from markupsafe import Markup

RECORDS = 100
"""Records with their claims on the page, over all groups."""
WORDS = 6000
"""Verdicts on the page, over all groups: records are left out from there on."""
CLAIMS = 30
"""Claims of one record."""
SCATTERS = 15
"""Pairs that are drawn as scatters."""
BARS = 15
"""Pairs whose parts are drawn, the largest difference first."""
TEXT, CLAIM, FIELD = 1500, 400, 1500
"""Characters of an answer, of a claim or a reason, of a field of a card."""


def html(audit: Audit) -> str:
    """The page. Characters that no file can hold are replaced."""
    per_group = max(10, RECORDS // max(len(audit.groups), 1))
    words = WORDS // max(len(audit.groups), 1)
    return pages.rendered(
        Path(__file__).with_name("page.html"),
        {
            "field": lambda value: phrases.cut(wording.field(value), FIELD),
            "text": lambda text: phrases.cut(text, TEXT),
            "claim": lambda text: phrases.cut(text, CLAIM),
        },
        audit=audit,
        groups=[_group(audit, group, per_group, words) for group in audit.groups],
        words=wording,
        claims_shown=CLAIMS,
    )


def _group(audit: Audit, group: Group, records: int, words: int) -> Mapping[str, Any]:
    """What the template needs of a group."""
    called = wording.names(group)
    found = wording.told(group)
    shown = list(_within(wording.most_apart(group, records), words))
    return {
        "found": group,
        "title": wording.asked(group),
        "headline": wording.headline(group, found),
        "example": wording.example(group, found),
        "names": called,
        "means": _means(group, called, audit.threshold),
        "told": found,
        "bars": _bars(found[:BARS], called),
        "more_bars": max(0, len(found) - BARS),
        "no_parts": _without_parts(group),
        "units": "; ".join(dict.fromkeys(row.units for row in group.rows if row.units)),
        "nouns": wording.plural(next((row.units for row in group.rows if row.units), None) or "units"),
        "claims": _by_units,
        "crosses": [(cross, _heat_map(cross, called)) for cross in group.crosses],
        "scatters": _scatters(group, found, called, audit.threshold),
        "systems": sorted((p for p in group.pairs if p.systems), key=lambda p: p.systems and p.systems.same_winner),
        "changed": sum(not pair.systems.same_winner for pair in group.pairs if pair.systems),
        "records": shown,
        "more_records": len(group.views) - len(shown),
    }


def _without_parts(group: Group) -> list[tuple[str, list[Pair]]]:
    """Pairs without parts, by the reason."""
    found: dict[str, list[Pair]] = {}
    for pair in group.pairs:
        if pair.why_not:
            found.setdefault(pair.why_not, []).append(pair)
    return list(found.items())


def _by_units(view: View) -> list[tuple[str, list[Claim]]]:
    found: dict[str, list[Claim]] = {}
    for claim in view.claims:
        found.setdefault(claim.units, []).append(claim)
    return list(found.items())


def _within(views: Iterable[View], words: int) -> Iterable[View]:
    """The first views that together have at most so many verdicts; always the first."""
    taken = 0
    for view in views:
        size = sum(len(claim.words) for claim in view.claims[:CLAIMS])
        if taken and taken + size > words:
            return
        taken += size
        yield view


def _means(group: Group, called: Mapping[str, Name], threshold: float) -> Markup:
    rows = []
    for row in group.rows:
        if row.mean is None:
            continue
        ends = [max(0.0, row.share(end)) for end in (row.low, row.high) if end is not None]
        told = f"{phrases.number(row.mean)} {phrases.interval(row.low, row.high)}".removesuffix(" –")
        name = str(called[row.definition])
        rows.append(
            charts.Interval(name, max(0.0, row.share(row.mean)), min(ends, default=None), max(ends, default=None), told)
        )
    return pages.safe(
        charts.intervals(rows, "Means with 95% intervals, as shares of the ranges", threshold) if rows else ""
    )


def _bars(found: Sequence[Told], called: Mapping[str, Name]) -> Markup:
    bars = [
        charts.Bar(
            " − ".join(charts.shortened(str(called[key]), 19) for key in (one.pair.left, one.pair.right)),
            {part: (size, phrases.signed(size)) for part, size in one.parts.items()},
            phrases.signed(one.difference),
        )
        for one in found
        if any(one.parts.values())
    ]
    return pages.safe(charts.stacked(bars, "Parts of each difference") if bars else "")


def _heat_map(cross: Cross, called: Mapping[str, Name]) -> Markup:
    cells = [
        [
            charts.Cell(
                value=cross.cells[down][across],
                text=phrases.number(cross.cells[down][across]),
                title=f"{called[formula].short}'s formula on the verdicts of {called[source].short}: "
                f"{phrases.number(cross.cells[down][across])}",
                note=_bounds(cross.low[down][across], cross.high[down][across]),
                own=formula == source,
            )
            for across, formula in enumerate(cross.formulas)
        ]
        for down, source in enumerate(cross.sources)
    ]
    rows = [str(called[source]) for source in cross.sources]
    columns = [called[formula].letter for formula in cross.formulas]
    return pages.safe(charts.heat_map(rows, columns, cells, "Each formula (column) on each source's verdicts (row)"))


def _bounds(low: float, high: float) -> str:
    return "" if high - low <= wording.NOTHING else f"{phrases.number(low, 2)}–{phrases.number(high, 2)}"


def _scatters(
    group: Group, found: Sequence[Told], called: Mapping[str, Name], threshold: float
) -> list[tuple[str, Markup, Pair]]:
    """The pair of the headline first, then those whose records are furthest apart."""
    rows = {row.definition: row for row in group.rows}
    first = found[0].pair if found else None
    drawn = []
    order = sorted((pair for pair in group.pairs if pair.n), key=lambda pair: (pair is not first, -(pair.apart or 0.0)))
    for pair in order[:SCATTERS]:
        left, right = rows[pair.left], rows[pair.right]
        points = [
            charts.Point(max(0.0, left.share(one)), max(0.0, right.share(other)), view.id)
            for view in group.views
            if (one := view.values.get(pair.left)) is not None and (other := view.values.get(pair.right)) is not None
        ]
        x, y = str(called[pair.left]), str(called[pair.right])
        drawn.append(
            (f"{x} against {y}", pages.safe(charts.scatter(points, x, y, f"{x} against {y}", threshold)), pair)
        )
    return drawn
