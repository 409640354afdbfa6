"""The comparison as one HTML page (see runner.pages)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from runner import charts, pages, phrases
from runner.compare import wording
from runner.compare.findings import Comparison, Row

if TYPE_CHECKING:
    from markupsafe import Markup

QUESTIONS = 200
"""Questions that got worse on the page."""
MOVES, FLIPS = 12, 30
"""Moves in ranking and context and verdicts that flipped, of one question."""
TEXT, UNIT = 1500, 400
"""Characters of an answer, and of a chunk or a verdict."""


def html(found: Comparison) -> str:
    """The page. Characters that no file can hold are replaced."""
    return pages.rendered(
        Path(__file__).with_name("page.html"),
        {
            "setting": wording.setting,
            "text": lambda text: phrases.cut(text, TEXT),
            "unit": lambda text: phrases.cut(phrases.plain(text), UNIT),
        },
        found=found,
        words=wording,
        tables=[table for about in wording.TABLES if (table := _table(found, about))],
        worse=found.worse[:QUESTIONS],
        moves_shown=MOVES,
        flips_shown=FLIPS,
    )


def _table(found: Comparison, about: Literal["retrieval", "generation"]) -> Mapping[str, Any] | None:
    """What the template needs of the definitions of retrieval or of generation; None where there are none."""
    rows = [row for row in found.rows if row.about == about]
    if not rows:
        return None
    keys, slices = wording.slices(found, about)
    return {
        "title": wording.TABLES[about],
        "rows": rows,
        "chart": _pairs(rows, wording.TABLES[about]),
        "scatters": [(row, _scatter(row, found)) for row in rows if row.changed],
        "keys": keys,
        "slices": slices,
    }


def _pairs(rows: Sequence[Row], title: str) -> Markup:
    drawn = [
        charts.Pair(
            wording.shown(row.definition),
            row.share(row.baseline),
            row.share(row.candidate),
            f"{phrases.signed(row.delta)} {row.word}",
        )
        for row in rows
    ]
    return pages.safe(charts.pairs(drawn, f"{title}: means of baseline and candidate, as shares of the ranges"))


def _scatter(row: Row, found: Comparison) -> Markup:
    points = [
        charts.Point(row.share(before), row.share(after), id) for id, before, after in found.points[row.definition]
    ]
    title = f"{wording.shown(row.definition)}: the questions that changed"
    return pages.safe(charts.scatter(points, "baseline", "candidate", title))
