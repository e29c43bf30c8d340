"""The numbered steps from one schema to the next. A step that was released is never edited or removed."""

from __future__ import annotations

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from algolen.store.schema import STATUSES_V1, TABLES_V1, VIEWS_V1

SCHEMA = Migrations("algolen")


@SCHEMA(name="0001_runs_and_counts")
def runs_and_counts(db: Database) -> None:
    # One statement at a time: sqlite3's executescript would commit the transaction that guards the migration.
    for statement in TABLES_V1:
        db.execute(statement)
    for name, meaning in STATUSES_V1.items():
        db.execute("INSERT INTO statuses (name, meaning) VALUES (?, ?)", [name, meaning])
    for statement in VIEWS_V1:
        db.execute(statement)


def known_names() -> list[str]:
    """The steps this release knows, in their order."""
    return [step.name for step in SCHEMA.pending(Database(memory=True))]
