"""A report as data for machines, and its files."""

from __future__ import annotations

from pathlib import Path

from adapters.sentences import well_formed
from runner import charts
from runner.compare.files import encoded
from runner.outputs import write_whole
from runner.report import markdown, page
from runner.report.figures import by_file, figures
from runner.report.findings import Report

DATA, TEXT, PAGE, CHARTS = "report.json", "report.md", "report.html", "charts"


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write report.html, report.md, report.json and charts/*.svg into `folder`, which is made where it is missing.

    Figures of an earlier report there are removed, and no other file. Characters that no file can hold are replaced.
    Raises StoreError.
    """
    drawn = figures(report)
    texts = {
        DATA: encoded(report),
        TEXT: markdown.text(report, drawn),
        PAGE: page.html(report, drawn),
        **{f"{CHARTS}/{name}": svg for name, svg in by_file(drawn).items()},
    }
    for old in (folder / CHARTS).glob("*.svg"):
        if f"{CHARTS}/{old.name}" not in texts and charts.is_ours(old):
            old.unlink()
    for name, text in texts.items():
        write_whole(folder / name, well_formed(text))
    return [folder / name for name in texts]
