"""`paribus compare`: what a person asks for, from the names of two runs to table and files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from adapters.schema import SCHEMA_VERSION
from runner.app import composed
from runner.compare import files, terminal
from runner.compare.paired import compare
from runner.config import Tracking
from runner.errors import DataError
from runner.locate import BASELINE, baseline_of, located
from runner.results import StoredRun, read_run


@dataclass(frozen=True)
class Asked:
    """What a person wants compared.

    baseline, candidate: a result folder, the id or name of a tracked run, `latest`, or, for the baseline, `baseline`:
    that of the candidate's sweep. slices: only the questions of these; empty = all. anyway: subtract also what does not
    mean the same. out: where files go; None = a new folder below tracking.folder.
    """

    baseline: str
    candidate: str
    overrides: tuple[str, ...] = ()
    anyway: bool = False
    slices: tuple[str, ...] = ()
    out: Path | None = None


def run(asked: Asked) -> bool:
    """Compare, write the files and print the table; whether anything could be compared. Raises ParibusError."""
    tracking = Tracking(**composed(asked.overrides)["tracking"])
    candidate = _read(located(asked.candidate, tracking))
    baseline = _read(
        baseline_of(candidate, tracking) if asked.baseline == BASELINE else located(asked.baseline, tracking)
    )
    if baseline.folder.resolve() == candidate.folder.resolve():
        raise DataError(f"{asked.baseline} and {asked.candidate} are one run, {candidate.folder}; name two")
    found = compare(
        baseline, candidate, names=(asked.baseline, asked.candidate), anyway=asked.anyway, slices=asked.slices
    )
    folder = asked.out or tracking.root / "comparisons" / datetime.now(UTC).strftime("%Y%m%dT%H%M%S-%f")
    terminal.show(found, files.write(found, folder))
    return bool(found.rows)


def _read(folder: Path) -> StoredRun:
    run = read_run(folder)
    if run.summary.get("schema_version") != SCHEMA_VERSION:
        told = f"schema_version {run.summary.get('schema_version')}, and {SCHEMA_VERSION} can be read"
        raise DataError(f"{folder} was written by another version of paribus ({told}); make the run again")
    return run
