"""Where tracking data is: the URI that MLflow takes, and how it is shown."""

from __future__ import annotations

import re
from pathlib import Path

from runner.config import Tracking
from runner.errors import StoreError


def tracking_uri(settings: Tracking) -> str:
    """The absolute URI of the tracking data. Raises StoreError for a file store, which MLflow 3.17 cannot write."""
    if settings.uri is None:
        return f"sqlite:///{(settings.root / 'mlflow.db').as_posix()}"
    if settings.uri in ("sqlite://", "sqlite:///", "sqlite:///:memory:"):
        raise StoreError(f"tracking.uri={settings.uri} keeps nothing; write sqlite:///<folder>/mlflow.db")
    if settings.uri.startswith("sqlite:///"):
        return f"sqlite:///{Path(settings.uri.removeprefix('sqlite:///')).absolute().as_posix()}"
    if settings.uri.startswith("file:") or not ("://" in settings.uri or is_remote(settings.uri)):
        raise StoreError(
            "tracking.uri names a folder, which MLflow no longer writes to, or lacks http://; "
            "write sqlite:///<folder>/mlflow.db, or null for a database in tracking.folder"
        )
    return settings.uri


def is_remote(uri: str) -> bool:
    """Whether a server keeps the data, so that it is reached over http."""
    return uri.startswith(("http:", "https:", "databricks"))


def without_credentials(uri: str) -> str:
    """All before the last '@' goes: people put passwords with '@' and '/' into URIs without quoting them."""
    return uri if uri.startswith("sqlite:") else re.sub("(?<=://).*@", "", uri)
