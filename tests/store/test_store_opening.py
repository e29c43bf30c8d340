"""Opening: what is refused and how, what is left behind, what a reader may touch."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import warnings
from contextlib import closing
from pathlib import Path

import pytest
from store_examples import CONFIG, HASH, claim, evaluation, point

from algolen.errors import UserError
from algolen.store import Store, connection, filesystem_type

V1 = Path(__file__).parent / "schema_v1.sql"


def run_sql(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(sql)


def beside(path: Path) -> list[str]:
    return sorted(found.name for found in path.parent.iterdir() if found.name.startswith(path.name))


def message_of(path: Path, create: bool = False) -> str:
    with pytest.raises(UserError) as caught:
        Store.open(path, create)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_refused_and_not_made(path: Path) -> None:
    assert message_of(path) == f"no database at {path}; `algolen train` makes one"
    assert not path.exists()


def test_a_missing_folder_is_refused_and_not_made(path: Path) -> None:
    inside = path.parent / "no" / "where.sqlite"
    assert "no folder" in message_of(inside, create=True)
    assert not inside.parent.exists()


def test_a_folder_is_refused(path: Path) -> None:
    assert "is a folder" in message_of(path.parent, create=True)


@pytest.mark.parametrize("create", [False, True])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, create: bool) -> None:
    path.write_text("task,length\naddition,5\n" * 200)
    before = path.read_bytes()
    assert message_of(path, create) == f"{path} is not an SQLite database"
    assert path.read_bytes() == before


@pytest.mark.parametrize("create", [False, True])
def test_a_database_of_something_else_is_refused_and_left_alone(path: Path, create: bool) -> None:
    run_sql(path, "CREATE TABLE recipes (name TEXT)")
    before = path.read_bytes()
    assert "not one of algolen's" in message_of(path, create)
    assert path.read_bytes() == before


def test_an_empty_file_is_refused_to_readers_and_filled_by_writers(path: Path) -> None:
    path.touch()
    assert "is empty" in message_of(path)
    Store.open(path, create=True).close()
    Store.open(path).close()


def test_a_newer_schema_is_refused_with_both_names_and_the_file_stays_as_it_was(path: Path) -> None:
    Store.open(path, create=True).close()
    run_sql(
        path,
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('algolen', '9999_later', 'then')",
    )
    before = path.read_bytes()
    for create in (False, True):
        message = message_of(path, create)
        assert "9999_later" in message
        assert "0001_runs_and_counts" in message
        assert "upgrade algolen" in message
    assert path.read_bytes() == before
    assert beside(path) == [path.name]


def test_a_damaged_file_is_one_line_and_not_a_traceback(path: Path) -> None:
    with Store.open(path, create=True) as store:
        store.add_config(CONFIG)
        for seed in range(400):
            claim(store, seed)
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))

    def read_it() -> None:
        with Store.open(path) as store:
            store.runs()
            store.length_curves()

    with pytest.raises(UserError, match="damaged"):
        read_it()


def test_a_path_with_characters_that_mean_something_in_addresses_is_that_path(tmp_path: Path) -> None:
    odd = tmp_path / "50% of #1? été.sqlite"
    with Store.open(odd, create=True) as store:
        store.add_config(CONFIG)
    assert beside(odd) == [odd.name]
    with Store.open(odd) as store:
        assert store.config(HASH) == CONFIG


def test_nothing_is_left_beside_the_file_when_the_last_one_closes(path: Path) -> None:
    with Store.open(path, create=True) as first:
        first.add_config(CONFIG)
        assert first.rows("PRAGMA journal_mode")[0]["journal_mode"] == "wal"
        with Store.open(path) as second:
            claim(second)
        first.add_evaluation(evaluation())
    assert beside(path) == [path.name]
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone()[0] == "delete"


def test_a_reader_changes_no_byte_of_the_file(path: Path) -> None:
    with Store.open(path, create=True) as store:
        store.add_config(CONFIG)
        claim(store)
    before = path.read_bytes()
    with Store.open(path) as store:
        store.runs()
        store.length_curves()
        store.rows("SELECT * FROM v_leaderboard")
    assert path.read_bytes() == before


def test_an_error_within_a_transaction_undoes_all_of_it(store: Store) -> None:
    def write_and_fail() -> None:
        with store.transaction():
            claim(store)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert store.runs() == []
    assert claim(store).attempt == 1


def test_a_result_for_a_run_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        store.add_evaluation(evaluation(seed=77))


def read_as_someone_else(path: Path) -> list[str]:
    """What a process sees that may not write the file; the superuser may write anything, so it becomes someone else."""
    said, say = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of threads, which the child here has no use for.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(say)
        with os.fdopen(said) as answer:
            lines = answer.read().splitlines()
        os.waitpid(child, 0)
        return lines
    with os.fdopen(say, "w") as out:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            with Store.open(path) as store:
                print(len(store.runs()), file=out)
                store.finish(f"{HASH}-0", "me:1:1", "done", None, 1, 1.0)
        except BaseException as error:
            print(error, file=out)
    os._exit(0)


@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
def test_a_read_only_file_in_a_read_only_folder_can_be_read_and_says_so_when_written(journal_mode: str) -> None:
    # Not in tmp_path, which other users cannot enter.
    folder = Path(tempfile.mkdtemp())
    path = folder / "shared.sqlite"
    try:
        with Store.open(path, create=True) as store:
            store.add_config(CONFIG)
            claim(store)
        run_sql(path, f"PRAGMA journal_mode = {journal_mode}")
        path.chmod(0o444)
        folder.chmod(0o555)
        assert read_as_someone_else(path) == ["1", f"{path} cannot be written: it is read-only"]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


# Schemas that were released -------------------------------------------------------------------------------------------


def schema_of(path: Path) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()


def test_a_database_made_by_the_first_release_is_opened_and_read(path: Path) -> None:
    run_sql(path, V1.read_text())
    with Store.open(path) as store:
        (curve,) = store.length_curves()
        assert (curve.run.id, curve.run.status) == (f"{HASH}-0", "done")
        assert curve.point is not None
        assert (curve.point.key.length, curve.point.counts[0].exact) == (10, 990)
        claim(store, seed=1)
        assert len(store.runs()) == 2


def test_the_first_schema_is_what_was_released(path: Path) -> None:
    old = path.parent / "old.sqlite"
    run_sql(old, V1.read_text())
    Store.open(path, create=True).close()
    assert schema_of(path) == schema_of(old), "a released migration was edited; add a new one"


# File systems ---------------------------------------------------------------------------------------------------------


def test_the_file_system_is_that_of_the_deepest_and_latest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    home = tmp_path / "my home"
    escaped = str(home).replace(" ", "\\040")
    lines = ["/dev/a / ext4 rw 0 0", f"server:/x {escaped} nfs4 rw 0 0", f"/dev/b {escaped}/fast xfs rw 0 0"]
    mounts.write_text("\n".join(lines))
    assert filesystem_type(home / "results" / "new.sqlite", mounts) == "nfs4"
    assert filesystem_type(home / "fast" / "new.sqlite", mounts) == "xfs"
    assert filesystem_type(home / "fast2" / "new.sqlite", mounts) == "nfs4"
    assert filesystem_type("/somewhere", mounts) == "ext4"
    mounts.write_text("\n".join([*lines, "tmpfs / tmpfs rw 0 0"]))
    assert filesystem_type("/somewhere", mounts) == "tmpfs"
    assert filesystem_type("/somewhere", tmp_path / "none") == "unknown"


def test_wal_is_not_used_on_a_network_file_system(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "filesystem_type", lambda path: "nfs4")
    with Store.open(path, create=True) as store:
        store.add_config(CONFIG)
        claim(store)
        store.add_evaluation(evaluation())
        store.add_points(evaluation().id, 5000, [point(10, 990)])
        assert store.rows("PRAGMA journal_mode")[0]["journal_mode"] == "delete"
