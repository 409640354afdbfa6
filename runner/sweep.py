"""A sweep: plan, baseline, variants, and what came of them.

How to compose a configuration and how to launch jobs come from outside (Hydra's sweeper), so that any Hydra launcher
serves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from traceback import print_exception
from typing import TYPE_CHECKING, Any, TypeVar

from runner import phrases, sweep_folder, yaml_folders
from runner.config import Tracking, asked_judge, experiment, fingerprints
from runner.errors import TRACEBACK, ParibusError, unforeseen
from runner.plan import Composed, Plan, PlannedRun, Variable, plan
from runner.recommendation.findings import Recommendation
from runner.recommendation.recommend import recommend
from runner.run import Outcome
from runner.sweep_folder import StoredRow, StoredSweep, not_comparable, read_or_why

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from runner.compare import findings
    from runner.report.findings import Report

T = TypeVar("T")
Compose = Callable[[Sequence[str]], Composed]
Job = tuple[Sequence[str], Mapping[str, str]]
"""Overrides of a run, and the keys of `trial` to set for it."""
Launch = Callable[[Sequence[Job], int], Sequence[Outcome | Exception]]
"""Runs jobs, numbered from the given index: the outcome of each, or the error that ended it."""


@dataclass(frozen=True)
class Row:
    """One run of a finished sweep: its outcome or the reason why there is none, and its comparison with the baseline by
    definition key (empty for the baseline and where nothing may be subtracted; not_comparable says why)."""

    planned: PlannedRun
    outcome: Outcome | None
    error: str | None
    compared: Mapping[str, findings.Row]
    not_comparable: str | None = None


@dataclass(frozen=True)
class SweepResult:
    """All rows, the baseline first. folder holds the result folders. parent_run_id, and ui (the command that opens the
    tracking UI), are None where tracking is off. recommendation: None where nothing was compared; report: the folder of
    its report, None where there is none. notes are sentences for the person who started it; untracked says why the
    table is not in the tracking data."""

    name: str
    folder: Path
    rows: tuple[Row, ...]
    parent_run_id: str | None
    ui: str | None
    seconds: float
    recommendation: Recommendation | None = None
    report: Path | None = None
    notes: tuple[str, ...] = ()
    untracked: str | None = None

    @property
    def failed(self) -> list[Row]:
        """The rows without an outcome."""
        return [row for row in self.rows if row.outcome is None]


class Sweep:
    """Runs a plan. `config` is the composed configuration of the sweep as a whole."""

    def __init__(self, config: DictConfig, compose: Compose, launch: Launch) -> None:
        self.compose, self.launch = compose, launch
        self.folder = Path(str(config.hydra.sweep.dir)).resolve()
        self.name = self.folder.name

    def plan(self, fixed: Sequence[str], variables: Sequence[Variable]) -> Plan:
        """The plan, every run of it composed and checked: its configuration, its packages, its test set.

        Raises ConfigError, or DataError of the baseline's test set.
        """
        loaded: set[str] = set()

        def check(composed: Composed) -> None:
            built = experiment(composed.config)
            fingerprints(built)
            asked_judge(built)
            if built.dataset.fingerprint not in loaded:
                built.dataset.load()
                loaded.add(built.dataset.fingerprint)

        return plan(fixed, variables, self.compose, check)

    def run(self, planned: Plan) -> SweepResult:
        """Run the baseline, then the variants. A run that fails leaves a row without an outcome; the others go on."""
        began = perf_counter()
        settings = experiment(planned.baseline.composed.config).tracking
        result = self._tracked(planned, settings) if settings.enabled else self._execute(planned)
        return replace(result, seconds=perf_counter() - began)

    def _tracked(self, planned: Plan, settings: Tracking) -> SweepResult:
        from runner.tracking import Tracker, ui_command

        tracker = Tracker(settings)
        notes = tuple(
            f"run {run_id} was left RUNNING by a process that is gone; it is now KILLED"
            for run_id in tracker.close_stale()
        )
        with tracker.sweep(f"sweep {self.name}", {"paribus.sweep": self.name}, planned.table()) as parent:
            result = self._execute(planned, parent.run_id)
            try:
                parent.log(sweep_table(result), failed=len(result.failed), report=result.report)
            except Exception as error:  # the table is shown first: nothing that was measured may be lost to this
                result = replace(result, untracked=_told(error))
        return replace(result, ui=ui_command(settings), notes=(*notes, *result.notes))

    def _execute(self, planned: Plan, parent: str | None = None) -> SweepResult:
        baseline = self._launch([planned.baseline], 0, parent, None)[0]
        rows = [baseline]
        if baseline.outcome is None:
            skipped = "not run: the baseline failed"
            rows += [Row(variant, None, skipped, {}) for variant in planned.variants]
        elif planned.variants:
            rows += self._launch(planned.variants, 1, parent, baseline.outcome)
        return self._concluded(SweepResult(self.name, self.folder, tuple(rows), parent, None, 0.0))

    def _launch(
        self, runs: Sequence[PlannedRun], first: int, parent: str | None, baseline: Outcome | None
    ) -> list[Row]:
        jobs = [(planned.overrides, self._trial(planned, parent, baseline)) for planned in runs]
        return [_row(planned, end) for planned, end in zip(runs, self.launch(jobs, first), strict=True)]

    def _concluded(self, result: SweepResult) -> SweepResult:
        """What the runs come to together: compared, written down, recommended and reported. What was measured is shown
        whatever becomes of that."""
        stored = _stored(result)
        notes: list[str] = [
            f"{phrases.shortened(row.label)}: {row.error}"
            for row, each in zip(stored.rows, result.rows, strict=True)
            if row.error and each.outcome
        ]

        def attempt(work: Callable[[], T], what: str) -> T | None:
            try:
                return work()
            except Exception as error:
                notes.append(f"{what}: {_told(error)}")
                return None

        compared = attempt(lambda: stored.comparisons, "the runs are not compared") or {}
        result = replace(result, rows=tuple(_beside_baseline(row, compared) for row in result.rows))
        attempt(lambda: sweep_folder.write(stored), "the sweep is not written down")
        if compared:
            found = attempt(lambda: _material(stored), "there is no report")
            written = attempt(lambda: _reported(found, stored.folder), "there is no report") if found else None
            recommended = found.recommendation if found else None
            recommended = recommended or attempt(lambda: recommend(stored, None), "nothing is recommended")
            result = replace(result, recommendation=recommended, report=written)
        return replace(result, notes=tuple(notes))

    def _trial(self, planned: PlannedRun, parent: str | None, baseline: Outcome | None) -> dict[str, str]:
        trial = {
            "design": "baseline" if planned.variable is None else "variant",
            "sweep": self.name,
            "variable": planned.variable,
            "value": planned.value,
            "parent_run_id": parent,
            "baseline_run_id": baseline.run_id if baseline else None,
            "baseline": str(baseline.folder) if baseline else None,
        }
        return {key: value for key, value in trial.items() if value is not None}


def _row(planned: PlannedRun, outcome: Outcome | Exception) -> Row:
    if isinstance(outcome, Exception):
        told = str(outcome) if isinstance(outcome, ParibusError) else f"{type(outcome).__name__}: {outcome}"
        return Row(planned, None, told, {})
    return Row(planned, outcome, None, {})


def _beside_baseline(row: Row, compared: Mapping[str, findings.Comparison]) -> Row:
    found = compared.get(row.planned.label)
    if found is None:
        return row
    rows = {each.definition: each for each in found.rows}
    return replace(row, compared=rows, not_comparable=not_comparable(found))


def _stored(result: SweepResult) -> StoredSweep:
    """The sweep as its folder will hold it."""
    return StoredSweep(
        name=result.name,
        folder=result.folder,
        parent_run_id=result.parent_run_id,
        overrides=result.rows[0].planned.overrides,
        config_dirs=tuple(map(str, yaml_folders.extra_folders)),
        rows=tuple(map(_stored_row, result.rows)),
    )


def _stored_row(row: Row) -> StoredRow:
    planned, outcome = row.planned, row.outcome
    run, error = read_or_why(outcome.folder) if outcome else (None, row.error)
    return StoredRow(
        label=planned.label,
        variable=planned.variable,
        value=planned.value,
        from_value=planned.from_value,
        override=planned.overrides[-1] if planned.variable else None,
        folder=outcome.folder if outcome else None,
        run_id=outcome.run_id if outcome else None,
        run=run,
        error=error,
    )


def _told(error: Exception) -> str:
    """Why something after the runs went wrong. What was measured is there, so an error that nobody foresaw is told and
    not raised."""
    if isinstance(error, ParibusError | OSError):
        return str(error)
    if os.environ.get(TRACEBACK):
        print_exception(error)
    return unforeseen(error)


def _material(stored: StoredSweep) -> Report:
    from runner.report.material import material

    return material(stored)


def _reported(found: Report, sweep: Path) -> Path:
    from runner.report.files import write_report

    folder = sweep / "report"
    write_report(found, folder)
    return folder


def sweep_table(result: SweepResult) -> list[dict[str, Any]]:
    """The result as rows for a file: one for each run and definition, with the difference and its interval."""
    table: list[dict[str, Any]] = []
    for row in result.rows:
        common = {
            "run": row.planned.label,
            "variable": row.planned.variable,
            "value": row.planned.value,
            "baseline_value": row.planned.from_value,
        }
        if row.outcome is None:
            table.append({**common, "error": row.error})
            continue
        for key, mean in row.outcome.means.items():
            found = row.compared.get(key)
            table.append(
                {
                    **common,
                    "run_id": row.outcome.run_id,
                    "definition": key,
                    "fingerprint": row.outcome.fingerprints[key],
                    "judge": row.outcome.judge if key in row.outcome.judged else None,
                    "mean": mean.value,
                    "n": mean.n,
                    "failed": mean.failed,
                    "not_applicable": mean.not_applicable,
                    "delta": found.delta if found else None,
                    "low": found.low if found else None,
                    "high": found.high if found else None,
                    "pairs": found.n if found else None,
                    "p": found.p.value if found else None,
                    "p_holm": found.adjusted if found else None,
                    "word": found.word if found else None,
                    "not_comparable": row.not_comparable,
                }
            )
    return table
