"""The report as one HTML page (see runner.pages)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner import pages, phrases
from runner.compare import wording as compared
from runner.compare.page import FLIPS, MOVES, TEXT, UNIT
from runner.diagnosis import wording as diagnosing
from runner.recommendation import wording as recommending
from runner.recommendation.findings import Considered
from runner.report import wording
from runner.report.figures import Figure
from runner.report.findings import Report

FIELD = 1500
"""Characters of a field of a card."""
SLICES = 40
"""Slices of one table."""


def html(report: Report, figures: tuple[Figure, ...]) -> str:
    """The page. Characters that no file can hold are replaced."""
    return pages.rendered(
        Path(__file__).with_name("page.html"),
        {
            "setting": compared.setting,
            "text": lambda text: phrases.cut(text, TEXT),
            "unit": lambda text: phrases.cut(phrases.plain(text), UNIT),
            "field": lambda value: phrases.cut(phrases.plain(phrases.field(value)), FIELD),
            "svg": pages.safe,
        },
        report=report,
        recommended=report.recommendation,
        words=wording,
        compared=compared,
        recommending=recommending,
        diagnosing=diagnosing,
        variables=[figure for figure in figures if figure.variable is not None],
        front=next((figure for figure in figures if figure.variable is None), None),
        variants=[_variant(report, run) for run in wording.ordered(report)],
        slices=list(report.runs["baseline"].slice_means.items())[:SLICES],
        moves_shown=MOVES,
        flips_shown=FLIPS,
    )


def _variant(report: Report, run: Considered) -> Mapping[str, Any]:
    """What the template needs of a variant."""
    found = report.runs.get(run.label)
    by_name: dict[str, dict[str, Any]] = {}
    for each in found.slices if found else ():
        by_name.setdefault(each.slice, {})[each.definition] = each
    return {
        "run": run,
        "found": found,
        "tables": {
            title: rows
            for which, title in compared.TABLES.items()
            if (rows := [row for row in run.rows if row.about == which])
        },
        "slices": list(by_name.items())[:SLICES],
        "faults": report.faults.get(run.label),
        "error": report.errors.get(run.label),
    }
