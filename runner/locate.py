"""Finding a run that a person names: a result folder, an MLflow run by id or name, or the newest one."""

from __future__ import annotations

from pathlib import Path

from runner.config import Tracking
from runner.errors import DataError
from runner.results import SUMMARY

LATEST = "latest"


def located(name: str, settings: Tracking) -> Path:
    """The result folder that `name` means: a path to one, `latest`, or the id or name of a tracked run.

    The folder of a tracked run is where it was written, or, on another machine, a copy of its artifacts. Raises
    DataError where there is none, StoreError where tracking cannot be read.
    """
    folder = Path(name).expanduser()
    if (folder / SUMMARY).is_file():
        return folder
    if name == LATEST:
        found = sorted((settings.root / "results").glob(f"*/*/{SUMMARY}"), key=lambda file: file.stat().st_mtime)
        if not found:
            raise DataError(f"{settings.root / 'results'} holds no finished run; `paribus run` makes one")
        return found[-1].parent
    if folder.is_dir():
        raise DataError(f"{name} is no result folder: it has no {SUMMARY}, which is written last")
    if not settings.enabled:
        raise DataError(f"{name} is no result folder, and tracking is off, so that no tracked run can be looked up")
    from runner.tracking import Tracker

    return Tracker(settings).results_of(name)
