"""`paribus report`: from the name of a sweep or a run to the files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from runner.app import composed
from runner.compare.files import encoded
from runner.config import Tracking
from runner.console import as_json, note, print_paragraphs, print_text
from runner.locate import BASELINE, LATEST, beside, located, siblings, whole_run
from runner.report import files
from runner.report.material import material
from runner.results import SUMMARY, StoredRun
from runner.sweep_folder import SWEEP, StoredRow, StoredSweep, read_sweep
from runner.whole import read_whole


@dataclass(frozen=True)
class Asked:
    """What a person wants a report of.

    name: the folder of a sweep or of a run, the id or name of a tracked one, or `latest`: the sweep that ended last,
    else the run that began last. baseline: the run that a single run is compared with; `baseline`: that of its sweep,
    or the accepted one. out: where files go; None = `report` in the folder of the sweep or run.
    """

    name: str = LATEST
    baseline: str | None = None
    overrides: tuple[str, ...] = ()
    out: Path | None = None


def run(asked: Asked) -> list[Path]:
    """Write the report, print where it is and its first sentence; its files. Raises ParibusError."""
    tracking = Tracking(**composed(asked.overrides)["tracking"])
    sweep = _sweep(asked, tracking)
    report = material(sweep)
    written = files.write_report(report, asked.out or sweep.folder / "report")
    if as_json():
        print_text(encoded(report))
        return written
    print_paragraphs([report.headline])
    for path in written:
        note(f"Written: {path}")
    return written


def _sweep(asked: Asked, tracking: Tracking) -> StoredSweep:
    """The sweep that is meant, or the run as a sweep of its own."""
    if asked.baseline is not None:
        run = whole_run(asked.name, tracking)
        baseline = beside(run, asked.name, asked.baseline, tracking)
        others, notes = siblings(baseline, run)
        rows = (_row(BASELINE, baseline), _row("candidate", run))
        name = f"{run.summary['name']} ({asked.name})"
        return StoredSweep(name, run.folder, None, None, (), rows, tuple(notes), others)
    folder = _folder(asked.name, tracking)
    if (folder / SUMMARY).is_file():
        run = read_whole(folder)
        return StoredSweep(f"Run {run.summary['name']}", folder, None, None, (), (_row(BASELINE, run),))
    return read_sweep(folder)


def _folder(name: str, tracking: Tracking) -> Path:
    results = tracking.root / "results"
    if name == LATEST:
        # The names of sweeps begin with their time.
        ended = sorted(results.glob(f"*/{SWEEP}"), key=lambda file: file.parent.name)
        return ended[-1].parent if ended else located(LATEST, tracking)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    called = name.removeprefix("sweep ")
    for file in results.glob(f"*/{SWEEP}"):
        if called == file.parent.name or name == _parent(file):
            return file.parent
    return located(name, tracking)


def _parent(file: Path) -> str | None:
    """The id that tracking gave the sweep of this file; None where it has none, or the file is broken."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return None
    id = found.get("parent_run_id") if isinstance(found, dict) else None
    return id if isinstance(id, str) else None


def _row(label: str, run: StoredRun) -> StoredRow:
    return StoredRow(label, None, None, None, None, run.folder, None, run, None)
