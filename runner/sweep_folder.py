"""The folder of a sweep: what was planned and what came of it, beside the result folders, and reading that back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from adapters.schema import from_json, to_json
from runner import phrases
from runner.compare.findings import Comparison
from runner.compare.paired import compare_sweep
from runner.config import flatten, redacted
from runner.errors import DataError
from runner.outputs import write_whole
from runner.results import CONFIG, SUMMARY, StoredRun
from runner.whole import read_whole

SWEEP = "sweep.json"
"""Written last, so that a folder that has one holds a sweep that ended."""
VERSION = 1


@dataclass(frozen=True)
class StoredRow:
    """One planned run. label: `baseline`, or `chunker.size=400`. variable, value, from_value, override: what it
    changes, as typed, what the baseline has there, and the whole override (`+chunker.size=400`); None for the baseline.
    run: its results, or None and error says why. run_id: of MLflow, None where that is unknown."""

    label: str
    variable: str | None
    value: str | None
    from_value: str | None
    override: str | None
    folder: Path | None
    run_id: str | None
    run: StoredRun | None
    error: str | None


@dataclass(frozen=True)
class StoredSweep:
    """A sweep as its folder holds it; rows are in the order of the plan, the baseline first. overrides: those that held
    for all runs, as typed, None where that is unknown; config_dirs: the folders of --config-dir. notes: sentences for a
    reader. siblings: variants that are no rows, and are counted where p-values are adjusted."""

    name: str
    folder: Path
    parent_run_id: str | None
    overrides: tuple[str, ...] | None
    config_dirs: tuple[str, ...]
    rows: tuple[StoredRow, ...]
    notes: tuple[str, ...] = ()
    siblings: Mapping[str, StoredRun] = field(default_factory=dict)

    @property
    def baseline(self) -> StoredRun | None:
        """The results of the baseline."""
        return self.rows[0].run

    @property
    def variants(self) -> tuple[StoredRow, ...]:
        """All rows but the baseline's."""
        return self.rows[1:]

    @cached_property
    def comparisons(self) -> Mapping[str, Comparison]:
        """Each variant that has results beside the baseline, by label, p-values adjusted over all of them; without
        slices and single questions. Empty where the baseline has no results."""
        runs = {row.label: row.run for row in self.variants if row.run}
        if not self.baseline or not runs:
            return {}
        found = compare_sweep(self.baseline, {**self.siblings, **runs}, details=False)
        return {label: found[label] for label in runs}


@dataclass(frozen=True)
class _Row:
    """A row in sweep.json. folder: relative to that of the sweep where it lies in it. not_comparable: what was not
    subtracted, for a reader; it is found anew when the folder is read."""

    run: str
    variable: str | None
    value: str | None
    baseline_value: str | None
    override: str | None
    folder: str | None
    run_id: str | None
    error: str | None
    not_comparable: str | None


@dataclass(frozen=True)
class _File:
    schema_version: int
    sweep: str
    parent_run_id: str | None
    overrides: tuple[str, ...] | None
    config_dirs: tuple[str, ...]
    runs: tuple[_Row, ...]


def write(sweep: StoredSweep) -> Path:
    """Write sweep.json into the folder of the sweep; credentials in overrides are left out. Raises StoreError."""
    path = sweep.folder / SWEEP
    file = _File(
        VERSION,
        sweep.name,
        sweep.parent_run_id,
        None if sweep.overrides is None else tuple(map(_redacted, sweep.overrides)),
        sweep.config_dirs,
        tuple(
            _Row(
                row.label,
                row.variable,
                None if row.value is None else _redacted(f"{row.variable}={row.value}").partition("=")[2],
                row.from_value,
                None if row.override is None else _redacted(row.override),
                None if row.folder is None else _inside(row.folder, sweep.folder),
                row.run_id,
                row.error,
                not_comparable(sweep.comparisons.get(row.label)),
            )
            for row in sweep.rows
        ),
    )
    write_whole(path, to_json(file) + "\n")
    return path


def _redacted(override: str) -> str:
    key, sign, value = override.partition("=")
    return f"{key}{sign}{redacted(value, key.rpartition('.')[2])}"


def _inside(folder: Path, sweep: Path) -> str:
    return folder.relative_to(sweep).as_posix() if folder.is_relative_to(sweep) else str(folder)


def not_comparable(found: Comparison | None) -> str | None:
    """What is not subtracted, and why, in one sentence; None where all is."""
    if found is None or not found.not_compared:
        return None
    reasons: dict[tuple[str, ...], list[str]] = {}
    for each in found.not_compared:
        reasons.setdefault(each.why, []).append(each.definition)
    alone = len(reasons) == 1 and not found.rows
    return "; ".join(
        f"{'all definitions' if alone else ', '.join(keys)}: {'; '.join(why)}" for why, keys in reasons.items()
    )


def read_sweep(folder: Path) -> StoredSweep:
    """Read the folder of a sweep. One that was interrupted has no sweep.json and is read from its result folders.

    Raises DataError for a folder that holds no sweep of one variable at a time.
    """
    from pydantic import ValidationError

    path = folder / SWEEP
    if not path.is_file():
        return _from_results(folder)
    try:
        file = from_json(_File, path.read_text(encoding="utf-8-sig"))
    except ValidationError as error:
        fault = error.errors()[0]
        said = ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"])))
        raise DataError(f"{path} cannot be read: {said}. Remove it, and the result folders are read") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. Remove it, and the result folders are read") from error
    if file.schema_version != VERSION:
        raise DataError(f"{path} has schema version {file.schema_version} and this paribus reads {VERSION}; sweep anew")
    if not file.runs:
        raise DataError(f"{path} holds no run; remove it, and the result folders are read")
    if file.runs[0].variable is not None:
        told = f"{path} begins with {file.runs[0].run} and not with the baseline"
        raise DataError(f"{told}; remove it, and the result folders are read")
    labels = [row.run for row in file.runs]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise DataError(f"{path} has the run {twice} twice; remove it, and the result folders are read")
    return StoredSweep(
        file.sweep,
        folder,
        file.parent_run_id,
        file.overrides,
        file.config_dirs,
        tuple(_read_row(row, folder) for row in file.runs),
    )


def _read_row(row: _Row, sweep: Path) -> StoredRow:
    folder = None if row.folder is None else sweep / row.folder
    run, error = (None, row.error) if folder is None or row.error else read_or_why(folder)
    return StoredRow(row.run, row.variable, row.value, row.baseline_value, row.override, folder, row.run_id, run, error)


def read_or_why(folder: Path) -> tuple[StoredRun | None, str | None]:
    """A run, or why it cannot be read: one that is lost does not cost the others."""
    try:
        return read_whole(folder), None
    except DataError as error:
        return None, str(error)


def _from_results(folder: Path) -> StoredSweep:
    """A sweep without sweep.json: what its runs say of themselves."""
    if (folder / SUMMARY).is_file():
        raise DataError(
            f"{folder} is the result folder of one run; name the folder of a sweep, such as {folder.parent}"
        )
    found = sorted((file.parent for file in folder.glob(f"*/{SUMMARY}")), key=_number)
    runs = [run for each in found if (run := read_or_why(each)[0])]
    if not runs:
        raise DataError(f"{folder} holds no sweep: it has no {SWEEP} and no result folder; `paribus sweep` makes one")
    designs = {run.trial.get("design") for run in runs}
    if "cartesian" in designs:
        raise DataError(
            f"{folder} holds combinations of several variables, of which none can be said to make the difference; "
            "compare two of them with `paribus compare`, or sweep one variable at a time"
        )
    if not designs & {"baseline", "variant"}:
        raise DataError(f"{folder} holds single runs and no sweep; compare two of them with `paribus compare`")
    baseline = next((run for run in runs if run.trial.get("design") == "baseline"), None)
    variants = [run for run in runs if run.trial.get("design") == "variant"]
    unfinished = sum(1 for each in folder.glob("*/") if not (each / SUMMARY).is_file() and _is_run(each))
    told = [f"the sweep has no {SWEEP}: it was interrupted, or older; it is read from {len(runs)} result folders"]
    if unfinished:
        told.append(f"{phrases.count(unfinished, 'more run has', 'more runs have')} no results")
    first = baseline or variants[0]
    id = next((id for run in variants if (id := run.trial.get("baseline_run_id"))), None)
    missing = "it has no result folder"
    return StoredSweep(
        str(first.trial.get("sweep") or folder.name),
        folder,
        first.trial.get("parent_run_id"),
        None,
        (),
        (
            StoredRow(
                "baseline",
                None,
                None,
                None,
                None,
                baseline.folder if baseline else None,
                id,
                baseline,
                None if baseline else missing,
            ),
            *(_variant(run, baseline) for run in variants),
        ),
        ("; ".join(told),),
    )


def _is_run(folder: Path) -> bool:
    return folder.name.isdigit() or (folder / CONFIG).is_file()


def _number(folder: Path) -> tuple[int, str]:
    return (int(folder.name) if folder.name.isdigit() else 10**9, folder.name)


def _variant(run: StoredRun, baseline: StoredRun | None) -> StoredRow:
    variable, value = str(run.trial.get("variable")), str(run.trial.get("value"))
    override = f"{variable}={value}"
    from_value = value_of(baseline, variable) if baseline else None
    return StoredRow(override, variable, value, from_value, override, run.folder, None, run, None)


def value_of(run: StoredRun, variable: str) -> str | None:
    """What a run has for a variable: the option chosen in a group, or the value of a key; None = nothing."""
    choices: Mapping[str, str] = run.summary.get("choices") or {}
    if variable in choices:
        return choices[variable]
    settings = flatten(run.config)
    if variable not in settings:
        return None
    return "null" if settings[variable] is None else str(settings[variable])
