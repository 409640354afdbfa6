"""`paribus compare`: what a person asks for, from the names of two runs to table and files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from runner.app import composed
from runner.compare import files, terminal
from runner.compare.paired import compare
from runner.config import Tracking
from runner.locate import BASELINE, beside, siblings, whole_run


@dataclass(frozen=True)
class Asked:
    """What a person wants compared.

    baseline, candidate: a result folder or a file in one, the id or name of a tracked run, `latest`, or, for the
    baseline, `baseline`: that of the candidate's sweep or, where it is no variant, the run that was accepted last.
    slices: only the questions of these; empty = all. anyway: subtract also what does not mean the same. out: where
    files go; None = a new folder below tracking.folder.
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
    candidate = whole_run(asked.candidate, tracking)
    baseline = beside(candidate, asked.candidate, asked.baseline, tracking)
    others, notes = siblings(baseline, candidate)
    if asked.baseline == BASELINE and not candidate.trial.get("baseline"):
        notes.append(f"{asked.candidate} is no variant of a sweep: {BASELINE} is the accepted run, {baseline.folder}")
    found = compare(
        baseline,
        candidate,
        names=(asked.baseline, asked.candidate),
        anyway=asked.anyway,
        slices=asked.slices,
        siblings=others,
    )
    found = replace(found, notes=(*notes, *found.notes))
    folder = asked.out or tracking.root / "comparisons" / datetime.now(UTC).strftime("%Y%m%dT%H%M%S-%f")
    terminal.show(found, files.write(found, folder))
    return bool(found.rows)
