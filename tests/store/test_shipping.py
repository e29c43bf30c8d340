"""What ships of a database, and what a user can do with runs that came with a release."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from algolen.errors import UserError
from algolen.store import Store, shipping
from tests.conftest import SMOKE, CommandLine

DB = Path("experiments.sqlite")
COUNTS = """SELECT c.* FROM counts c JOIN evaluations e ON e.id = c.evaluation_id WHERE e.purpose = 'report'
            ORDER BY 1, 2, 3, 4, 5, 6, 7"""


def rows(sql: str, db: Path = DB) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(db)
    try:
        found = connection.execute(sql).fetchall()
        connection.commit()
        return found
    finally:
        connection.close()


@pytest.fixture
def shipped(trained: CommandLine) -> CommandLine:
    """A folder as after cloning: the shipped database and no checkpoints."""
    trained.write("run.txt", trained.run)
    shipping.ship(DB, DB)
    shutil.rmtree("runs")
    return trained


def test_what_ships_are_counts_without_files_owners_or_early_looks(trained: CommandLine) -> None:
    before, report = rows(COUNTS), trained("report").stdout
    target = Path("shipped.sqlite")
    assert shipping.ship(DB, target) == (1, target.stat().st_size)
    assert rows(COUNTS, target) == before == rows(COUNTS)
    assert rows("SELECT shipped, owner, heartbeat_at, status FROM runs", target) == [(1, None, None, "done")]
    assert rows("SELECT shipped FROM runs") == [(0,)]
    assert rows("SELECT * FROM artifacts", target) == []
    looks = "SELECT DISTINCT step FROM points JOIN evaluations ON id = evaluation_id WHERE checkpoint = 'training'"
    assert (rows(looks), rows(looks, target)) == ([(20,), (40,), (60,)], [(60,)])
    assert rows("PRAGMA journal_mode", target) == [("delete",)]
    assert rows("PRAGMA freelist_count", target) == [(0,)] and rows("PRAGMA foreign_key_check", target) == []
    assert sorted(path.name for path in trained.folder.iterdir()) == ["experiments.sqlite", "runs", "shipped.sqlite"]
    assert trained("report", "--db", target).stdout == report
    assert "yes" in trained("runs", "--db", target).stdout and "yes" not in trained("runs").stdout
    assert "shipped" in trained("show", trained.run, "--db", target).stdout
    assert trained("compare", "experiments.sqlite", "shipped.sqlite").code == 0


def test_of_runs_that_did_not_end_nothing_ships_and_one_that_failed_stays(trained: CommandLine) -> None:
    assert trained(*SMOKE, "--seeds", "1-2", "--set", "train.steps=2").code == 0
    rows("UPDATE runs SET status = 'interrupted' WHERE seed = 1")
    rows("UPDATE runs SET status = 'failed', error = 'x' WHERE seed = 2")
    assert shipping.ship(DB, Path("shipped.sqlite"))[0] == 2
    assert rows("SELECT seed, status FROM runs ORDER BY seed", Path("shipped.sqlite")) == [(0, "done"), (2, "failed")]
    assert rows("PRAGMA foreign_key_check", Path("shipped.sqlite")) == []


def test_what_is_too_large_or_in_use_does_not_ship_and_stays_as_it_was(
    trained: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = trained.files()
    with monkeypatch.context() as patch:
        patch.setattr(shipping, "LARGEST", 50_000)
        with pytest.raises(UserError, match=r"would have [\d,]+ bytes; 50,000 may ship"):
            shipping.ship(DB, DB)
    assert trained.files() == before
    Path("shipped.sqlite-wal").touch()
    with pytest.raises(UserError, match="in use"):
        shipping.ship(DB, Path("shipped.sqlite"))
    with Store.open(DB) as store:
        owner = f"elsewhere:{os.getpid()}:1"
        rows(f"UPDATE runs SET status = 'running', owner = '{owner}', heartbeat_at = '2999-01-01T00:00:00.000+00:00'")
        assert store.runs()[0].status == "running"
    with pytest.raises(UserError, match="1 runs are being trained"):
        shipping.ship(DB, DB)


def test_shipping_is_a_program_of_its_own(trained: CommandLine, capsys: pytest.CaptureFixture[str]) -> None:
    assert shipping.main(["experiments.sqlite"]) == 0
    assert capsys.readouterr().out == f"experiments.sqlite: 1 runs, {DB.stat().st_size:,} bytes\n"
    assert rows("SELECT shipped FROM runs") == [(1,)]
    assert shipping.main(["a", "b", "c"]) == shipping.main(["none.sqlite"]) == 2


def test_a_shipped_run_is_done_and_more_lengths_say_how_to_get_its_checkpoint(shipped: CommandLine) -> None:
    before = shipped.files()
    again = shipped(*SMOKE)
    assert (again.code, "step " in again.stderr.partition("kept in")[2]) == (0, False)
    run = Path("run.txt").read_text()
    refused = shipped(*SMOKE, "--test-lengths", "3")
    assert refused.code == 2
    assert f"algolen show {run} --toml" in refused.stderr and "--retrain" in refused.stderr
    assert rows(COUNTS) and "runs" not in shipped.files().keys() - before.keys()


def test_a_shipped_run_that_is_made_again_is_compared_and_can_then_be_tested_further(shipped: CommandLine) -> None:
    before = rows(COUNTS)
    shipped.write("run.toml", shipped("show", Path("run.txt").read_text(), "--toml").stdout)
    again = shipped("train", "--config", "run.toml", "--retrain")
    assert (again.code, "the counts equal the stored ones" in again.stderr) == (0, True)
    assert rows(COUNTS) == before and rows("SELECT shipped, status FROM runs") == [(1, "done")]
    assert shipped(*SMOKE, "--test-lengths", "3").code == 0
    assert set(before) < set(rows(COUNTS))


def test_a_shipped_run_that_comes_out_otherwise_is_said_and_stays_as_it_shipped(shipped: CommandLine) -> None:
    rows("UPDATE counts SET tokens_correct = tokens_correct + 1 WHERE length = 8 AND stratum = 'carry chain 1'")
    before, run = rows(COUNTS), rows("SELECT * FROM runs")
    again = shipped(*SMOKE, "--retrain", "--json")
    assert again.code == 1
    assert "nothing was overwritten" in again.stderr and "--db" in again.stderr
    assert (rows(COUNTS), rows("SELECT * FROM runs")) == (before, run)
    assert json.loads(again.stdout)[0]["runs"][0]["status"] == "done"
    assert not list(Path("runs").rglob("*.safetensors")), "its model is not the one that was tested"
