from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner import results
from runner.config import Tracking, Trial
from runner.results import RunResult
from runner.run_log import BaselineView
from runner.tracking import Tracker

Settings = Callable[..., Tracking]
Logged = Callable[..., Any]


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow database; making one takes seconds, copying it does not."""
    file = tmp_path_factory.mktemp("migrated") / "mlflow.db"
    Tracker(Tracking(uri=f"sqlite:///{file}", folder=str(file.parent), experiment="not ours"))
    return file


@pytest.fixture
def folder(tmp_path: Path, migrated: Path) -> Path:
    """A tracking folder with an empty database."""
    made = tmp_path / "mlruns"
    made.mkdir()
    shutil.copy(migrated, made / "mlflow.db")
    return made


@pytest.fixture
def tracker(folder: Path) -> Tracker:
    return Tracker(Tracking(folder=str(folder)))


@pytest.fixture
def client(tracker: Tracker) -> Any:
    """MLflow's own client on the data of `tracker`, to read what was written."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracker._uri)


@pytest.fixture
def logged(tracker: Tracker, client: Any, tmp_path: Path) -> Logged:
    """Logs a result as a finished run and reads that run back."""

    def log(result: RunResult, baseline: BaselineView | None = None) -> Any:
        kept = tmp_path / "kept"
        results.write(result, kept)
        with tracker.run(result.name, Trial(), {}) as handle:
            handle.log(result, kept, baseline)
        return client.get_run(handle.run_id)

    return log
