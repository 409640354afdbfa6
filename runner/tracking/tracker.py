"""Copies of results in MLflow: runs opened, ended and found again.

The result folder is the truth: whatever goes wrong here is a StoreError that says where the results are. Nothing here
uses MLflow's fluent API, whose active run and MLFLOW_RUN_ID would make a child log into its parent. Limits are those of
mlflow/utils/validation.py in MLflow 3.17.2.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from adapters.schema import from_json
from runner.config import Tracking, Trial, redacted
from runner.drift import Standing
from runner.errors import DataError, ParibusError, StoreError
from runner.results import SUMMARY
from runner.run_log import (
    NAME_LIMIT,
    STANDING,
    TAG_LIMIT,
    BaselineView,
    Rows,
    RunLog,
    as_csv,
    definition_key,
    metric_name,
    storable,
)
from runner.tracking.address import is_remote
from runner.tracking.connection import Connection, impatient
from runner.tracking.handles import AuditHandle, RunHandle, SweepHandle, send
from runner.tracking.processes import host, process_started

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Run

EVALUATION = {"mlflow.runType": "genai_evaluate"}
"""The tag of runs that MLflow's evaluation view lists."""

ACCEPTED = "paribus.accepted"
"""The tag of runs that were accepted as a baseline: when, UTC with Z."""


class Tracker:
    """The tracking data that `settings` names, made ready: after one Tracker exists, others may be made at the same
    time in any number of processes.

    Raises StoreError where the data cannot be read or written.
    """

    def __init__(self, settings: Tracking) -> None:
        self._settings = settings
        self._connection = Connection(settings)
        self._call, self._client = self._connection.call, self._connection.client
        self._uri, self._where = self._connection.uri, self._connection.where
        with impatient():
            self._experiment_id = self._call(self._open_experiment)

    def _open_experiment(self) -> str:
        from mlflow.exceptions import MlflowException

        name, location = self._settings.experiment, None
        if not is_remote(self._uri):
            artifacts = self._settings.root / "artifacts"
            artifacts.mkdir(parents=True, exist_ok=True)
            location = artifacts.as_uri()
        found: Experiment | None = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name, artifact_location=location))
            except MlflowException:
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        if found.lifecycle_stage != "active":
            raise StoreError(
                f"the experiment {name!r} in {self._where} is deleted; set tracking.experiment to another name, or run "
                f"mlflow experiments restore --experiment-id {found.experiment_id}"
            )
        kept = urlsplit(found.artifact_location)
        if location and kept.scheme == "file" and not Path(url2pathname(kept.path)).exists():
            raise StoreError(
                f"the experiment {name!r} in {self._where} keeps its files in {url2pathname(kept.path)}, which is "
                "gone; move the folder back, or set tracking.experiment to another name"
            )
        return str(found.experiment_id)

    def close_stale(self) -> list[str]:
        """End the RUNNING runs whose process on this host is gone, as KILLED, and return their ids.

        Runs of other hosts are left alone, and so are all runs where process start times cannot be read (Windows). It
        looks at the newest 1,000.
        """
        query = f"attributes.status = 'RUNNING' and tags.`paribus.host` = '{host()}'"
        gone = []
        for run in self._call(self._client.search_runs, [self._experiment_id], query):
            pid, started = (run.data.tags.get(f"paribus.{name}", "") for name in ("pid", "process_started"))
            if started and pid.isdecimal() and process_started(int(pid)) != started:
                reason = f"process {pid} ended without closing this run"
                self._call(self._client.set_tag, run.info.run_id, "paribus.reason", reason)
                self._call(self._client.set_terminated, run.info.run_id, "KILLED")
                gone.append(run.info.run_id)
        return gone

    @contextmanager
    def sweep(self, name: str, tags: Mapping[str, str], plan: Rows) -> Iterator[SweepHandle]:
        """The parent run of a sweep, with a row for each planned run. Ends like `run`."""
        with self._running(name, {"paribus.kind": "sweep", **tags}) as run_id:
            send(self._connection, run_id, RunLog(files={"plan.csv": as_csv(plan)}))
            yield SweepHandle(run_id, len(plan), self._experiment_id, self._connection)

    @contextmanager
    def run(self, name: str, trial: Trial, tags: Mapping[str, str]) -> Iterator[RunHandle]:
        """A run, inside its sweep where `trial` names a parent.

        FINISHED when the block ends, FAILED on an exception, KILLED on KeyboardInterrupt or SystemExit; the tag
        paribus.reason says why. Raises StoreError.
        """
        place = {
            "mlflow.parentRunId": trial.parent_run_id,
            "mlflow.evaluation.baselineRunId": trial.baseline_run_id,
            "paribus.baseline_run_id": trial.baseline_run_id,
            "paribus.design": trial.design,
            "paribus.variable": trial.variable,
            "paribus.value": trial.value,
            "paribus.changed": ", ".join(trial.changed) or None,
            "paribus.sweep": trial.sweep,
        }
        known = {key: value for key, value in place.items() if value is not None}
        with self._running(name, {"paribus.kind": "run", **EVALUATION, **known, **tags}) as run_id:
            where = {
                "uri": self._where,
                "experiment": self._settings.experiment,
                "run_id": run_id,
                "parent_run_id": trial.parent_run_id,
            }
            yield RunHandle(run_id, where, trial, self._experiment_id, self._settings.traces, self._connection)

    @contextmanager
    def _running(self, name: str, tags: Mapping[str, str]) -> Iterator[str]:
        owner = {
            "mlflow.source.name": "paribus",
            "paribus.host": host(),
            "paribus.pid": str(os.getpid()),
            "paribus.process_started": process_started(os.getpid()),
        }
        log = RunLog()
        for key, value in {**owner, **tags}.items():
            log.tag(key, value)
        run = self._call(self._client.create_run, self._experiment_id, tags=log.tags, run_name=storable(name))
        run_id = str(run.info.run_id)
        try:
            if log.files:
                send(self._connection, run_id, RunLog(files=log.files))
            yield run_id
            self._call(self._client.set_terminated, run_id, "FINISHED")
        except BaseException as error:
            self._end(run_id, "FAILED" if isinstance(error, Exception) else "KILLED", error)
            raise

    def _end(self, run_id: str, status: str, error: BaseException) -> None:
        said = str(error) if isinstance(error, ParibusError) else f"{type(error).__name__}: {error}".removesuffix(": ")
        try:
            with impatient():
                self._client.set_terminated(run_id, status)
                self._client.set_tag(run_id, "paribus.reason", storable(redacted(said))[:TAG_LIMIT])
        except Exception:
            error.add_note(f"The MLflow run {run_id} in {self._where} could not be ended and may still say RUNNING.")
        except BaseException:
            # People press Ctrl-C twice.
            self._client.set_terminated(run_id, status)
            raise

    def results_of(self, name: str) -> Path:
        """The result folder of the run with this id or, of several with this name, the newest: where it was written,
        or, where that is gone or on another machine, a copy of its artifacts in a temporary folder.

        Raises DataError where there is no such run, StoreError where it left no results.
        """
        return self._results(self._named(name))

    def _named(self, name: str) -> Run:
        if re.fullmatch("[0-9a-f]{32}", name):
            run: Run = self._call(self._client.get_run, name)
            return run
        quoted = name.replace("'", "''")
        query = f"attributes.run_name = '{quoted}' and tags.`paribus.kind` = 'run'"
        found: list[Run] = self._call(
            self._client.search_runs, [self._experiment_id], query, max_results=1, order_by=["start_time DESC"]
        )
        if not found:
            raise DataError(
                f"{name!r} is no result folder, and {self._where} has no run of that id or name in the experiment "
                f"{self._settings.experiment!r}"
            )
        return found[0]

    def _results(self, run: Run) -> Path:
        written = Path(run.data.tags.get("paribus.results", ""))
        if run.data.tags.get("paribus.results") and (written / SUMMARY).is_file():
            return written
        if not any(item.path == "results" for item in self._call(self._client.list_artifacts, run.info.run_id)):
            raise StoreError(f"run {run.info.run_id} left no results; it is {run.info.status}")
        copy = tempfile.mkdtemp(prefix="paribus-results-")
        return Path(self._call(self._client.download_artifacts, run.info.run_id, "results", copy))

    def accept(self, name: str | None, folder: Path, config_fingerprint: str, when: datetime) -> str | None:
        """Tag the run whose results are in `folder` as the accepted baseline and return its id.

        name: the id or name by which these results were found, for folders that are a copy of its artifacts; None = by
        their path. None is returned where no run has these results. Raises StoreError.
        """
        query = f"tags.`paribus.config_fingerprint` = '{config_fingerprint}'"
        found = self._call(self._client.search_runs, [self._experiment_id], query)
        here = folder.resolve()
        runs = [run for run in found if Path(run.data.tags.get("paribus.results", "")).resolve() == here]
        if not runs and name is None:
            return None
        run = runs[0] if runs else self._named(name or "")
        run_id = str(run.info.run_id)
        told = when.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        self._call(self._client.set_tag, run_id, ACCEPTED, told)
        return run_id

    def accepted_results(self) -> Path:
        """The result folder, or a copy of it, of the run that was accepted last. Raises DataError where none was."""
        query = f"tags.`{ACCEPTED}` LIKE '%'"
        found = self._call(self._client.search_runs, [self._experiment_id], query)
        if not found:
            raise DataError(
                f"no run of the experiment {self._settings.experiment!r} in {self._where} is accepted; `paribus accept "
                "RUN` makes a baseline"
            )
        return self._results(max(found, key=_accepted_at))

    @contextmanager
    def audit(self, name: str, tags: Mapping[str, str]) -> Iterator[AuditHandle]:
        """A run that holds an audit. Ends like `run`."""
        with self._running(name, {"paribus.kind": "audit", **tags}) as run_id:
            yield AuditHandle(run_id, self._connection)

    def load_baseline(self, run_id: str) -> BaselineView:
        """What the run logged, read from the tracking data alone, so that it works from another machine.

        Raises StoreError for a run that is not there, not finished, or not logged by paribus. Definitions whose key is
        too long to be read back are left out.
        """
        run = self._call(self._client.get_run, run_id)
        if run.info.status != "FINISHED":
            raise StoreError(f"run {run_id} is {run.info.status}; a baseline must be FINISHED")
        tags: dict[str, str] = run.data.tags
        if "paribus.dataset.checksum" not in tags:
            raise StoreError(f"run {run_id} holds no results of paribus, so it cannot be a baseline; name another run")

        def tagged(prefix: str) -> dict[str, str]:
            names = {tag.removeprefix(prefix): value for tag, value in tags.items() if tag.startswith(prefix)}
            return {definition_key(name): value for name, value in names.items() if len(name) < NAME_LIMIT}

        fingerprints = tagged("paribus.definition.")
        means = {key: run.data.metrics.get(metric_name(key)) for key in fingerprints}
        return BaselineView(
            run_id,
            {key: value for key, value in means.items() if value is not None},
            {key: int(run.data.metrics.get(f"n/{metric_name(key)}", 0)) for key in fingerprints},
            fingerprints,
            tagged("paribus.judge."),
            tags["paribus.dataset.checksum"],
            from_json(Standing, tags[STANDING]) if STANDING in tags else None,
        )


def _accepted_at(run: Run) -> float:
    """When a run was accepted, as an instant. Whoever tags a run by hand may write anything: then its start counts."""
    try:
        when = datetime.fromisoformat(run.data.tags[ACCEPTED])
    except ValueError:
        when = None
    return when.timestamp() if when and when.tzinfo else run.info.start_time / 1000
