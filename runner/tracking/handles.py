"""Open runs, and how what is to be said of them is sent: in batches of the size that MLflow takes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from adapters.schema import Question, from_json
from runner.config import Trial
from runner.errors import StoreError
from runner.results import QUESTIONS, RunResult
from runner.run_log import (
    TABLE,
    BaselineView,
    Rows,
    RunLog,
    as_csv,
    compare,
    described,
    numeric_series,
    shown,
    storable,
)
from runner.tracking.connection import Connection
from runner.tracking.notes import NOTE, Pairing, run_note, sweep_note
from runner.tracking.spans import preview
from runner.tracking.traces import log_traces
from runner.tracking.view import TAG, saved_view


def send(to: Connection, run_id: str, log: RunLog, result: RunResult | None = None, folder: Path | None = None) -> None:
    """Send `log` to a run, with the test set of `result` as its dataset and a copy of every file of `folder`."""
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

    now = int(time() * 1000)
    metrics = [Metric(key, value, now, 0) for key, value in log.metrics.items()]
    metrics += [Metric(key, value, now, step) for key, points in log.series.items() for step, value in points]
    params = [Param(key, value) for key, value in log.params.items()]
    tags = [RunTag(key, value) for key, value in log.tags.items()]
    for kind, entities, most in (("metrics", metrics, 1000), ("params", params, 100), ("tags", tags, 100)):
        for start in range(0, len(entities), most):
            to.call(to.client.log_batch, run_id, **{kind: entities[start : start + most]})
    if result is not None:
        card = {key: result.dataset.get(key) for key in ("name", "version", "checksum")}
        dataset = Dataset(
            name=str(card["name"])[:500],
            digest=str(card["checksum"])[:36],
            source_type="paribus",
            source=json.dumps(card),
            profile=json.dumps({"questions": len(result.questions)}),
        )
        context = InputTag("mlflow.data.context", "evaluation")
        to.call(to.client.log_inputs, run_id, [DatasetInput(dataset, [context])])
    if log.files:
        with tempfile.TemporaryDirectory() as written:
            for name, text in log.files.items():
                path = Path(written, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(storable(text), encoding="utf-8", newline="\n")
            to.call(to.client.log_artifacts, run_id, written)
    if folder is not None:
        to.call(to.client.log_artifacts, run_id, str(folder), "results")


@dataclass(frozen=True)
class SweepHandle:
    """The open parent run of a sweep of `planned` runs."""

    run_id: str
    planned: int
    experiment_id: str
    _connection: Connection

    def log(self, table: Rows, *, failed: int, report: Path | None = None) -> None:
        """Log the table of the finished sweep, how many of its runs failed, the means over each numeric variable as
        series, and every file of the folder `report`; describe all of it. Raises StoreError."""
        counts = {"runs/finished": float(self.planned - failed), "runs/failed": float(failed)}
        found = numeric_series(table)
        log = RunLog(counts, files={"sweep.csv": as_csv(table)})
        for series in found:
            log.series[series.name] = list(series.points)
            if series.level is not None:
                log.series[series.level_name] = [(step, series.level) for step, _ in series.points]
        keys = self._keys(table)
        page = f"#/experiments/{self.experiment_id}/runs/{self.run_id}"
        log.tag(NOTE, sweep_note(table, keys, found, page, report is not None))
        send(self._connection, self.run_id, log)
        to = self._connection
        if report is not None:
            to.call(to.client.log_artifacts, self.run_id, str(report), "report")
        to.call(to.client.set_experiment_tag, self.experiment_id, TAG, saved_view(keys))

    def _keys(self, table: Rows) -> list[str]:
        """The definitions in the table of the first run that has one."""
        run_id = next((row["run_id"] for row in table if row.get("run_id")), None)
        if run_id is None:
            return []
        tags = self._connection.call(self._connection.client.get_run, run_id).data.tags
        return list(json.loads(tags.get(TABLE, "[]")))


@dataclass(frozen=True)
class RunHandle:
    """An open run. place: the experiment, the ids of the run and its parent, and the URI without credentials, for the
    result folder. traces: so many questions at most become traces."""

    run_id: str
    place: Mapping[str, str | None]
    trial: Trial
    experiment_id: str
    traces: int
    _connection: Connection

    def log(self, result: RunResult, folder: Path, baseline: BaselineView | None) -> None:
        """Log the result, a copy of every file of its folder, the differences from a comparable baseline, and the
        questions as traces; describe all of it.

        Raises StoreError, which says where the results are.
        """
        log, keys, to = described(result, folder), shown(result), self._connection
        if baseline is not None:
            compare(log, result, baseline)
        page = f"#/experiments/{self.experiment_id}/runs/{self.run_id}"
        traced = (min(self.traces, len(result.questions)), len(result.questions))
        log.tag("paribus.traces", f"{traced[0]} of {traced[1]} questions")
        try:
            pairing = self._pairing(result, baseline) if baseline else None
            log.tag(NOTE, run_note(log, keys, self.trial, page, folder, traced, pairing))
            send(to, self.run_id, log, result, folder)
            log_traces(to, self.experiment_id, self.run_id, result, self.traces)
            if self.trial.sweep is None:
                to.call(to.client.set_experiment_tag, self.experiment_id, TAG, saved_view(keys))
        except StoreError as error:
            raise StoreError(f"{error}. Nothing is lost: the results are in {folder}") from None

    def _pairing(self, result: RunResult, baseline: BaselineView) -> Pairing:
        ours = {preview(question): question.id for question in result.questions}
        if baseline.dataset_checksum == result.dataset.get("checksum"):
            return Pairing(len(ours))
        to = self._connection
        with tempfile.TemporaryDirectory() as copy:
            file = f"results/{QUESTIONS}"
            text = Path(to.call(to.client.download_artifacts, baseline.run_id, file, copy)).read_text(encoding="utf-8")
        questions = [from_json(Question, line) for line in text.split("\n") if line]
        theirs = {preview(question): question.id for question in questions}
        here = [id for text, id in ours.items() if text not in theirs]
        there = [id for text, id in theirs.items() if text not in ours]
        return Pairing(len(ours) - len(here), here, there)


@dataclass(frozen=True)
class AuditHandle:
    """An open run that holds an audit."""

    run_id: str
    _connection: Connection

    def log(self, metrics: Mapping[str, float], params: Mapping[str, Any], folder: Path) -> None:
        """Log figures under names that MLflow takes (`metric_name`), parameters, and every file of `folder`. Raises
        StoreError."""
        log = RunLog(dict(metrics))
        for key, value in params.items():
            log.param(key, value)
        send(self._connection, self.run_id, log)
        self._connection.call(self._connection.client.log_artifacts, self.run_id, str(folder), "audit")
