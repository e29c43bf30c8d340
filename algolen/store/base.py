"""What reading and writing share: a connection, rows as dictionaries, and transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from algolen.errors import UserError
from algolen.store.connection import explained, immediate, prepare_for_writing


class Connected:
    """An open database file."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self.db = Database(connection)
        self._connection = connection
        self._prepared = False
        self._inode: int | None = os.stat(path).st_ino if path.exists() else None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A write transaction that holds the lock from its start; within one already, part of that one."""
        if self._connection.in_transaction:
            yield
            return
        # Only writers change the journal mode: it is kept in the file, and a reader leaves every byte as it was.
        if not self._prepared:
            with explained(self.path):
                prepare_for_writing(self._connection, self.path)
            self._prepared = True
        with immediate(self._connection, self.path):
            self._check_in_place()
            yield

    def _check_in_place(self) -> None:
        """Raises UserError if the file was removed or replaced while it was open: what is written would be lost."""
        try:
            there = os.stat(self.path).st_ino
        except FileNotFoundError:
            there = None
        self._inode = self._inode or there
        if there is None or there != self._inode:
            raise UserError(f"{self.path} was removed or replaced while it was open; what came since cannot be kept")

    def rows(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[dict[str, Any]]:
        """Every row of a query, as dictionaries."""
        with explained(self.path):
            return list(self.db.query(sql, parameters))


def now() -> str:
    """The time as stored: UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def seconds_since(stamp: str) -> float:
    """How long ago a stored time was."""
    return (datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()
