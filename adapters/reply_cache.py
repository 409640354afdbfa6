"""Replies of models on disk, so that the same question is paid for once.

SQLite, because one file serves several processes at once (write-ahead log, a busy timeout), a commit is whole or absent
after a crash, and Python brings it along.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep
from typing import Any

BUSY_SECONDS = 60.0
"""How long a write waits for those of other processes."""


class CacheError(Exception):
    """The cache cannot be used; one sentence that names the file and what to do."""


class ReplyCache:
    """Replies by key, in the file `path`. Safe for threads and processes; every method raises CacheError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections = threading.local()

    def get(self, key: str) -> dict[str, Any] | None:
        """The reply kept under `key`; None = there is none."""
        try:
            with closing(self._open().execute("SELECT reply FROM replies WHERE key = ?", (key,))) as found:
                row = found.fetchone()
            reply = json.loads(row[0]) if row else None
            if row and not isinstance(reply, dict):
                raise TypeError(f"a kept reply is {type(reply).__name__} and no object")
        except (sqlite3.Error, OSError, TypeError, ValueError, RecursionError) as error:
            raise self._fault(error) from error
        return reply

    def put(self, key: str, reply: Mapping[str, Any]) -> None:
        """Keep `reply` under `key`, in the place of an earlier one."""
        text = json.dumps(reply, ensure_ascii=True)
        self._change(
            ("DELETE FROM believed WHERE key = ?", [(key,)]),
            ("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", [(key, text)]),
        )

    def forget(self, key: str) -> None:
        """Drop what is kept under `key`, unless it is believed."""
        self._change(
            ("DELETE FROM replies WHERE key = ? AND key NOT IN (SELECT key FROM believed)", [(key,)]),
        )

    def believe(self, keys: Sequence[str]) -> None:
        """Mark what is kept under `keys`: `forget` leaves it from now on."""
        self._change(("INSERT OR IGNORE INTO believed (key) VALUES (?)", [(key,) for key in keys]))

    def _change(self, *statements: tuple[str, list[tuple[str, ...]]]) -> None:
        """All of it, or nothing where it fails."""
        try:
            connection = self._open()
            with connection:
                for statement, rows in statements:
                    connection.executemany(statement, rows)
        except (sqlite3.Error, OSError) as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> CacheError:
        return CacheError(f"the cache {self.path} cannot be used ({error}); remove it or set cache=off")

    def _open(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._connections, "open", None)
        if connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            with connection:
                connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
                connection.execute("CREATE TABLE IF NOT EXISTS believed (key TEXT PRIMARY KEY)")
            self._connections.open = connection
        return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Have the file log ahead. For this one change SQLite does not wait for other processes, which are as likely as not
    making it too. Raises sqlite3.OperationalError where the file stays locked for BUSY_SECONDS."""
    deadline = monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic() > deadline:
                raise
        sleep(0.02)
