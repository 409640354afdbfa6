"""MLflow's client, made without side effects and called so that every fault is a StoreError."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic, sleep
from types import ModuleType
from typing import Any, TypeVar

from runner.config import Tracking, redacted
from runner.errors import StoreError
from runner.tracking import database
from runner.tracking.address import is_remote, tracking_uri, without_credentials

T = TypeVar("T")


class Connection:
    """MLflow's client on the tracking data that `settings` names. Raises StoreError where it cannot be reached.

    client: MLflow's own, for `call`. uri: as MLflow takes it, with its credentials; where: without them.
    """

    def __init__(self, settings: Tracking) -> None:
        self.uri = tracking_uri(settings)
        self.where = without_credentials(self.uri)
        client = partial(self.call, mlflow().MlflowClient)
        if self.uri.startswith("sqlite:///"):
            database.migrate_once(self.uri, client)
        with impatient():
            self.client: Any = client(tracking_uri=self.uri)

    def call(self, method: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call MLflow; whatever it raises becomes a StoreError, for it wraps errors of databases and servers in many
        kinds. The chain is cut because it may hold the credentials of the URI.
        """
        deadline = monotonic() + database.LOCK_WAIT
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
            return database.locked(self.where)
        text = str(redacted(str(error).replace(self.uri, self.where)))
        said = text.strip().splitlines() or [type(error).__name__]
        cause: BaseException = error
        while (inner := cause.__cause__ or cause.__context__) is not None:
            cause = inner
        if is_remote(self.uri) and isinstance(cause, OSError):
            reason = cause.strerror or type(cause).__name__
            return StoreError(
                f"the tracking server at {self.where} cannot be reached ({reason}); start it or correct tracking.uri, "
                "or set tracking.uri=null for a database in tracking.folder"
            )
        return StoreError(f"MLflow could not use {self.where}: {said[0]}")


def mlflow() -> ModuleType:
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
def impatient() -> Iterator[None]:
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
