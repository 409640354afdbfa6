"""`paribus compare`: what a person asks for, from the names of two runs to table and files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from runner.app import composed
from runner.compare import files, terminal
from runner.compare.paired import compare
from runner.config import Tracking
from runner.errors import DataError
from runner.locate import BASELINE, baseline_of, located
from runner.results import SUMMARY, StoredRun
from runner.whole import read_whole


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
    candidate = read_whole(located(asked.candidate, tracking))
    baseline = read_whole(
        baseline_of(candidate, tracking) if asked.baseline == BASELINE else located(asked.baseline, tracking)
    )
    if baseline.folder.resolve() == candidate.folder.resolve():
        raise DataError(f"{asked.baseline} and {asked.candidate} are one run, {candidate.folder}; name two")
    siblings, notes = _siblings(baseline, candidate)
    if asked.baseline == BASELINE and not candidate.trial.get("baseline"):
        notes.append(f"{asked.candidate} is no variant of a sweep: {BASELINE} is the accepted run, {baseline.folder}")
    found = compare(
        baseline,
        candidate,
        names=(asked.baseline, asked.candidate),
        anyway=asked.anyway,
        slices=asked.slices,
        siblings=siblings,
    )
    found = replace(found, notes=(*notes, *found.notes))
    folder = asked.out or tracking.root / "comparisons" / datetime.now(UTC).strftime("%Y%m%dT%H%M%S-%f")
    terminal.show(found, files.write(found, folder))
    return bool(found.rows)


def _siblings(baseline: StoredRun, candidate: StoredRun) -> tuple[dict[str, StoredRun], list[str]]:
    """The other variants in the folder of the candidate's sweep, where `baseline` is the baseline of it; and those that
    cannot be read, for a reader."""
    sweep = candidate.trial.get("sweep")
    if not sweep or candidate.trial.get("design") != "variant":
        return {}, []
    if (baseline.trial.get("design"), baseline.trial.get("sweep")) != ("baseline", sweep):
        return {}, []
    here = candidate.folder.resolve()
    found: dict[str, StoredRun] = {}
    notes = []
    for folder in sorted(file.parent for file in here.parent.glob(f"*/{SUMMARY}") if file.parent != here):
        try:
            run = read_whole(folder)
            if (run.trial.get("design"), run.trial.get("sweep")) == ("variant", sweep):
                found[folder.name] = run
        except DataError as error:
            notes.append(f"not among the variants that Holm is over: {error}")
    return found, notes
