"""The store: one SQLite file that holds every run and every count."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from algolen import __version__
from algolen.errors import UserError
from algolen.store.claims import Claims
from algolen.store.connection import close, connect
from algolen.store.migrations import SCHEMA, known_names
from algolen.store.reading import Reading
from algolen.store.writing import Writing


class Store(Claims, Writing, Reading):
    """An open experiments database. Any number of processes may have the same file open and write to it.

        with Store.open("experiments.sqlite", create=True) as store:
            store.add_config(config)

    A reader changes nothing in the file. A store belongs to the thread that opened it.
    """

    @classmethod
    def open(cls, path: str | Path, create: bool = False, read_only: bool = False) -> Store:
        """Open a database file, bringing an older schema up to date; with `create`, make it if it is not there.

        With `read_only` nothing can be written, and an older schema stays. Raises UserError where there is no file,
        where it is something else, and where a newer algolen made it.
        """
        store = cls(connect(Path(path), create, read_only), Path(path))
        try:
            store._settle_schema(create, read_only)
        except BaseException:
            store._connection.close()
            raise
        return store

    def close(self) -> None:
        """Close the file; the last to do so leaves it without -wal and -shm beside it."""
        close(self._connection)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _settle_schema(self, create: bool, read_only: bool) -> None:
        if self._lacks_steps(create) and not read_only:
            # Under the lock it looks again: of several processes that got here, the first does it all.
            with self.transaction():
                SCHEMA.apply(self.db)

    def _lacks_steps(self, create: bool) -> bool:
        tables = {row["name"] for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            if create:
                return True
            raise UserError(f"{self.path} is empty; `algolen train` fills it")
        sql = "SELECT name FROM _sqlite_migrations WHERE migration_set = 'algolen' ORDER BY name"
        applied = [row["name"] for row in self.rows(sql)] if "_sqlite_migrations" in tables else []
        if not applied:
            raise UserError(f"{self.path} is an SQLite database, but not one of algolen's")
        known = known_names()
        if newer := sorted(set(applied) - set(known)):
            raise UserError(
                f"{self.path} has the schema {newer[-1]}, newer than {known[-1]}, the newest that this algolen "
                f"({__version__}) knows; upgrade algolen to open it"
            )
        return len(applied) < len(known)
