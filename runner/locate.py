"""Finding a run that a person names: a result folder, an MLflow run by id or name, or the newest one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from runner.config import Tracking
from runner.errors import DataError
from runner.results import FILES, SUMMARY, StoredRun
from runner.whole import read_whole

LATEST = "latest"
BASELINE = "baseline"


def located(name: str, settings: Tracking) -> Path:
    """The result folder that `name` means: a path to one or to a file of its, `latest`, or the id or name of a tracked
    run.

    The folder of a tracked run is where it was written, or, on another machine, a copy of its artifacts. Raises
    DataError where there is none, StoreError where tracking cannot be read.
    """
    folder = Path(name).expanduser()
    if (folder / SUMMARY).is_file():
        return folder
    if folder.is_file():
        if folder.name in FILES and (folder.parent / SUMMARY).is_file():
            return folder.parent
        told = (
            f"there is no {SUMMARY} beside it" if folder.name in FILES else f"the files of one are {', '.join(FILES)}"
        )
        raise DataError(f"{name} is no file of a result folder: {told}")
    if name == LATEST:
        # A copy or a checkout changes the times of files, so the order is that of the runs' own, which are UTC.
        found = [(_started(file), file.parent) for file in (settings.root / "results").glob(f"*/*/{SUMMARY}")]
        if not found:
            raise DataError(
                f"{settings.root / 'results'} holds no finished run; `paribus run` or `paribus sweep` makes one, and "
                "tracking.folder=FOLDER looks in another place"
            )
        return max(found)[1]
    if folder.is_dir():
        runs = sorted(file.parent.name for file in folder.glob(f"*/{SUMMARY}"))
        hint = f"; name one of the runs in it: {', '.join(runs)}" if runs else ", which is written last"
        raise DataError(f"{name} is no result folder: it has no {SUMMARY}{hint}")
    if not settings.enabled:
        raise DataError(f"{name} is no result folder, and tracking is off, so that no tracked run can be looked up")
    if not has_data(settings):
        raise DataError(f"{name} is no result folder, and {settings.root} has no tracking data to look it up in")
    from runner.tracking import Tracker

    return Tracker(settings).results_of(name)


def baseline_of(run: StoredRun, settings: Tracking) -> Path:
    """The result folder of the baseline of the sweep that `run` belongs to; where its folder is gone, what was tracked
    of it. Where the run is no variant, that of the run that was accepted last. Raises DataError where there is none,
    StoreError where tracking cannot be read."""
    if not run.trial.get("baseline"):
        return _accepted_beside(run, settings)
    folder = Path(run.trial["baseline"])
    if not (folder / SUMMARY).is_file() and run.trial.get("baseline_run_id"):
        return located(run.trial["baseline_run_id"], settings)
    return located(str(folder), settings)


def _accepted_beside(run: StoredRun, settings: Tracking) -> Path:
    what = "is the baseline of its sweep" if run.trial.get("design") == "baseline" else "is no variant of a sweep"
    if not has_data(settings):
        raise DataError(
            f"{run.folder} {what}, and no run is tracked as accepted, so that `{BASELINE}` means nothing beside it; "
            "name a run"
        )
    from runner.tracking import Tracker

    try:
        return Tracker(settings).accepted_results()
    except DataError as error:
        raise DataError(f"{run.folder} {what}, and {error}") from None


def whole_run(name: str, settings: Tracking) -> StoredRun:
    """The run that `name` means, of which all parts are there and agree. Raises DataError, StoreError."""
    return read_whole(located(name, settings))


def beside(run: StoredRun, name: str, baseline: str, settings: Tracking) -> StoredRun:
    """The run that `baseline` means beside `run`, which was asked for as `name`; `baseline`: see baseline_of. Raises
    DataError, also where it is the same run, and StoreError."""
    found = read_whole(baseline_of(run, settings) if baseline == BASELINE else located(baseline, settings))
    if found.folder.resolve() == run.folder.resolve():
        raise DataError(f"{baseline} and {name} are one run, {run.folder}; name two")
    return found


def siblings(baseline: StoredRun, candidate: StoredRun) -> tuple[dict[str, StoredRun], list[str]]:
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


def has_data(settings: Tracking) -> bool:
    """Whether there is tracking data; looking must not make any."""
    return settings.enabled and (settings.uri is not None or (settings.root / "mlflow.db").is_file())


def _started(file: Path) -> datetime:
    try:
        found = datetime.fromisoformat(json.loads(file.read_text(encoding="utf-8"))["started"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file} says not when its run began ({error}); remove its folder") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
