"""Copies of results in MLflow, for people to look at and baselines to be found. The only module that imports mlflow.

The result folder is the truth: whatever goes wrong here is a StoreError that says where the results are. Nothing here
uses MLflow's fluent API, whose active run and MLFLOW_RUN_ID would make a child log into its parent. Limits are those of
mlflow/utils/validation.py in MLflow 3.17.2.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic, sleep, time
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

from adapters.schema import from_json
from runner.config import Tracking, Trial, redacted
from runner.drift import Standing
from runner.errors import DataError, ParibusError, StoreError
from runner.results import SUMMARY, RunResult
from runner.run_log import (
    NAME_LIMIT,
    STANDING,
    TAG_LIMIT,
    BaselineView,
    Rows,
    RunLog,
    as_csv,
    compare,
    definition_key,
    described,
    metric_name,
    storable,
)

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Run

T = TypeVar("T")

LOCK_WAIT = 60.0
"""Seconds to wait for a locked database. MLflow itself waits 20 s for each call (mlflow/store/db/utils.py)."""

ACCEPTED = "paribus.accepted"
"""The tag of runs that were accepted as a baseline: when, UTC with Z."""


def tracking_uri(settings: Tracking) -> str:
    """The absolute URI of the tracking data. Raises StoreError for a file store, which MLflow 3.17 cannot write."""
    if settings.uri is None:
        return f"sqlite:///{(settings.root / 'mlflow.db').as_posix()}"
    if settings.uri in ("sqlite://", "sqlite:///", "sqlite:///:memory:"):
        raise StoreError(f"tracking.uri={settings.uri} keeps nothing; write sqlite:///<folder>/mlflow.db")
    if settings.uri.startswith("sqlite:///"):
        return f"sqlite:///{Path(settings.uri.removeprefix('sqlite:///')).absolute().as_posix()}"
    if settings.uri.startswith("file:") or not ("://" in settings.uri or _is_remote(settings.uri)):
        raise StoreError(
            "tracking.uri names a folder, which MLflow no longer writes to, or lacks http://; "
            "write sqlite:///<folder>/mlflow.db, or null for a database in tracking.folder"
        )
    return settings.uri


def ui_command(settings: Tracking) -> str:
    """The command that shows the tracking data in a browser, without credentials."""
    uri = tracking_uri(settings)
    shown = _without_credentials(uri)
    return (
        f"open {shown}"
        if _is_remote(uri)
        else shlex.join([sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", shown])
    )


class Tracker:
    """The tracking data that `settings` names, made ready: after one Tracker exists, others may be made at the same
    time in any number of processes.

    Raises StoreError where the data cannot be read or written.
    """

    def __init__(self, settings: Tracking) -> None:
        self._settings = settings
        self._uri = tracking_uri(settings)
        self._where = _without_credentials(self._uri)
        client = partial(self._call, _mlflow().MlflowClient)
        if self._uri.startswith("sqlite:///"):
            _migrate_once(self._uri, client)
        with _impatient():
            self._client = client(tracking_uri=self._uri)
            self._experiment_id = self._call(self._open_experiment)

    def _open_experiment(self) -> str:
        from mlflow.exceptions import MlflowException

        name, location = self._settings.experiment, None
        if not _is_remote(self._uri):
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
        query = f"attributes.status = 'RUNNING' and tags.`paribus.host` = '{_host()}'"
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
            self._send(run_id, RunLog(files={"plan.csv": as_csv(plan)}))
            yield SweepHandle(run_id, len(plan), self)

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
        with self._running(name, {"paribus.kind": "run", **known, **tags}) as run_id:
            yield RunHandle(run_id, self)

    @contextmanager
    def _running(self, name: str, tags: Mapping[str, str]) -> Iterator[str]:
        owner = {
            "mlflow.source.name": "paribus",
            "paribus.host": _host(),
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
                self._send(run_id, RunLog(files=log.files))
            yield run_id
            self._call(self._client.set_terminated, run_id, "FINISHED")
        except BaseException as error:
            self._end(run_id, "FAILED" if isinstance(error, Exception) else "KILLED", error)
            raise

    def _end(self, run_id: str, status: str, error: BaseException) -> None:
        said = str(error) if isinstance(error, ParibusError) else f"{type(error).__name__}: {error}".removesuffix(": ")
        try:
            with _impatient():
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
            yield AuditHandle(run_id, self)

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

    def _send(self, run_id: str, log: RunLog, result: RunResult | None = None, folder: Path | None = None) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

        now = int(time() * 1000)
        metrics = [Metric(key, value, now, 0) for key, value in log.metrics.items()]
        params = [Param(key, value) for key, value in log.params.items()]
        tags = [RunTag(key, value) for key, value in log.tags.items()]
        for kind, entities, most in (("metrics", metrics, 1000), ("params", params, 100), ("tags", tags, 100)):
            for start in range(0, len(entities), most):
                self._call(self._client.log_batch, run_id, **{kind: entities[start : start + most]})
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
            self._call(self._client.log_inputs, run_id, [DatasetInput(dataset, [context])])
        if log.files:
            with tempfile.TemporaryDirectory() as written:
                for name, text in log.files.items():
                    path = Path(written, name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(storable(text), encoding="utf-8", newline="\n")
                self._call(self._client.log_artifacts, run_id, written)
        if folder is not None:
            self._call(self._client.log_artifacts, run_id, str(folder), "results")

    def _call(self, method: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call MLflow; whatever it raises becomes a StoreError, for it wraps errors of databases and servers in many
        kinds. The chain is cut because it may hold the credentials of the URI.
        """
        deadline = monotonic() + LOCK_WAIT
        while True:
            try:
                return method(*args, **kwargs)
            except StoreError:
                raise
            except Exception as error:
                # Two runs that log a new dataset at once: MLflow looks it up, then inserts it.
                passing = re.search("database is locked|unique constraint", str(error), re.IGNORECASE)
                if passing is None or monotonic() > deadline:
                    raise self._fault(error) from None
            sleep(0.1)

    def _fault(self, error: Exception) -> StoreError:
        if "database is locked" in str(error):
            return _locked(self._where)
        text = str(redacted(str(error).replace(self._uri, self._where)))
        said = text.strip().splitlines() or [type(error).__name__]
        cause: BaseException = error
        while (inner := cause.__cause__ or cause.__context__) is not None:
            cause = inner
        if _is_remote(self._uri) and isinstance(cause, OSError):
            reason = cause.strerror or type(cause).__name__
            return StoreError(
                f"the tracking server at {self._where} cannot be reached ({reason}); start it or correct tracking.uri, "
                "or set tracking.uri=null for a database in tracking.folder"
            )
        return StoreError(f"MLflow could not use {self._where}: {said[0]}")


@dataclass(frozen=True)
class SweepHandle:
    """The open parent run of a sweep of `planned` runs."""

    run_id: str
    planned: int
    _tracker: Tracker

    def log(self, table: Rows, *, failed: int) -> None:
        """Log the table of the finished sweep and how many of its runs failed. Raises StoreError."""
        counts = {"runs/finished": float(self.planned - failed), "runs/failed": float(failed)}
        self._tracker._send(self.run_id, RunLog(counts, files={"sweep.csv": as_csv(table)}))


@dataclass(frozen=True)
class RunHandle:
    """An open run."""

    run_id: str
    _tracker: Tracker

    def log(self, result: RunResult, folder: Path, baseline: BaselineView | None) -> None:
        """Log the result, a copy of every file of its folder, and the differences from a comparable baseline.

        Raises StoreError, which says where the results are.
        """
        log = described(result, folder)
        if baseline is not None:
            compare(log, result, baseline)
        try:
            self._tracker._send(self.run_id, log, result, folder)
        except StoreError as error:
            raise StoreError(f"{error}. Nothing is lost: the results are in {folder}") from None


@dataclass(frozen=True)
class AuditHandle:
    """An open run that holds an audit."""

    run_id: str
    _tracker: Tracker

    def log(self, metrics: Mapping[str, float], params: Mapping[str, Any], folder: Path) -> None:
        """Log figures under names that MLflow takes (`metric_name`), parameters, and every file of `folder`. Raises
        StoreError."""
        log = RunLog(dict(metrics))
        for key, value in params.items():
            log.param(key, value)
        self._tracker._send(self.run_id, log)
        self._tracker._call(self._tracker._client.log_artifacts, self.run_id, str(folder), "audit")


def _accepted_at(run: Run) -> float:
    """When a run was accepted, as an instant. Whoever tags a run by hand may write anything: then its start counts."""
    try:
        when = datetime.fromisoformat(run.data.tags[ACCEPTED])
    except ValueError:
        when = None
    return when.timestamp() if when and when.tzinfo else run.info.start_time / 1000


def _is_remote(uri: str) -> bool:
    return uri.startswith(("http:", "https:", "databricks"))


def _without_credentials(uri: str) -> str:
    """All before the last '@' goes: people put passwords with '@' and '/' into URIs without quoting them."""
    return uri if uri.startswith("sqlite:") else re.sub("(?<=://).*@", "", uri)


def _mlflow() -> ModuleType:
    """MLflow without telemetry and chatter. What it logs as an error is raised as well, so the log only repeats it."""
    from logging import CRITICAL, WARNING, getLogger

    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    import mlflow

    for name, level in (("alembic", WARNING), ("mlflow", WARNING), ("mlflow.store.db.utils", CRITICAL)):
        getLogger(name).setLevel(level)
    return mlflow


@contextmanager
def _impatient() -> Iterator[None]:
    """Without this, MLflow tries a server that is down for about four minutes, which is right in the middle of a run
    and wrong at its start and on Ctrl-C (MLFLOW_HTTP_REQUEST_* in mlflow/environment_variables.py).
    """
    wanted = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
    unset = [name for name in wanted if name not in os.environ]
    os.environ.update({name: wanted[name] for name in unset})
    try:
        yield
    finally:
        for name in unset:
            os.environ.pop(name, None)


def _locked(where: object) -> StoreError:
    return StoreError(
        f"{where} is locked by another program (waited {LOCK_WAIT:g} s); close what holds it open, "
        "or set tracking.uri to an MLflow server"
    )


def _checked_schema(file: Path) -> str | None:
    """The schema version of a database that can be written to; None = a fresh one. Raises sqlite3.Error."""
    with closing(sqlite3.connect(file, timeout=LOCK_WAIT, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        tables = database.execute("SELECT name FROM sqlite_master WHERE name = 'alembic_version'").fetchall()
        rows = database.execute("SELECT version_num FROM alembic_version").fetchall() if tables else []
    return str(rows[0][0]) if rows else None


def _migrate_once(uri: str, create: Callable[..., object]) -> None:
    """Call `create`, which runs MLflow's schema migration, on a fresh sqlite database; check any other.

    The fresh database gets its name when it is whole: MLflow commits revision by revision, and one that was interrupted
    can be neither used nor upgraded. The migration fails when several processes start it. The lock is a sqlite file
    because those work everywhere and are released when their process dies. The check comes first because MLflow spends
    100 s on a database that cannot be opened, and migrates some old ones without asking. Raises StoreError.
    """
    from alembic.script import ScriptDirectory

    file, version = Path(uri.removeprefix("sqlite:///")), _mlflow().__version__
    script = ScriptDirectory(str(Path(str(_mlflow().__file__)).parent / "store" / "db_migrations"))
    try:
        if "?" in uri:
            raise OSError(22, "a database URI cannot hold a '?'")
        if escaped := re.search("%[0-9A-Fa-f]{2}", uri):  # MLflow would decode it and write to another folder
            raise OSError(22, f"a database URI cannot hold {escaped[0]!r}")
        if not file.exists() and (old := next(file.parent.glob("*/meta.yaml"), None)):
            raise OSError(22, f"{old} belongs to an old MLflow file store, which MLflow {version} does not write to")
        file.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(file.parent, os.W_OK | os.X_OK):
            raise OSError(13, "Permission denied")
        if _checked_schema(file) == script.get_current_head():
            return
        with closing(sqlite3.connect(file.with_suffix(".lock"), timeout=LOCK_WAIT, isolation_level=None)) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            found = _checked_schema(file)
            if found is None:
                fresh = file.with_suffix(".new")
                fresh.unlink(missing_ok=True)
                create(tracking_uri=f"sqlite:///{fresh.as_posix()}")
                os.replace(fresh, file)
            elif found in {revision.revision for revision in script.walk_revisions()} - {script.get_current_head()}:
                raise StoreError(
                    f"{file} was made by an older MLflow than {version}; copy the file, then run: "
                    f"mlflow db upgrade {shlex.quote(uri)}"
                )
            elif found != script.get_current_head():
                raise StoreError(
                    f"{file} was made by a newer MLflow than {version} (schema {found}); install that, or set "
                    "tracking.folder to another folder"
                )
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise _locked(file) from None
        raise StoreError(f"cannot use {file}: {error}; set tracking.folder to another folder") from None
    except OSError as error:
        raise StoreError(f"cannot use {file}: {error.strerror}; set tracking.folder to another folder") from None


def _host() -> str:
    """The name of this host, and a hash of where process ids mean the same: the machine and its pid namespace."""
    place = ""
    with suppress(OSError):
        place = os.readlink("/proc/self/ns/pid")
        place += Path("/etc/machine-id").read_text(encoding="ascii")
    return f"{socket.gethostname()}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


def process_started(pid: int) -> str:
    """When the process began, in the words of its system, so that a reused pid is another process.

    "gone" when there is no such process, or it is dead and not yet waited for; "" where this cannot be known (Windows).
    """
    if Path("/proc/self/stat").exists():
        try:
            line = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return "gone"
        # The command, in parentheses, may hold spaces; the start time is field 22 (proc_pid_stat(5)).
        state, *fields = line.rpartition(b")")[2].decode("ascii").split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return "gone" if state in "ZX" else f"{boot}:{fields[18]}"
    try:
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        listed = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except OSError:
        return ""
    return listed.stdout.strip() or "gone"
