"""Opening SQLite so that many processes can write at once, and saying in one line what is wrong with a file.

Python's sqlite3 and sqlite-utils both begin transactions that read first and ask for the write lock later; with several
writers these fail at once, whatever the timeout. Hence every write here starts with BEGIN IMMEDIATE.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from algolen.errors import UserError

TIMEOUT = 30.0
"""Seconds to wait for another process's write."""

NETWORK_FILE_SYSTEMS = frozenset(
    [
        "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "davfs", "drvfs", "fuse.ceph", "fuse.davfs", "fuse.glusterfs",
        "fuse.juicefs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
        "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    ]
)  # fmt: skip
"""Where the shared memory of WAL mode does not work between machines."""


def filesystem_type(path: str | Path, mounts: str | Path = "/proc/mounts") -> str:
    """The type of the file system that holds `path`, which need not exist; 'unknown' where the system doesn't say."""
    try:
        lines = Path(mounts).read_text(errors="surrogateescape").splitlines()
    except OSError:
        return "unknown"
    resolved = Path(os.path.realpath(path))
    found, depth = "unknown", 0
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        # Blanks in a mount point are written as octal escapes.
        point = Path(fields[1].encode("latin-1", "replace").decode("unicode_escape"))
        # ≥: of two mounts at one place the later hides the earlier.
        if resolved.is_relative_to(point) and len(point.parts) >= depth:
            found, depth = fields[2], len(point.parts)
    return found


def on_network(path: str | Path) -> bool:
    """Whether a file lies on a network file system, where WAL mode must not be used."""
    return filesystem_type(path) in NETWORK_FILE_SYSTEMS


def connect(path: Path, create: bool, read_only: bool = False) -> sqlite3.Connection:
    """A connection that waits for other writers; raises UserError where there is no file and no place for one."""
    if path.is_dir():
        raise UserError(f"{path} is a folder, not a database")
    if not path.exists() and not create:
        raise UserError(f"no database at {path}; `algolen train` makes one")
    if not path.parent.is_dir():
        raise UserError(f"no folder {path.parent} to put the database {path.name} in")
    with explained(path):
        connection = _connect(path, "mode=rwc" if create else "mode=ro" if read_only else "mode=rw")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            # In WAL mode even a reader needs to write beside the file, unless nobody else can be using it.
            if os.access(path, os.W_OK) or Path(f"{path}-wal").exists():
                raise
            connection = _connect(path, "mode=ro&immutable=1")
        except sqlite3.DatabaseError:
            connection.close()
            raise
    return connection


def _connect(path: Path, query: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{query}", uri=True, timeout=TIMEOUT)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns what SQLite says about a file into one line for the user; other errors pass."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", None) or ""
        reasons = {
            "SQLITE_NOTADB": "is not an SQLite database",
            "SQLITE_CORRUPT": "is damaged: SQLite finds it malformed",
            "SQLITE_READONLY": "cannot be written: it is read-only",
            "SQLITE_CANTOPEN": "cannot be opened; are it and its folder readable?",
            "SQLITE_BUSY": f"was locked by another process for {TIMEOUT:.0f} seconds",
            "SQLITE_FULL": "cannot grow: the disk is full",
            "SQLITE_IOERR": "cannot be read or written: the disk reports an error",
        }
        for prefix, reason in reasons.items():
            if name.startswith(prefix):
                raise UserError(f"{path} {reason}") from error
        raise


@contextmanager
def immediate(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """A transaction that holds the write lock from its first line; all of it is written, or nothing."""
    with explained(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def prepare_for_writing(connection: sqlite3.Connection, path: Path) -> None:
    """WAL on a local disk, so that readers and one writer don't wait for each other; a rollback journal elsewhere."""
    if on_network(path):
        _set_journal_mode(connection, "delete")
    else:
        _set_journal_mode(connection, "wal")
        connection.execute("PRAGMA synchronous = normal")


def _set_journal_mode(connection: sqlite3.Connection, mode: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            # Two processes that change the mode at once are refused without waiting.
            busy = str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_BUSY")
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def close(connection: sqlite3.Connection) -> None:
    """Close, and leave one file without -wal and -shm beside it unless someone else still uses it."""
    with suppress(sqlite3.Error):
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = delete")
    connection.close()
