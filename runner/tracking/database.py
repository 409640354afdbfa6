"""MLflow's sqlite database: made by one process at a time, checked before it is used.

What is known here is that of mlflow/store/db in MLflow 3.17.2.
"""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from runner.errors import StoreError

LOCK_WAIT = 60.0
"""Seconds to wait for a locked database. MLflow itself waits 20 s for each call (mlflow/store/db/utils.py)."""


def locked(where: object) -> StoreError:
    """What is said of a database that stayed locked."""
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


def migrate_once(uri: str, create: Callable[..., object]) -> None:
    """Call `create`, which runs MLflow's schema migration, on a fresh sqlite database; check any other.

    The fresh database gets its name when it is whole: MLflow commits revision by revision, and one that was interrupted
    can be neither used nor upgraded. The migration fails when several processes start it. The lock is a sqlite file
    because those work everywhere and are released when their process dies. The check comes first because MLflow spends
    100 s on a database that cannot be opened, and migrates some old ones without asking. Raises StoreError.
    """
    import mlflow
    from alembic.script import ScriptDirectory

    file, version = Path(uri.removeprefix("sqlite:///")), mlflow.__version__
    script = ScriptDirectory(str(Path(str(mlflow.__file__)).parent / "store" / "db_migrations"))
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
            raise locked(file) from None
        raise StoreError(f"cannot use {file}: {error}; set tracking.folder to another folder") from None
    except OSError as error:
        raise StoreError(f"cannot use {file}: {error.strerror}; set tracking.folder to another folder") from None
