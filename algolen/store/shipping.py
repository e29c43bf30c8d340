"""For maintainers: the database that comes with a release, made from the one that the runs were trained into.

    python -m algolen.store.shipping trained.sqlite experiments.sqlite

What ships are runs that ended (done, diverged or failed) and their counts. What stays behind is what nobody else can
use or needs: runs that have not ended, the records of checkpoint files, which process on which machine held a run, and
of the looks while training all but the last.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path

from algolen.errors import UserError
from algolen.store.connection import connect
from algolen.store.store import Store

LARGEST = 10_000_000
"""Bytes that a shipped database may have."""

_UNFINISHED = "(SELECT id FROM runs WHERE status NOT IN ('done', 'diverged', 'failed'))"
_LOOKS = """
    SELECT e.id AS evaluation_id, (SELECT MAX(step) FROM points p WHERE p.evaluation_id = e.id) AS newest
    FROM evaluations e WHERE e.checkpoint = 'training'
"""
_STEPS = (
    f"DELETE FROM counts WHERE evaluation_id IN (SELECT id FROM evaluations WHERE run_id IN {_UNFINISHED})",
    f"DELETE FROM points WHERE evaluation_id IN (SELECT id FROM evaluations WHERE run_id IN {_UNFINISHED})",
    f"DELETE FROM evaluations WHERE run_id IN {_UNFINISHED}",
    f"DELETE FROM curves WHERE run_id IN {_UNFINISHED}",
    "DELETE FROM artifacts",
    f"DELETE FROM runs WHERE id IN {_UNFINISHED}",
    "DELETE FROM configs WHERE hash NOT IN (SELECT config_hash FROM runs)",
    "DELETE FROM environments WHERE id NOT IN (SELECT environment_id FROM runs WHERE environment_id IS NOT NULL)",
    *(
        f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM ({_LOOKS}) looks "
        f"WHERE looks.evaluation_id = {table}.evaluation_id AND {table}.step < looks.newest)"
        for table in ("counts", "points")
    ),
    "UPDATE runs SET shipped = 1, owner = NULL, heartbeat_at = NULL",
)


def ship(source: Path, target: Path) -> tuple[int, int]:
    """Writes the runs of `source` that ended to `target`, which may be the same file; how many runs and bytes that is.

    Raises UserError, and leaves both files as they were, if a run is being trained, `target` is open in another process
    or the result is above `LARGEST`.
    """
    with Store.open(source) as store:
        if busy := [run.id for run in store.runs() if run.status == "running"]:
            raise UserError(f"{source}: {len(busy)} runs are being trained, {busy[0]} among them; let them end first")
    if Path(f"{target}-wal").exists():
        raise UserError(f"{target} is in use: {target}-wal is beside it")
    made = target.with_name(f"{target.name}.shipping")
    made.unlink(missing_ok=True)
    try:
        runs = _make(source, made)
        size = made.stat().st_size
        if size > LARGEST:
            raise UserError(f"{target} would have {size:,} bytes; {LARGEST:,} may ship")
        os.replace(made, target)
    finally:
        made.unlink(missing_ok=True)
    return runs, size


def _make(source: Path, made: Path) -> int:
    with closing(connect(source, create=False)) as connection:
        connection.execute("VACUUM INTO ?", [str(made)])
    with closing(connect(made, create=False)) as connection:
        for step in _STEPS:
            connection.execute(step)
        runs: int = connection.execute("SELECT count(*) FROM runs").fetchone()[0]
        connection.commit()
        connection.execute("PRAGMA journal_mode = delete")
        connection.execute("VACUUM")
    return runs


def main(arguments: list[str]) -> int:
    """Ships the first file as the second, or in place."""
    if not 1 <= len(arguments) <= 2:
        print("usage: python -m algolen.store.shipping FROM [TO]", file=sys.stderr)
        return 2
    source, target = Path(arguments[0]), Path(arguments[-1])
    try:
        runs, size = ship(source, target)
    except UserError as error:
        print(f"algolen: {error}", file=sys.stderr)
        return 2
    print(f"{target}: {runs:,} runs, {size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
