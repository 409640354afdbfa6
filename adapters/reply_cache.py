"""Replies of models on disk, so that the same question is paid for once.

SQLite, because one file serves several processes at once (write-ahead log, a busy timeout), a commit is whole or absent
after a crash, and Python brings it along.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
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
        row = self._do("SELECT reply FROM replies WHERE key = ?", (key,))
        if row is None:
            return None
        try:
            reply: dict[str, Any] = json.loads(row[0])
        except (TypeError, ValueError) as error:
            raise self._fault(error) from error
        return reply

    def put(self, key: str, reply: Mapping[str, Any]) -> None:
        """Keep `reply` under `key`, in the place of an earlier one."""
        text = json.dumps(reply, ensure_ascii=True)
        self._do("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", (key, text))

    def forget(self, key: str) -> None:
        """Drop what is kept under `key`."""
        self._do("DELETE FROM replies WHERE key = ?", (key,))

    def _do(self, statement: str, values: tuple[str, ...]) -> tuple[Any, ...] | None:
        try:
            connection = self._open()
            with connection, closing(connection.execute(statement, values)) as found:
                row: tuple[Any, ...] | None = found.fetchone()
                return row
        except (sqlite3.Error, OSError) as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> CacheError:
        return CacheError(f"the cache {self.path} cannot be used ({error}); remove it or set cache=off")

    def _open(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._connections, "open", None)
        if connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            with connection:
                connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
            self._connections.open = connection
        return connection
